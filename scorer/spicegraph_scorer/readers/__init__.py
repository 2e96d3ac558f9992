"""Items from files: JSON of several kinds, tables, Parquet and plain text, each also zipped.

The format is found in the content, never in the name. A wrong file gives one error that lists every fault.
"""

from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.readers.columns import Columns, parse_columns
from spicegraph_scorer.readers.faults import Fault
from spicegraph_scorer.readers.read import Dataset, read_items, read_references

__all__ = ["Columns", "Dataset", "Fault", "check_items", "parse_columns", "read_items", "read_references"]
