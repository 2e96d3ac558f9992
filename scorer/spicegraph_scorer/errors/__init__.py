"""What a captioning system gets wrong, drawn from the matches that made its SPICE scores."""

from spicegraph_scorer.errors.analysis import (
    KINDS,
    ErrorGroup,
    ErrorKind,
    ErrorReport,
    Hallucination,
    WrongStatement,
    analyse_errors,
    error_words,
    explain,
    hallucinations,
    wrong_statements,
)
from spicegraph_scorer.errors.rules import CHANCES, Chance, Finding, Kind, Side

__all__ = [
    "CHANCES",
    "KINDS",
    "Chance",
    "ErrorGroup",
    "ErrorKind",
    "ErrorReport",
    "Finding",
    "Hallucination",
    "Kind",
    "Side",
    "WrongStatement",
    "analyse_errors",
    "error_words",
    "explain",
    "hallucinations",
    "wrong_statements",
]
