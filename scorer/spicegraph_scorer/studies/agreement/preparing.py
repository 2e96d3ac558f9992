"""What a protocol leaves out or changes before anything is scored, counted by reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError
from spicegraph_scorer.studies.agreement.protocols import Own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_scorer.studies.agreement.judgements import CaptionPair, Judgement
    from spicegraph_scorer.studies.agreement.protocols import CaptionProtocol, PairProtocol

__all__ = ["Prepared", "prepare", "prepare_pairs"]


class Prepared(NamedTuple):
    """The judgements that a protocol uses, and how many it left out or changed, by reason."""

    judgements: tuple[Judgement, ...]
    removed: Mapping[str, int]


_OWN = "captions that are a reference of their image"
_NONE_LEFT = "captions without another reference"
_OWN_REFERENCES = "references equal to a judged caption, removed"
_SYSTEMS = "captions by left-out systems"


def prepare(judgements: Iterable[Judgement], protocol: CaptionProtocol) -> Prepared:
    """Leave out or change what the protocol says.

    Raises:
        InputError: nothing is left.
    """
    judged = tuple(judgements)
    of_image = _captions_of((each.image, (each.candidate,)) for each in judged)
    kept: list[Judgement] = []
    removed: Counter[str] = Counter()
    for judgement in judged:
        if judgement.system in protocol.without_systems:
            removed[_SYSTEMS] += 1
            continue
        own = of_image[judgement.image] if protocol.own is Own.DROP_FROM_IMAGE else _plain((judgement.candidate,))
        others = _others(judgement.references, own)
        outcome = _OWN_RULES[protocol.own](judgement.references, others)
        removed.update(outcome.counted)
        if outcome.references is not None:
            kept.append(replace(judgement, references=outcome.references))
    if not kept:
        raise InputError(f"the protocol {protocol.name} leaves no caption: {_reasons(removed)}")
    return Prepared(tuple(kept), dict(removed))


def prepare_pairs(
    pairs: Iterable[CaptionPair], protocol: PairProtocol
) -> tuple[tuple[CaptionPair, ...], dict[str, int]]:
    """Leave out pairs without a preference, and own references as the protocol says; return what was removed.

    Raises:
        InputError: nothing is left.
    """
    judged = tuple(pairs)
    of_image = _captions_of((each.image, each.captions) for each in judged)
    kept: list[CaptionPair] = []
    removed: Counter[str] = Counter()
    for pair in judged:
        if pair.preferred is None:
            removed["pairs on which people are tied"] += 1
            continue
        own = of_image[pair.image] if protocol.own is Own.DROP_FROM_IMAGE else _plain(pair.captions)
        outcome = _OWN_RULES[protocol.own](pair.references, _others(pair.references, own))
        removed.update(outcome.counted)
        if outcome.references is not None:
            kept.append(replace(pair, references=outcome.references))
    if not kept:
        raise InputError(f"the protocol {protocol.name} leaves no pair: {_reasons(removed)}")
    return tuple(kept), dict(removed)


class _Outcome(NamedTuple):
    references: tuple[str, ...] | None
    """``None``: the caption is left out."""
    counted: Mapping[str, int]


def _keep(references: tuple[str, ...], _others: tuple[str, ...]) -> _Outcome:
    return _Outcome(references, {})


def _drop_caption(references: tuple[str, ...], others: tuple[str, ...]) -> _Outcome:
    return _Outcome(references, {}) if len(others) == len(references) else _Outcome(None, {_OWN: 1})


def _drop_reference(references: tuple[str, ...], others: tuple[str, ...]) -> _Outcome:
    counted = {_OWN_REFERENCES: len(references) - len(others)} if len(others) < len(references) else {}
    if references and not others:
        return _Outcome(None, {_NONE_LEFT: 1})
    return _Outcome(others, counted)


_OWN_RULES: Mapping[Own, Callable[[tuple[str, ...], tuple[str, ...]], _Outcome]] = {
    Own.KEEP: _keep,
    Own.DROP_CAPTION: _drop_caption,
    Own.DROP_REFERENCE: _drop_reference,
    Own.DROP_FROM_IMAGE: _drop_reference,
}


def _plain(captions: Iterable[str]) -> frozenset[str]:
    """Return captions with single spaces: what is compared."""
    return frozenset(" ".join(caption.split()) for caption in captions)


def _captions_of(captions: Iterable[tuple[str, Sequence[str]]]) -> dict[str, frozenset[str]]:
    """Return the judged captions of each image."""
    found: dict[str, set[str]] = {}
    for image, texts in captions:
        found.setdefault(image, set()).update(_plain(texts))
    return {image: frozenset(texts) for image, texts in found.items()}


def _others(references: tuple[str, ...], own: frozenset[str]) -> tuple[str, ...]:
    return tuple(reference for reference in references if " ".join(reference.split()) not in own)


def _reasons(removed: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} ({count:,})" for reason, count in removed.items()) or "there was none"
