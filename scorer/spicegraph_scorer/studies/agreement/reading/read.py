"""From files to judgements, or one error that lists everything that stands against it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.faults import Fault, input_error
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Limits
from spicegraph_scorer.studies.agreement.judgements import CaptionPair, Judged, Judgement
from spicegraph_scorer.studies.agreement.reading.bank import read_bank
from spicegraph_scorer.studies.agreement.reading.content import Content, read_content, records_of
from spicegraph_scorer.studies.agreement.reading.negatives import foil_pairs, is_foil, is_negatives, negative_pairs
from spicegraph_scorer.studies.agreement.reading.pascal50s import is_pascal50s, read_pascal50s
from spicegraph_scorer.studies.agreement.reading.published import (
    composite_judgements,
    flickr8k_judgements,
    grouped_judgements,
    is_composite,
    is_flickr8k,
    is_grouped,
)
from spicegraph_scorer.studies.agreement.reading.records import judgements_of_records, pairs_of_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["JUDGEMENT_FORMATS", "PAIR_FORMATS", "read_judgements", "read_pairs"]

AnyJudged = TypeVar("AnyJudged", Judgement, CaptionPair)


class Asked(NamedTuple):
    """What the caller said beside the file: where the references are, and which field has the rating."""

    references: Sequence[str]
    rating: str | None
    limits: Limits


class JudgementFormat(NamedTuple):
    """A format of rated captions: its name, how to tell it, how to read it, and whether it was tried on real files."""

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, Asked, list[Fault]], tuple[list[Judgement], int]]
    tried: str


def _is_records(content: Content) -> bool:
    return content.data.lstrip()[:1] in {b"{", b"["}


def _records(content: Content, asked: Asked, faults: list[Fault]) -> tuple[list[Judgement], int]:
    return judgements_of_records(records_of(content, faults), faults, rating=asked.rating)


def _grouped(content: Content, _asked: Asked, faults: list[Fault]) -> tuple[list[Judgement], int]:
    return grouped_judgements(content, faults)


def _flickr8k(content: Content, asked: Asked, faults: list[Fault]) -> tuple[list[Judgement], int]:
    bank = read_bank(asked.references, needed_by="Flickr8k's annotations", limits=asked.limits)
    return flickr8k_judgements(content, bank, faults)


def _composite(content: Content, asked: Asked, faults: list[Fault]) -> tuple[list[Judgement], int]:
    bank = read_bank(asked.references, needed_by="Composite's tables", limits=asked.limits)
    return composite_judgements(content, bank, faults)


JUDGEMENT_FORMATS: Sequence[JudgementFormat] = (
    JudgementFormat(
        "human_judgement by image (CLIPScore's flickr8k.json)",
        is_grouped,
        _grouped,
        "on the recorded shape only",
    ),
    JudgementFormat("Flickr8k annotations", is_flickr8k, _flickr8k, "on the recorded shape only"),
    JudgementFormat("Composite table", is_composite, _composite, "on the recorded shape only"),
    JudgementFormat("JSON Lines", _is_records, _records, "on real sets brought into it (THumB, CapEval1k)"),
)
"""Every format of rated captions; the first that recognises a file reads it."""


class PairFormat(NamedTuple):
    """A format of pairs: its name, how to tell it, how to read it, and whether it was tried on real files."""

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, Asked, list[Fault]], tuple[list[CaptionPair], int]]
    tried: str


def _negatives(content: Content, asked: Asked, faults: list[Fault]) -> tuple[list[CaptionPair], int]:
    bank = read_bank(asked.references, needed_by="SugarCrepe and VALSE", limits=asked.limits, option=_ANNOTATIONS)
    return negative_pairs(content, bank, faults)


def _foil(content: Content, asked: Asked, faults: list[Fault]) -> tuple[list[CaptionPair], int]:
    bank = read_bank(asked.references, needed_by="FOIL's files", limits=asked.limits, option=_ANNOTATIONS)
    return foil_pairs(content, bank, faults)


def _pair_records(content: Content, _asked: Asked, faults: list[Fault]) -> tuple[list[CaptionPair], int]:
    return pairs_of_records(records_of(content, faults), faults), 0


_ANNOTATIONS = "--annotations"
_PASCAL50S = "PASCAL-50S"

PAIR_FORMATS: Sequence[PairFormat] = (
    PairFormat("SugarCrepe, VALSE", is_negatives, _negatives, "SugarCrepe: on its pairs; VALSE: the recorded shape"),
    PairFormat("FOIL", is_foil, _foil, "on the recorded shape only"),
    PairFormat("JSON Lines", _is_records, _pair_records, "on real sets brought into it (FOIL of VALSE, SugarCrepe)"),
)
"""Every format of pairs but PASCAL-50S, whose path says it; the first that recognises a file reads it."""


def read_judgements(
    *paths: str, references: Sequence[str] = (), rating: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Judged[Judgement]:
    """Read rated captions; what the format is, the content says.

    JSON Lines (or a list) with ``candidate`` (or ``caption``, ``hyp``, ``test``), ``references`` (``refs``),
    ``ratings`` (``rating``, ``human_score``, ``score``: a number, or a list with one a rater), and if known
    ``image_id``, ``system`` and ``metrics``: scores of other metrics by name. Published: Flickr8k's
    ``ExpertAnnotations.txt`` and ``CrowdFlowerAnnotations.txt``, Composite's tables, and the JSON that CLIPScore's
    scripts make of them.

    Args:
        paths: the file, or ``-`` for standard input; several, if a set is in several files.
        references: Flickr's token files or COCO annotations, for formats without references.
        rating: the field with the rating, where a file has several (JSON Lines only).
        limits: how much is read at most.

    Raises:
        InputError: the message lists every fault with item, field and reason.
        LimitError: the file is too large.
    """
    return _joined([_read_judgements(path, Asked(references, rating, limits)) for path in paths])


def _read_judgements(path: str, asked: Asked) -> Judged[Judgement]:
    content = read_content(path, asked.limits)
    form = next((form for form in JUDGEMENT_FORMATS if form.recognises(content)), None)
    if form is None:
        names = "; ".join(form.name for form in JUDGEMENT_FORMATS)
        raise InputError(f"{content.name}: holds no rated captions in a format that is known ({names})")
    faults: list[Fault] = []
    found, unrated = form.read(content, asked, faults)
    if not found and not faults:
        faults.append(Fault("", "", "holds no rated caption"))
    if faults:
        raise input_error(content.name, faults)
    return Judged(tuple(found), content.name, form.name, unrated)


def read_pairs(*paths: str, annotations: Sequence[str] = (), limits: Limits = DEFAULT_LIMITS) -> Judged[CaptionPair]:
    """Read pairs of captions; what the format is, the content says.

    JSON Lines (or a list) with ``captions`` (two), ``preferred`` or ``label`` (0, 1, or null for a tie),
    ``references``, and if known ``category``, ``image_id`` and ``metrics``: two scores by name of the metric.
    Published: the folder that holds PASCAL-50S's ``consensus_pascal.mat`` and ``pair_pascal.mat``; SugarCrepe's,
    VALSE's and FOIL's JSON.

    Args:
        paths: the file, or ``-`` for standard input; several, if a set is in several files.
        annotations: COCO annotations (or token files) with the references, for formats that have none.
        limits: how much is read at most.

    Raises:
        InputError: the message lists every fault with item, field and reason.
        LimitError: the file is too large.
    """
    return _joined([_read_pairs(path, Asked(annotations, None, limits)) for path in paths])


def _read_pairs(path: str, asked: Asked) -> Judged[CaptionPair]:
    if is_pascal50s(path):
        return Judged(read_pascal50s(path, limits=asked.limits), path, _PASCAL50S)
    content = read_content(path, asked.limits)
    form = next((form for form in PAIR_FORMATS if form.recognises(content)), None)
    if form is None:
        names = "; ".join(form.name for form in PAIR_FORMATS)
        raise InputError(
            f"{content.name}: holds no pairs in a format that is known ({names}; {_PASCAL50S}: its folder)"
        )
    faults: list[Fault] = []
    found, unconfirmed = form.read(content, asked, faults)
    if not found and not faults:
        faults.append(Fault("", "", "holds no pair"))
    if faults:
        raise input_error(content.name, faults)
    return Judged(tuple(found), content.name, form.name, unconfirmed)


def _joined(read: Sequence[Judged[AnyJudged]]) -> Judged[AnyJudged]:
    """Return what several files hold as one set."""
    if len(read) == 1:
        return read[0]
    return Judged(
        tuple(replace(each, place=f"{part.source}, {each.place}") for part in read for each in part.items),
        ", ".join(part.source for part in read),
        ", ".join(dict.fromkeys(part.format for part in read)),
        sum(part.unrated for part in read),
    )
