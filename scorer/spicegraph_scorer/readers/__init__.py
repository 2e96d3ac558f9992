"""Items from files: JSON of several kinds, tables, Parquet and plain text, each also zipped.

The format is found in the content, never in the name. A wrong file gives one error that lists every fault.
"""

from spicegraph_scorer.readers.checks import Fault, check_items
from spicegraph_scorer.readers.read import Dataset, read_items, read_references
from spicegraph_scorer.readers.tables import Columns, parse_columns

__all__ = ["Columns", "Dataset", "Fault", "check_items", "parse_columns", "read_items", "read_references"]
