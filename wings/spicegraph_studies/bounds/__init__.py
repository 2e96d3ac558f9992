"""How high and how low scores can go: every caption of an image held out in turn, and what could stand in its place."""

from spicegraph_studies.bounds.results import Bound, BoundsResult, Distribution, TrialBounds, find_bounds
from spicegraph_studies.bounds.study import HUMAN, SUBSTITUTES, BoundsStudy, Lower, Trial, human, lower_trials, system

__all__ = [
    "HUMAN",
    "SUBSTITUTES",
    "Bound",
    "BoundsResult",
    "BoundsStudy",
    "Distribution",
    "Lower",
    "Trial",
    "TrialBounds",
    "find_bounds",
    "human",
    "lower_trials",
    "system",
]
