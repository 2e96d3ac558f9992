"""SPICE as a torchmetrics ``Metric``; importing this module imports torch."""

from spicegraph_scorer.adapters.torch_metric import TorchSpice

__all__ = ["TorchSpice"]
