"""The protocols by name: what is averaged, what is removed, which coefficient counts.

Published correlations of the same metric differ because these choices differ. Each protocol here says what it
does; results carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CAPTION_PROTOCOLS",
    "PAIR_PROTOCOLS",
    "TIE_CREDIT",
    "CaptionProtocol",
    "Own",
    "PairProtocol",
    "Ratings",
    "ReferenceChoice",
    "Ties",
    "caption_protocol",
    "pair_protocol",
]


class Ratings(StrEnum):
    """What one observation is."""

    EACH = "each"
    """Every single rating, so that a caption with three ratings counts three times."""
    MEAN = "mean"
    """A caption with the mean of its ratings."""


class Own(StrEnum):
    """What happens to a caption that is also one of its image's references, up to white space."""

    KEEP = "keep"
    DROP_CAPTION = "drop-caption"
    DROP_REFERENCE = "drop-reference"
    """The caption stays; it is no reference of its own."""
    DROP_FROM_IMAGE = "drop-from-image"
    """The caption stays; it is no reference of any judged caption of the image."""


class Ties(StrEnum):
    """What a metric gets for a pair that it scores equally."""

    HALF = "half"
    """Half a point: what breaking ties by a coin gives on average, and the chance level is 0.5."""
    RIGHT = "right"
    """A point: equal or higher counts (Anderson et al. 2016 on PASCAL-50S)."""
    WRONG = "wrong"
    """Nothing: only strictly higher counts."""


TIE_CREDIT: Mapping[Ties, float] = {Ties.HALF: 0.5, Ties.RIGHT: 1.0, Ties.WRONG: 0.0}


class ReferenceChoice(StrEnum):
    """Which references are used where fewer are asked for than there are."""

    FIRST = "first"
    RANDOM = "random"
    """Drawn without replacement for each pair; accuracy is averaged over several draws."""


@dataclass(frozen=True, slots=True)
class CaptionProtocol:
    """How ratings of captions are held against a metric."""

    name: str
    coefficient: str
    """The key of ``COEFFICIENTS`` that is reported under this protocol; the others are computed, too."""
    ratings: Ratings
    own: Own
    about: str
    source: str = ""
    without_systems: frozenset[str] = frozenset()
    """Captions by these are left out."""


@dataclass(frozen=True, slots=True)
class PairProtocol:
    """How choices between two captions are held against a metric."""

    name: str
    ties: Ties
    own: Own
    references: int | None
    """How many references are used; ``None``: all."""
    choice: ReferenceChoice
    draws: int
    about: str
    source: str = ""


_SPICE = "Anderson et al. 2016 (SPICE), section 4"
_CLIPSCORE = "Hessel et al. 2021 (CLIPScore), section 4 and appendix A"

CAPTION_PROTOCOLS: Mapping[str, CaptionProtocol] = {
    protocol.name: protocol
    for protocol in (
        CaptionProtocol(
            "plain", "tau_b", Ratings.MEAN, Own.KEEP, "Each caption with the mean of its ratings; nothing is removed."
        ),
        CaptionProtocol(
            "flickr8k-expert",
            "tau_c",
            Ratings.EACH,
            Own.DROP_CAPTION,
            "Every single expert rating is an observation (three a caption, not averaged). Captions that stand among "
            "their image's references are left out: 158 of 5,822, which leaves 16,992 ratings.",
            f"{_SPICE}; {_CLIPSCORE}",
        ),
        CaptionProtocol(
            "flickr8k-cf",
            "tau_b",
            Ratings.MEAN,
            Own.DROP_FROM_IMAGE,
            "Each caption with the share of workers who said that it describes the image. A caption that stands among "
            "its image's references stays, and is removed from the references of all captions of the image.",
            f"{_CLIPSCORE}, and the authors' script",
        ),
        CaptionProtocol(
            "composite",
            "tau_c",
            Ratings.EACH,
            Own.DROP_FROM_IMAGE,
            "Every rating of correctness is an observation. The rated captions include one human reference of each "
            "image: it stays, and is removed from the references of all captions of the image. Papers differ in the "
            "captions of each image that "
            "they use (12,000 or 15,000 ratings); what the file holds is used.",
            _CLIPSCORE,
        ),
        CaptionProtocol(
            "thumb",
            "pearson",
            Ratings.MEAN,
            Own.KEEP,
            "Each caption with its total score, captions by people included.",
            "Kasai et al. 2022 (THumB)",
        ),
        CaptionProtocol(
            "thumb-machine",
            "pearson",
            Ratings.MEAN,
            Own.KEEP,
            "As thumb, without the captions whose system is Human.",
            "Kasai et al. 2022 (THumB)",
            frozenset({"Human"}),
        ),
        CaptionProtocol(
            "capeval1k",
            "tau_b",
            Ratings.MEAN,
            Own.KEEP,
            "Each caption with its mean human score.",
            "Lee et al. 2021 (UMIC)",
        ),
    )
}
"""Every protocol for rated captions. To add one: an entry here; the documentation prints its ``about``."""

PAIR_PROTOCOLS: Mapping[str, PairProtocol] = {
    protocol.name: protocol
    for protocol in (
        PairProtocol(
            "plain",
            Ties.HALF,
            Own.KEEP,
            None,
            ReferenceChoice.FIRST,
            1,
            "All references; a tie counts half, so that a metric that knows nothing gets 0.5.",
        ),
        PairProtocol(
            "pascal50s",
            Ties.RIGHT,
            Own.DROP_REFERENCE,
            5,
            ReferenceChoice.RANDOM,
            5,
            "The caption that most of the judges prefer is right, and so is an equal score; pairs on which the judges "
            "are tied are left out. Five references, drawn at random; accuracy is averaged over five draws.",
            f"Vedantam et al. 2015 (CIDEr); {_SPICE}",
        ),
        PairProtocol(
            "foil",
            Ties.HALF,
            Own.DROP_REFERENCE,
            None,
            ReferenceChoice.FIRST,
            1,
            "A true caption against the same with one thing made wrong (FOIL, SugarCrepe, VALSE). All references but "
            "the true caption itself; a tie counts half.",
            "Shekhar et al. 2017 (FOIL); Hsieh et al. 2023 (SugarCrepe); Parcalabescu et al. 2022 (VALSE)",
        ),
    )
}
"""Every protocol for pairs of captions."""


def caption_protocol(name: str) -> CaptionProtocol:
    """Return a protocol by name.

    Raises:
        InputError: there is none of that name.

    Example:
        >>> caption_protocol("flickr8k-expert").coefficient
        'tau_c'
    """
    if name not in CAPTION_PROTOCOLS:
        raise InputError(f"there is no protocol {name!a} for captions; there are {', '.join(CAPTION_PROTOCOLS)}")
    return CAPTION_PROTOCOLS[name]


def pair_protocol(name: str) -> PairProtocol:
    """Return a protocol for pairs by name.

    Raises:
        InputError: there is none of that name.
    """
    if name not in PAIR_PROTOCOLS:
        raise InputError(f"there is no protocol {name!a} for pairs; there are {', '.join(PAIR_PROTOCOLS)}")
    return PAIR_PROTOCOLS[name]
