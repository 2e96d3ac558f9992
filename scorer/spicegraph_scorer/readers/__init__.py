"""Items from files (JSON, tables, Parquet, plain text; zipped too), whose content shows the format, not the name."""

from spicegraph_scorer.readers.checks import Fault, check_items
from spicegraph_scorer.readers.read import Dataset, read_items, read_references
from spicegraph_scorer.readers.tables import Columns, parse_columns

__all__ = ["Columns", "Dataset", "Fault", "check_items", "parse_columns", "read_items", "read_references"]
