from spicegraph_scorer.adapters.torchmetrics import SPICE_CATEGORIES, SpiceMetric

__all__ = ["SPICE_CATEGORIES", "SpiceMetric"]
