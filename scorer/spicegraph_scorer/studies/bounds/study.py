"""Images whose captions are held out in turn, and what stands in the held-out captions' places.

Round k holds out caption k (counted from 0) of every image: what is tested in its place is scored against the
image's other captions, in their order. An image with fewer captions starts again from its first, so that every
image takes part in every round, and what a metric derives from the whole corpus (BLEU's sums, CIDEr's document
frequencies) always comes from all images. There are as many rounds as the image with most captions has captions.

One round is one ordinary corpus: its scores are those that the metric itself gives for :meth:`Study.corpus`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.items import Item, ItemId
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.core.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric

Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
IntegerTable: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Key = TypeVar("Key", bound=ItemId)
Kind = Literal["human", "system", "lower"]
Candidates: TypeAlias = tuple[tuple[str, ...], ...]
"""For each image as many texts as it has captions: what is scored while the caption of that place is held out."""

HUMAN: Final = "human"
"""The name of the trial in which the held-out captions themselves are scored: the upper bound."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Trial:
    """What is scored in the place of the held-out captions: themselves, a system's captions, or something else."""

    name: str
    kind: Kind
    candidates: Candidates
    title: str = ""
    """What it is, in words."""


@dataclass(frozen=True)
class Study:
    """Images with two or more captions each.

    Example:
        >>> study = Study((7,), (("a dog", "a brown dog", "a puppy"),))
        >>> study.corpus(human(study).candidates, 1).items
        (Item(id=7, candidate='a brown dog', references=('a dog', 'a puppy')),)
    """

    ids: tuple[ItemId, ...]
    captions: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        """Refuse what can't be held out."""
        if not self.ids:
            raise InputError("there are no images with captions")
        few = [name for name, texts in zip(self.ids, self.captions, strict=True) if len(texts) < 2]
        if few:
            raise InputError(
                f"{counted(len(few), 'image')} with fewer than two captions, so that none can be held out: {_some(few)}"
            )
        twice = [name for name, count in Counter(self.ids).items() if count > 1]
        if twice:
            raise InputError(f"{counted(len(twice), 'image')} more than once: {_some(twice)}")

    @classmethod
    def of(cls, captions: Mapping[Key, Sequence[str]], *, first: int | None = None, partial: bool = False) -> Study:
        """Make a study of captions by image.

        Args:
            captions: each image's captions, in order.
            first: only the first so many captions of each image; ``None``: all of them.
            partial: leave out images with too few captions, instead of refusing them.

        Raises:
            InputError: ``first`` is below 2, images have too few captions, or none is left.
        """
        wanted = 2 if first is None else first
        if wanted < 2:
            raise InputError(f"captions: at least 2 of each image are needed to hold one out, got {wanted}")
        few = [name for name, texts in captions.items() if len(texts) < wanted]
        if few and not partial:
            raise InputError(
                f"{counted(len(few), 'image')} with fewer than {wanted} captions: {_some(few)}; "
                "--partial leaves such images out"
            )
        left = {name: tuple(texts[:first]) for name, texts in captions.items() if len(texts) >= wanted}
        return cls(tuple(left), tuple(left.values()))

    @cached_property
    def sizes(self) -> Integers:
        """The number of captions of each image."""
        return np.fromiter(map(len, self.captions), np.int64, len(self.captions))

    @property
    def rounds(self) -> int:
        """The number of rounds: the most captions that an image has."""
        return int(self.sizes.max())

    @cached_property
    def held(self) -> IntegerTable:
        """Which of all captions, counted image by image, each round (row) holds out of each image (column)."""
        starts = np.cumsum(self.sizes) - self.sizes
        table: IntegerTable = starts + np.arange(self.rounds)[:, None] % self.sizes
        return table

    @cached_property
    def new(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Whether each round (row) holds out a caption of each image (column) for the first time."""
        return np.arange(self.rounds)[:, None] < self.sizes

    def corpus(self, candidates: Candidates, number: int) -> Corpus:
        """Return round ``number`` (from 0) as a corpus: what the metric is called with."""
        items = []
        for name, texts, mine in zip(self.ids, self.captions, candidates, strict=True):
            place = number % len(texts)
            items.append(Item(name, mine[place], texts[:place] + texts[place + 1 :]))
        return Corpus(tuple(items))


def human(study: Study) -> Trial:
    """Return the trial of the captions themselves."""
    return Trial(HUMAN, "human", study.captions, "each caption against the others of its image")


def system(name: str, captions: Mapping[Key, str], study: Study) -> Trial:
    """Return the trial of a system's captions: in every round the same, against the captions that are not held out.

    Raises:
        InputError: an image of the study has no caption; the message names the system and some images.
    """
    texts: dict[ItemId, str] = dict(captions.items())
    missing = [image for image in study.ids if image not in texts]
    if missing:
        raise InputError(f"{name}: {counted(len(missing), 'image')} without a caption: {_some(missing)}")
    rows = zip(study.ids, study.captions, strict=True)
    return Trial(name, "system", tuple((texts[image],) * len(held) for image, held in rows), "a system")


def _some(names: Iterable[ItemId]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(ascii(name) for name in listed[:_SHOWN]) + more


Cube: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]

_PAIRS: Final = 10_000  # pairs of captions in a batch: bounds memory, and lets processes share the work


@dataclass(frozen=True, slots=True)
class Table:
    """A metric's scores of one trial.

    ``each[round, image, score]`` is NaN where a score is undefined. ``columns[round, image, column]`` is what
    the corpus scores sum, for metrics whose corpus score is not the mean of the items' scores.
    """

    names: tuple[str, ...]
    each: Cube
    columns: Cube | None


class Part(NamedTuple):
    """Scores of some statistics: their names, (statistics, scores), and what is summed, (statistics, columns)."""

    names: tuple[str, ...]
    each: Matrix
    columns: Matrix | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Some images: their captions, and each trial's candidates for them."""

    captions: Candidates
    trials: tuple[Candidates, ...]

    def texts(self) -> list[str]:
        """Return every distinct text."""
        rows = (texts for texts_of in (self.captions, *self.trials) for texts in texts_of)
        return list(dict.fromkeys(text for texts in rows for text in texts))


def batches(study: Study, trials: Sequence[Candidates]) -> Iterator[Batch]:
    """Cut the images into batches of about equal work."""
    edges = np.flatnonzero(np.diff(np.cumsum(study.sizes**2) // _PAIRS)) + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(study.ids)], strict=True):
        yield Batch(study.captions[start:end], tuple(trial[start:end] for trial in trials))


def part(metric: Metric[Any], statistics: Sequence[Any]) -> Part:
    """Return the scores of some statistics; the statistics themselves are not kept."""
    scores = metric.total(statistics)
    each = np.array([[np.nan if v is None else v for v in score.each] for score in scores], np.float64).T
    columns = None if metric.means else metric.columns(statistics)
    return Part(tuple(score.name for score in scores), each, columns)


def table_of_rounds(metric: Metric[Any], rounds: Iterable[Sequence[Any]]) -> Table:
    """Return the table of statistics that come round by round, each in the order of the images."""
    parts = [part(metric, statistics) for statistics in rounds]
    columns = [found.columns for found in parts if found.columns is not None]
    return Table(parts[0].names, np.stack([found.each for found in parts]), np.stack(columns) if columns else None)


def table_of_parts(study: Study, parts: Sequence[Part]) -> Table:
    """Return the table of the scores of every held-out caption, which come batch by batch."""
    each = np.concatenate([found.each for found in parts])[study.held]
    columns = [found.columns for found in parts if found.columns is not None]
    return Table(parts[0].names, each, np.concatenate(columns)[study.held] if columns else None)
