from spicegraph_scorer.adapters.aac_metrics import cider_d, spice, spider, spider_fl, spider_max

__all__ = ["cider_d", "spice", "spider", "spider_fl", "spider_max"]
