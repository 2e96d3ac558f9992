from spicegraph_scorer.adapters.torch_metric import TorchSpice

__all__ = ["TorchSpice"]
