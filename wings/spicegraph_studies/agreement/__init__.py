"""Agreement of metrics with people, under named protocols.

Rated captions: :func:`read_judgements` and :func:`agree_on_captions`. Pairs of captions: :func:`read_pairs` and
:func:`agree_on_pairs`. Whole systems: :func:`agree_on_systems`.
"""

from spicegraph_studies.agreement.captions import CaptionAgreement, agree_on_captions
from spicegraph_studies.agreement.judgements import CaptionPair, Judged, Judgement, JudgementScoring
from spicegraph_studies.agreement.pairwise import PairAgreement, agree_on_pairs
from spicegraph_studies.agreement.protocols import (
    CAPTION_PROTOCOLS,
    PAIR_PROTOCOLS,
    CaptionProtocol,
    PairProtocol,
    caption_protocol,
    pair_protocol,
)
from spicegraph_studies.agreement.reading import read_judgements, read_pairs
from spicegraph_studies.agreement.systems import SystemAgreement, agree_on_systems

__all__ = [
    "CAPTION_PROTOCOLS",
    "PAIR_PROTOCOLS",
    "CaptionAgreement",
    "CaptionPair",
    "CaptionProtocol",
    "Judged",
    "Judgement",
    "JudgementScoring",
    "PairAgreement",
    "PairProtocol",
    "SystemAgreement",
    "agree_on_captions",
    "agree_on_pairs",
    "agree_on_systems",
    "caption_protocol",
    "pair_protocol",
    "read_judgements",
    "read_pairs",
]
