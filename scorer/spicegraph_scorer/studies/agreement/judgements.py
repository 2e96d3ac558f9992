"""What people said about captions: ratings of one, or a choice between two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Generic, TypeVar

__all__ = ["CaptionPair", "GivenScores", "Judged", "Judgement"]

GivenScores = Mapping[str, float | None]
"""Scores that stand in the input, by the metric's name: of metrics that are not ours."""

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One caption of an image with the ratings that people gave it.

    Attributes:
        place: where it stands in its file, for messages.
        image: the image; captions of one image are drawn together when intervals are made.
        candidate: the caption.
        references: the image's reference captions; empty only where all scores are given.
        ratings: one a rater, at least one; on whatever scale, more is better.
        given: scores of other metrics.
        system: what wrote the caption, where that is known.
    """

    place: str
    image: str
    candidate: str
    references: tuple[str, ...]
    ratings: tuple[float, ...]
    given: GivenScores = field(default_factory=dict)
    system: str | None = None


@dataclass(frozen=True, slots=True)
class CaptionPair:
    """Two captions of an image, and which of them people prefer.

    Attributes:
        place: where it stands in its file, for messages.
        image: the image.
        category: the kind of pair, such as ``HC`` or ``swap_obj``; empty: there are no kinds.
        captions: the two captions.
        preferred: 0 or 1; ``None``: people are tied.
        references: the image's reference captions.
        given: scores of other metrics, one for each caption.
    """

    place: str
    image: str
    category: str
    captions: tuple[str, str]
    preferred: int | None
    references: tuple[str, ...]
    given: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged(Generic[Content]):
    """What a file holds: its judgements or pairs, its name and format, and how many rows had no judgement."""

    items: tuple[Content, ...]
    source: str
    format: str
    unrated: int = 0

    @property
    def title(self) -> str:
        """The names of the files, without their folders."""
        return ", ".join(PurePath(path).name for path in self.source.split(", "))
