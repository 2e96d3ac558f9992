"""What a captioning system gets wrong, drawn from the matches that made its SPICE scores."""

from spicegraph_scorer.errors.analysis import (
    KINDS,
    ErrorGroup,
    ErrorKind,
    ErrorReport,
    Hallucination,
    WrongStatement,
    analyse_errors,
    chance_counts,
    error_words,
    explain,
    hallucinations,
    wrong_statements,
)
from spicegraph_scorer.errors.rules import CHANCES, Chance, ErrorSide, Finding, Kind

__all__ = [
    "CHANCES",
    "KINDS",
    "Chance",
    "ErrorGroup",
    "ErrorKind",
    "ErrorReport",
    "ErrorSide",
    "Finding",
    "Hallucination",
    "Kind",
    "WrongStatement",
    "analyse_errors",
    "chance_counts",
    "error_words",
    "explain",
    "hallucinations",
    "wrong_statements",
]
