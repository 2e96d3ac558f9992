"""What a captioning system gets wrong, drawn from the matches that made its SPICE scores."""

from spicegraph_scorer.error_analysis.explain import KINDS, explain
from spicegraph_scorer.error_analysis.findings import Finding, Kind, Side
from spicegraph_scorer.error_analysis.hallucination import Hallucination, hallucinations
from spicegraph_scorer.error_analysis.tally import ErrorGroup, ErrorKind, ErrorReport, analyse_errors

__all__ = [
    "KINDS",
    "ErrorGroup",
    "ErrorKind",
    "ErrorReport",
    "Finding",
    "Hallucination",
    "Kind",
    "Side",
    "analyse_errors",
    "explain",
    "hallucinations",
]
