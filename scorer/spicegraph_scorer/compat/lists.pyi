from spicegraph_scorer.adapters.caption_metric import CaptionMetric, References, flat_scores, paired_items

__all__ = ["CaptionMetric", "References", "flat_scores", "paired_items"]
