"""Items from files (JSON, tables, Parquet, plain text; zipped too), whose content shows the format, not the name."""

from spicegraph_scorer.readers.checks import Fault, check_items
from spicegraph_scorer.readers.read import Dataset, read, read_items, read_references
from spicegraph_scorer.readers.shapes import SHAPES, Columns, Shape
from spicegraph_scorer.readers.tables import parse_columns

__all__ = [
    "SHAPES",
    "Columns",
    "Dataset",
    "Fault",
    "Shape",
    "check_items",
    "parse_columns",
    "read",
    "read_items",
    "read_references",
]
