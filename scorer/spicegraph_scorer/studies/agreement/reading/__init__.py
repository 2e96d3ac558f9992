"""Readers of judgements: our own plain formats and those of published sets.

Which format a file has, its content says; ``JUDGEMENT_FORMATS`` and ``PAIR_FORMATS`` hold them all.
"""

from spicegraph_scorer.studies.agreement.reading.read import (
    JUDGEMENT_FORMATS,
    PAIR_FORMATS,
    read_judgements,
    read_pairs,
)
from spicegraph_scorer.studies.agreement.reading.systems import read_system_scores, read_system_table

__all__ = [
    "JUDGEMENT_FORMATS",
    "PAIR_FORMATS",
    "read_judgements",
    "read_pairs",
    "read_system_scores",
    "read_system_table",
]
