"""What other programs call: pycocoevalcap, torchmetrics, evaluate, aac-metrics, the SPICE program. A wing."""
