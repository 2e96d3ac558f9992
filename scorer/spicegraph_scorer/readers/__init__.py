"""Items from files: the SPICE jar's JSON, COCO results with annotations, JSON Lines, each also zipped.

The format is found in the content, never in the name. A wrong file gives one error that lists every fault.
"""

from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.readers.faults import Fault
from spicegraph_scorer.readers.read import Dataset, read_items, read_references

__all__ = ["Dataset", "Fault", "check_items", "read_items", "read_references"]
