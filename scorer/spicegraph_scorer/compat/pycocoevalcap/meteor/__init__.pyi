from spicegraph_scorer.adapters.pycocoevalcap import Meteor

__all__ = ["Meteor"]
