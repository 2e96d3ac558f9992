"""Captioned images, and what a system says of them: captions, or words with scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.annotations import read_annotations
from spicegraph_scorer.readers.checks import id_faults
from spicegraph_scorer.readers.faults import Fault, input_error
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, Limits, open_source
from spicegraph_scorer.studies.agreement.reading.content import Content, read_content, records_of
from spicegraph_scorer.studies.agreement.reading.values import Row, field_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.core.items import ItemId

__all__ = ["SystemSays", "read_captioned_images", "read_word_scores"]

_IDS = ("image_id", "id")
_CAPTIONS = ("caption", "candidate", "test")


class SystemSays(NamedTuple):
    """What a system says of each image: captions, or words with scores; the other one is empty."""

    captions: Mapping[ItemId, tuple[str, ...]]
    scores: Mapping[ItemId, Mapping[str, float]]


def read_captioned_images(path: str, *, limits: Limits = DEFAULT_LIMITS) -> Mapping[ItemId, tuple[str, ...]]:
    """Read COCO annotations, or the references of any input of ``score``.

    Raises:
        InputError: the file is neither; the message lists every fault.
        LimitError: it is larger than the limits.
    """
    with open_source(path, limits=limits) as source:
        start = source.stream.peek(1).lstrip()[:1]
    if start == b"{" and _is_annotations(read_content(path, limits)):
        with open_source(path, limits=limits) as source:
            captions = read_annotations(source, limits=limits).captions
        return {image: texts for image, texts in captions.items() if texts}
    return {item.id: item.references for item in read_items(path, limits=limits).items}


def _is_annotations(content: Content) -> bool:
    return isinstance(content.value, dict) and "annotations" in content.value


def read_word_scores(path: str, *, limits: Limits = DEFAULT_LIMITS) -> SystemSays:
    """Read a system's captions (COCO results, JSON Lines; several an image are fine), or its words with scores.

    Words: JSON Lines with ``image_id`` and ``words``, an object of numbers of which more is surer.

    Raises:
        InputError: the message lists every fault.
        LimitError: the file is larger than the limits.
    """
    content = read_content(path, limits)
    faults: list[Fault] = []
    captions: dict[ItemId, tuple[str, ...]] = {}
    scores: dict[ItemId, dict[str, float]] = {}
    for place, fields in records_of(content, faults):
        row = Row(place, fields, faults)
        image = fields.get(field_of(fields, _IDS))
        reasons = list(id_faults(image))
        for reason in reasons:
            row.fault("image_id", reason)
        if reasons or not isinstance(image, int | str):
            continue
        if "words" in fields:
            if image in scores:
                row.fault("image_id", "stands twice")
            numbers = {word: row.number(f"words.{word}", value) for word, value in row.mapping("words").items()}
            scores[image] = {word.lower(): number for word, number in numbers.items() if number is not None}
        else:
            captions[image] = (*captions.get(image, ()), row.caption(_CAPTIONS))
    if captions and scores:
        faults.append(Fault("", "", 'holds captions as well as "words"'))
    if not captions and not scores and not faults:
        faults.append(Fault("", "", "holds no caption"))
    if faults:
        raise input_error(content.name, faults)
    return SystemSays(captions, scores)
