"""Two systems against each other, by the name that ``spicegraph`` gives it."""

from spicegraph_scorer.scoring import compare_systems

compare = compare_systems
