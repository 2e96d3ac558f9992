"""What a captioning system gets wrong, drawn from the matches that made its SPICE scores."""

from spicegraph_scorer.studies.errors.explain import KINDS, explain
from spicegraph_scorer.studies.errors.findings import Finding, Kind, Side
from spicegraph_scorer.studies.errors.hallucination import Hallucination, hallucinations
from spicegraph_scorer.studies.errors.tally import ErrorGroup, ErrorKind, ErrorReport, analyse_errors

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
