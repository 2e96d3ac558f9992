"""The protocols by name: what is averaged, removed or changed before scoring, and which coefficient counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_studies.agreement.judgements import CaptionPair, Judgement

_OWN = "captions that are a reference of their image"
_NONE_LEFT = "captions without another reference"


class Ratings(StrEnum):
    """The unit of observation: each rating, or a caption's mean rating."""

    EACH = "each"  # every single rating, so that a caption with three ratings counts three times
    MEAN = "mean"  # a caption with the mean of its ratings


class Own(StrEnum):
    """Treatment of captions that are also references of their image, up to white space."""

    KEEP = "keep"
    DROP_CAPTION = "drop-caption"
    DROP_REFERENCE = "drop-reference"  # the caption stays; it is not a reference of its own
    DROP_FROM_IMAGE = "drop-from-image"  # the caption stays; it is not a reference of any judged caption of the image
    DROP_ONE_FROM_IMAGE = "drop-one-from-image"  # as that, but of equal references one goes for each judged caption


class Ties(StrEnum):
    """A metric's credit for a pair that it scores equally."""

    HALF = "half"  # half a point: what breaking ties by a coin gives on average, and the chance level is 0.5
    RIGHT = "right"  # a point: equal or higher counts (Anderson et al. 2016 on PASCAL-50S)
    WRONG = "wrong"  # nothing: only strictly higher counts


TIE_CREDIT: Mapping[Ties, float] = {Ties.HALF: 0.5, Ties.RIGHT: 1.0, Ties.WRONG: 0.0}


class ReferenceChoice(StrEnum):
    """Which references are used where fewer are asked for than there are."""

    FIRST = "first"
    RANDOM = "random"  # drawn without replacement for each pair; accuracy is averaged over several draws


@dataclass(frozen=True, slots=True)
class CaptionProtocol:
    """How ratings of captions are compared with a metric."""

    name: str
    about: str
    source: str = ""
    coefficient: str = "tau_b"  # the key of ``COEFFICIENTS`` that is reported; the others are computed, too
    ratings: Ratings = Ratings.MEAN
    own: Own = Own.KEEP
    without_systems: frozenset[str] = frozenset()  # captions by these are left out


@dataclass(frozen=True, slots=True)
class PairProtocol:
    """How choices between two captions are compared with a metric."""

    name: str
    about: str
    source: str = ""
    ties: Ties = Ties.HALF
    own: Own = Own.DROP_REFERENCE
    references: int | None = None  # how many references are used; ``None``: all
    choice: ReferenceChoice = ReferenceChoice.FIRST
    draws: int = 1
    coin: bool = False  # decides where people are tied: such a pair counts half for every metric; else it is left out


@dataclass(frozen=True, slots=True)
class HallucinationProtocol:
    """A protocol for finding wrong words: any content word, or objects alone."""

    name: str
    about: str
    source: str
    objects: bool


Named = TypeVar("Named", CaptionProtocol, PairProtocol, HallucinationProtocol)


def by_name(*protocols: Named) -> Mapping[str, Named]:
    """Return protocols by their names."""
    return {protocol.name: protocol for protocol in protocols}


def protocol_of(protocols: Mapping[str, Named], name: str, judged: str) -> Named:
    """Return a protocol by name."""
    if name not in protocols:
        raise InputError(f"there is no protocol {name!a} for {judged}; there are {', '.join(protocols)}")
    return protocols[name]


_SPICE = "Anderson et al. 2016 (SPICE), section 4"
_ALOHA = "Petryk et al. 2024 (ALOHa)"
_CLIPSCORE = "Hessel et al. 2021 (CLIPScore), section 4 and appendix A"

CAPTION_PROTOCOLS: Mapping[str, CaptionProtocol] = by_name(
    CaptionProtocol("plain", "Each caption with the mean of its ratings; nothing is removed."),
    CaptionProtocol(
        "flickr8k-expert",
        "Every single expert rating is an observation (three a caption, not averaged), and a document of CIDEr's "
        "frequencies, as in the authors' script. Captions that are among their image's references are left out: 158 "
        "of 5,822, which leaves 16,992 ratings.",
        f"{_SPICE}; {_CLIPSCORE}",
        "tau_c",
        Ratings.EACH,
        Own.DROP_CAPTION,
    ),
    CaptionProtocol(
        "flickr8k-cf",
        "Each caption with the share of workers who said that it describes the image; equal captions are not merged. "
        "A caption that stands among its image's references stays, and one reference that equals it is removed from "
        "the references of all captions of the image.",
        f"{_CLIPSCORE}, and the authors' script",
        ratings=Ratings.EACH,
        own=Own.DROP_ONE_FROM_IMAGE,
    ),
    CaptionProtocol(
        "composite",
        "Every rating of correctness is an observation. The rated captions include one human reference of each "
        "image: it stays, and is removed from the references of all captions of the image. Papers differ in the "
        "captions of each image that they use (12,000 or 15,000 ratings); what the file holds is used.",
        _CLIPSCORE,
        "tau_c",
        Ratings.EACH,
        Own.DROP_FROM_IMAGE,
    ),
    CaptionProtocol(
        "thumb",
        "Each caption with its total score, captions by people included.",
        "Kasai et al. 2022 (THumB)",
        "pearson",
    ),
    CaptionProtocol(
        "thumb-machine",
        "As thumb, without the captions whose system is Human.",
        "Kasai et al. 2022 (THumB)",
        "pearson",
        without_systems=frozenset({"Human"}),
    ),
    CaptionProtocol("capeval1k", "Each caption with its mean human score.", "Lee et al. 2021 (UMIC)"),
    CaptionProtocol(
        "polaris", "Each row of the table is an observation.", "Wada et al. 2024 (Polos, the Polaris set)", "tau_c"
    ),
    CaptionProtocol(
        "nebula",
        "Each row of the table is an observation, as in Polaris.",
        "Matsuda et al. 2024 (DENEB, the Nebula set), and the authors' script",
        "tau_c",
    ),
    CaptionProtocol(
        "trecvid-da",
        "Each video caption with its direct assessment: the mean of its ratings, standardised by rater if "
        "the file has them so. A caption is not a reference of its own. The paper itself compares means of whole "
        "systems: see agree systems.",
        "Graham et al. 2018 (Evaluation of automatic video captioning using direct assessment)",
        "pearson",
        own=Own.DROP_REFERENCE,
    ),
)
"""Every protocol for rated captions. To add one: an entry here; the documentation prints its ``about``."""

PAIR_PROTOCOLS: Mapping[str, PairProtocol] = by_name(
    PairProtocol(
        "plain", "All references; a tie counts half, so that a metric that knows nothing gets 0.5.", own=Own.KEEP
    ),
    PairProtocol(
        "pascal50s",
        "The caption that most of the judges prefer is right, and so is an equal score; pairs on which the judges "
        "are tied are left out. Five references, drawn at random; accuracy is averaged over five draws.",
        f"Vedantam et al. 2015 (CIDEr); {_SPICE}",
        Ties.RIGHT,
        references=5,
        choice=ReferenceChoice.RANDOM,
        draws=5,
    ),
    PairProtocol(
        "pascal50s-clipscore",
        "As pascal50s, but a coin decides ties, of metrics and of people: an equal score counts half, and so does "
        "every pair on which the judges are tied. For metrics that tie often, such as SPICE, the two protocols "
        "differ by several points.",
        f"{_CLIPSCORE}, and the data set's loader in the authors' repository; Vedantam et al. 2015 (CIDEr)",
        references=5,
        choice=ReferenceChoice.RANDOM,
        draws=5,
        coin=True,
    ),
    PairProtocol(
        "fense-pairs",
        "Two captions of a sound and the one that the sum of the votes prefers, by category (HC, HI, HM, MM); "
        "pairs whose votes cancel out are left out. A caption is scored against all references but itself; the "
        "caption of another sound or of a system, against as many. An equal score counts as wrong. The published "
        "figure is 'all'. For pairs of two systems (MM), the authors' script averages an n-gram metric's scores "
        "over the choices of four of the five references; here all five are used.",
        "Zhou et al. 2022 (FENSE: AudioCaps-Eval and Clotho-Eval), and the authors' script",
        Ties.WRONG,
    ),
    PairProtocol(
        "discofoil",
        "A machine's description of an image against the same with its hallucination corrected by people, with one "
        "description as the reference. Descriptions that could not be corrected are left out. An equal score "
        "counts as wrong.",
        "Lin et al. 2025 (DiscoSG, the D-FOIL set), and the authors' script",
        Ties.WRONG,
    ),
    PairProtocol(
        "foil",
        "A true caption against the same with one thing made wrong (FOIL, SugarCrepe, VALSE). All references but "
        "the true caption itself; a tie counts half.",
        "Shekhar et al. 2017 (FOIL); Hsieh et al. 2023 (SugarCrepe); Parcalabescu et al. 2022 (VALSE)",
    ),
)
"""Every protocol for pairs of captions."""

HALLUCINATION_PROTOCOLS: Mapping[str, HallucinationProtocol] = by_name(
    HallucinationProtocol(
        "hat",
        "Detection: average precision and area under the ROC curve of telling captions with a marked word from "
        "others, by the metric's score. Localisation: of the captions with a marked word, in how many the word "
        "that is most likely wrong is a marked one.",
        f"{_ALOHA}, on HAT",
        objects=False,
    ),
    HallucinationProtocol(
        "aloha-localisation",
        "As hat, but only objects and the words in front of them (the golf of a golf ball) are compared, as ALOHa "
        "does: of the captions with a foil, in how many the one that is most likely wrong is in the foil. A true "
        "caption and its foil are a caption each; the true one is not a reference.",
        f"{_ALOHA}, on nocaps-FOIL",
        objects=True,
    ),
)
"""Every protocol for captions whose wrong words are marked."""


def caption_protocol(name: str) -> CaptionProtocol:
    """Return a protocol for rated captions by name."""
    return protocol_of(CAPTION_PROTOCOLS, name, "captions")


def pair_protocol(name: str) -> PairProtocol:
    """Return a protocol for pairs by name."""
    return protocol_of(PAIR_PROTOCOLS, name, "pairs")


def prepare(judgements: Iterable[Judgement], protocol: CaptionProtocol) -> tuple[tuple[Judgement, ...], dict[str, int]]:
    """Apply a protocol to judgements; return them and the counts left out or changed, by reason."""
    judged = tuple(judgements)
    of_image = _captions_of((each.image, (each.candidate,)) for each in judged)
    counted = Counter((each.image, *_plain((each.candidate,))) for each in judged for _ in each.ratings)
    kept: list[Judgement] = []
    removed: Counter[str] = Counter()
    for judgement in judged:
        if judgement.system in protocol.without_systems:
            removed["captions by left-out systems"] += 1
            continue
        own = of_image[judgement.image] if protocol.own is Own.DROP_FROM_IMAGE else _plain((judgement.candidate,))
        by_count = protocol.own is Own.DROP_ONE_FROM_IMAGE
        others = _without_counted(judgement, counted) if by_count else _others(judgement.references, own)
        references = _kept(protocol.own, judgement.references, others, removed)
        if references is not None:
            kept.append(replace(judgement, references=references))
    if not kept:
        raise InputError(f"the protocol {protocol.name} leaves no caption: {_reasons(removed)}")
    return tuple(kept), dict(removed)


def prepare_pairs(
    pairs: Iterable[CaptionPair], protocol: PairProtocol
) -> tuple[tuple[CaptionPair, ...], dict[str, int]]:
    """Leave out undecided pairs and own references, by protocol; return counts removed as well."""
    if protocol.own is Own.DROP_ONE_FROM_IMAGE:
        raise InputError(f"--own {protocol.own}: is for rated captions; pairs take {Own.DROP_FROM_IMAGE}")
    judged = tuple(pairs)
    of_image = _captions_of((each.image, each.captions) for each in judged)
    kept: list[CaptionPair] = []
    removed: Counter[str] = Counter()
    for pair in judged:
        if pair.preferred is None and not protocol.coin:
            removed["pairs on which people are tied"] += 1
            continue
        if protocol.own is Own.DROP_REFERENCE and pair.references:
            first, second = _without_themselves(pair, removed)
        else:
            first, second = _without_own(pair, protocol.own, of_image[pair.image], removed)
        if first is not None:
            kept.append(replace(pair, references=first, second=second))
    if not kept:
        raise InputError(f"the protocol {protocol.name} leaves no pair: {_reasons(removed)}")
    return tuple(kept), dict(removed)


_Sides: TypeAlias = "tuple[tuple[str, ...] | None, tuple[str, ...] | None]"  # the references of both, or of the second


def _without_themselves(pair: CaptionPair, removed: Counter[str]) -> _Sides:
    """Return references in which a caption lacks itself, or the other one where it does not stand there."""
    sides = []
    for side in (0, 1):
        references = pair.references_of(side)
        caption, other = (_plain((pair.captions[place],)) for place in (side, 1 - side))
        without = _others(references, caption)
        sides.append(without if len(without) < len(references) else _others(references, other))
    others = _others(pair.references, _plain(pair.captions)) if all(sides) else ()
    _kept(Own.DROP_REFERENCE, pair.references, others, removed)
    return sides[0] if all(sides) else None, sides[1] if sides[0] != sides[1] else None


def _without_own(pair: CaptionPair, own: Own, of_image: frozenset[str], removed: Counter[str]) -> _Sides:
    """Return references without the judged captions that the protocol drops."""
    if own is not Own.DROP_FROM_IMAGE:
        others = _others(pair.references, _plain(pair.captions))
        return _kept(own, pair.references, others, removed), pair.second
    first = _kept(own, pair.references, _others(pair.references, of_image), removed)
    return first, None if pair.second is None else _others(pair.second, of_image)


def _kept(
    own: Own, references: tuple[str, ...], others: tuple[str, ...], removed: Counter[str]
) -> tuple[str, ...] | None:
    """Return the references of a caption, given those that are not its own; ``None``: it is left out. Count either."""
    if own is Own.KEEP or len(others) == len(references):
        return references
    if own is Own.DROP_CAPTION or not others:
        removed[_OWN if own is Own.DROP_CAPTION else _NONE_LEFT] += 1
        return None
    removed["references equal to a judged caption, removed"] += len(references) - len(others)
    return others


def _plain(captions: Iterable[str]) -> frozenset[str]:
    """Return captions with single spaces, for comparison."""
    return frozenset(" ".join(caption.split()) for caption in captions)


def _captions_of(captions: Iterable[tuple[str, Sequence[str]]]) -> dict[str, frozenset[str]]:
    """Return the judged captions of each image."""
    by_image: dict[str, set[str]] = {}
    for image, texts in captions:
        by_image.setdefault(image, set()).update(_plain(texts))
    return {image: frozenset(texts) for image, texts in by_image.items()}


def _others(references: tuple[str, ...], own: frozenset[str]) -> tuple[str, ...]:
    return tuple(reference for reference in references if " ".join(reference.split()) not in own)


def _without_counted(judgement: Judgement, counted: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Return a caption's references, of which each judged caption of the image has taken one that equals it."""
    left = Counter[str]()
    kept = []
    for reference in judgement.references:
        plain = " ".join(reference.split())
        left[plain] += 1
        if left[plain] > counted[judgement.image, plain]:
            kept.append(reference)
    return tuple(kept)


def _reasons(removed: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} ({count:,})" for reason, count in removed.items()) or "there was none"
