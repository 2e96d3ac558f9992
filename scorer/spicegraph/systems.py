"""Files to items, and two systems against each other, by the names that ``spicegraph`` gives them."""

from spicegraph_scorer.readers import read_items
from spicegraph_scorer.scoring import compare_systems

compare = compare_systems
read = read_items
