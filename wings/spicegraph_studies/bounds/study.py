"""Images whose captions are held out in turn, and what stands in the held-out captions' places.

Round k holds out caption k (from 0) of every image: what is tested in its place is scored against the image's other
captions, in their order. An image with fewer captions starts again from its first, so that each round is one ordinary
corpus of all images; there are as many rounds as the most captions of an image.

What stands there to find lower bounds are texts that can't describe the image. Source: Wang and Gaizauskas, LREC 2016,
"Cross-validating Image Description Datasets and Evaluation Metrics", section 5; in place of their Brown corpus stand
WordNet's definitions and words, and whatever sentences the caller gives.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from spicegraph_parser.errors import InputError, counted
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scorer.core.items import Item, ItemId
from spicegraph_scorer.core.tokens import Corpus, tokenize_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.metric import Metric

Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
IntegerTable: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Key = TypeVar("Key", bound=ItemId)
Kind = Literal["human", "system", "lower"]
Candidates: TypeAlias = tuple[tuple[str, ...], ...]
"""For each image as many texts as it has captions: what is scored while the caption of that place is held out."""

HUMAN: Final = "human"  # the name of the trial in which the held-out captions themselves are scored: the upper bound

_SHOWN: Final = 5
Cube: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
Scores = TypeVar("Scores", bound="np.ndarray[tuple[int, ...], np.dtype[np.float64]]")

_PAIRS: Final = 10_000  # pairs of captions in a batch: bounds memory, and lets processes share the work
_SHORTEST_SENTENCE: Final = 5  # words, as in the source
_SHORTEST_TEXT: Final = 10  # characters
Texts: TypeAlias = "Iterator[tuple[str, str, Sequence[str]]]"
"""Of each trial its name, its title in words, and its texts: one for each place where a text is drawn."""
Substitutes: TypeAlias = "Callable[[BoundsStudy, Integers, Lower, np.random.Generator], Texts]"


@dataclass(frozen=True, slots=True)
class Trial:
    """Captions to score in place of the held-out ones: themselves, a system's, or others."""

    name: str
    kind: Kind
    candidates: Candidates
    title: str = ""  # what it is, in words


@dataclass(frozen=True)
class BoundsStudy:
    """Images with two or more captions each.

    Example:
        >>> study = BoundsStudy((7,), (("a dog", "a brown dog", "a puppy"),))
        >>> study.corpus(human(study).candidates, 1).items
        (Item(id=7, candidate='a brown dog', references=('a dog', 'a puppy')),)
    """

    ids: tuple[ItemId, ...]
    captions: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        """Refuse images with fewer than two captions, or no images."""
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
    def of(
        cls, captions: Mapping[Key, Sequence[str]], *, first: int | None = None, partial: bool = False
    ) -> BoundsStudy:
        """Make a study of captions by image.

        Args:
            captions: each image's captions, in order.
            first: only the first so many captions of each image; ``None``: all of them.
            partial: leave out images with too few captions, instead of refusing them.
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
        """Return the corpus of round ``number`` (from 0), for the metric."""
        items = []
        for name, texts, of_image in zip(self.ids, self.captions, candidates, strict=True):
            place = number % len(texts)
            items.append(Item(name, of_image[place], texts[:place] + texts[place + 1 :]))
        return Corpus(tuple(items))


def human(study: BoundsStudy) -> Trial:
    """Return the trial of the captions themselves."""
    return Trial(HUMAN, "human", study.captions, "each caption against the others of its image")


def system(name: str, captions: Mapping[Key, str], study: BoundsStudy) -> Trial:
    """Return the trial of a system's captions: in every round the same, against the captions that are not held out."""
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


@dataclass(frozen=True, slots=True)
class Table(Generic[Scores]):
    """A metric's scores of one trial, [round, image, score]; of a part, [item, score]; NaN where undefined."""

    names: tuple[str, ...]
    each: Scores
    columns: Scores | None


def batches(study: BoundsStudy, trials: Sequence[Candidates]) -> Iterator[tuple[Candidates, ...]]:
    """Cut the images into batches of about equal work: their captions, and each trial's candidates for them."""
    edges = np.flatnonzero(np.diff(np.cumsum(study.sizes**2) // _PAIRS)) + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(study.ids)], strict=True):
        yield study.captions[start:end], *(trial[start:end] for trial in trials)


def part(metric: Metric[Any], statistics: Sequence[Any]) -> Table[Matrix]:
    """Return the scores of some statistics; the statistics themselves are not kept."""
    scores = metric.total(statistics)
    each = np.array([score.each for score in scores], np.float64).T
    return Table(tuple(score.name for score in scores), each, None if metric.means else metric.columns(statistics))


def joined(parts: Sequence[Table[Matrix]], join: Callable[[list[Matrix]], Cube]) -> Table[Cube]:
    """Return the table of parts: ``join`` stacks rounds, or puts the scores of held-out captions in their rounds."""
    columns = [of_part.columns for of_part in parts if of_part.columns is not None]
    return Table(parts[0].names, join([of_part.each for of_part in parts]), join(columns) if columns else None)


@dataclass(frozen=True, slots=True)
class Lower:
    """The lower bounds to find (keys of ``SUBSTITUTES``) and their sources; kinds without are skipped."""

    kinds: tuple[str, ...] = ("intra", "inter", "sentences", "definitions", "gibberish", "gibberish-sentences", "words")
    others: tuple[tuple[str, ...], ...] = ()  # the captions of other corpora, for ``inter``; each is as likely
    sentences: tuple[str, ...] = ()  # general text, for ``sentences`` and ``gibberish-sentences``
    lengths: tuple[int | None, ...] = (10, None)  # words of gibberish; ``None``: the mean length of the captions
    per_image: int | None = None  # how many different texts are drawn; ``None``: a new one for every caption
    seed: int = 12345  # draws the same texts, whatever other kinds are asked for

    def __post_init__(self) -> None:
        """Refuse unknown kinds, and lengths or counts below one."""
        unknown = [kind for kind in self.kinds if kind not in SUBSTITUTES]
        if unknown:
            raise InputError(f"there is no lower bound {unknown[0]!a}; there are {', '.join(SUBSTITUTES)}")
        if any(length is not None and length < 1 for length in self.lengths) or not self.lengths:
            raise InputError("lengths: gibberish has at least one word")
        if self.per_image is not None and self.per_image < 1:
            raise InputError(f"per image: at least one text is drawn, got {self.per_image}")
        if not all(self.others):
            raise InputError("another corpus contains no caption")


def lower_trials(study: BoundsStudy, lower: Lower) -> Iterator[Trial]:
    """Yield the trials of the lower bounds, in the order of ``lower.kinds``."""
    counts = study.sizes if lower.per_image is None else np.minimum(study.sizes, lower.per_image)
    few = "" if lower.per_image is None else f", {lower.per_image} drawn for each image"
    ends = np.cumsum(counts).tolist()
    for kind in dict.fromkeys(lower.kinds):
        generator = np.random.default_rng([lower.seed, list(SUBSTITUTES).index(kind)])
        for name, title, texts in SUBSTITUTES[kind](study, counts, lower, generator):
            rows = zip([0, *ends], ends, study.captions)  # noqa: B905 (the last end begins no image)
            cut = ((texts[start:end], len(captions)) for start, end, captions in rows)
            # text k of an image stands in for caption k, or the first again
            places = tuple(tuple(of_image[place % len(of_image)] for place in range(size)) for of_image, size in cut)
            yield Trial(name, "lower", places, title + few)


def _intra(study: BoundsStudy, counts: Integers, _lower: Lower, generator: np.random.Generator) -> Texts:
    if len(study.ids) < 2:
        raise InputError("captions of other images: there is only one image")
    captions = [text for texts in study.captions for text in texts]
    sizes = np.repeat(study.sizes, counts)
    starts = np.repeat(np.cumsum(study.sizes) - study.sizes, counts)
    # A draw among the captions of the other images: those from the image's own first one on are moved behind its last.
    places = generator.integers(0, len(captions) - sizes)
    places += np.where(places >= starts, sizes, 0)
    yield "intra", "a caption of another image", [captions[place] for place in places.tolist()]


def _inter(_study: BoundsStudy, counts: Integers, lower: Lower, generator: np.random.Generator) -> Texts:
    if not lower.others:
        return
    corpora = generator.integers(0, len(lower.others), counts.sum()).tolist()
    shares = generator.random(counts.sum()).tolist()
    chosen = zip([lower.others[corpus] for corpus in corpora], shares, strict=True)
    yield "inter", "a caption of another corpus", [texts[int(share * len(texts))] for texts, share in chosen]


def _of_sentences(name: str, title: str, texts_of: Callable[[Lower], Sequence[str] | None]) -> Substitutes:
    """Return a function that draws trials from sentences; none without sentences."""

    def draw(_study: BoundsStudy, counts: Integers, lower: Lower, generator: np.random.Generator) -> Texts:
        if not (texts := texts_of(lower)):
            return
        long = [text for text in texts if len(text.split()) >= _SHORTEST_SENTENCE and len(text) >= _SHORTEST_TEXT]
        if not long:
            raise InputError(f"{name}: none has {_SHORTEST_SENTENCE} words and {_SHORTEST_TEXT} characters")
        yield name, title, [long[place] for place in generator.integers(0, len(long), counts.sum()).tolist()]

    return draw


def _of_words(name: str, title: str, words_of: Callable[[BoundsStudy, Lower], Sequence[str] | None]) -> Substitutes:
    """Return a function that draws words by frequency in the text: a trial per length."""

    def draw(study: BoundsStudy, counts: Integers, lower: Lower, generator: np.random.Generator) -> Texts:
        words = words_of(study, lower)
        if words is None:
            return
        if not words:
            raise InputError(f"{name}: there are no words to draw from")
        mean = 0
        if None in lower.lengths:
            mean = round(len(_tokens(study.captions)) / int(study.sizes.sum())) or 1
        for length in dict.fromkeys(mean if length is None else length for length in lower.lengths):
            places = generator.integers(0, len(words), (counts.sum(), length)).tolist()
            texts = [" ".join([words[at] for at in row]) for row in places]
            yield f"{name}-{length}", f"{length} random {title}", texts

    return draw


def _tokens(captions: Iterable[Sequence[str]]) -> list[str]:
    return [word for tokens in tokenize_texts(list(chain.from_iterable(captions))) for word in tokens]


SUBSTITUTES: Mapping[str, Substitutes] = {
    "intra": _intra,
    "inter": _inter,
    "sentences": _of_sentences("sentences", "a sentence of the given text", lambda lower: lower.sentences),
    "gibberish": _of_words("gibberish", "words of the captions", lambda study, _: _tokens(study.captions)),
    "gibberish-sentences": _of_words(
        "gibberish-sentences",
        "words of the given text",
        lambda _, lower: _tokens([lower.sentences]) if lower.sentences else None,
    ),
    "words": _of_words(
        "words",
        "words of a dictionary",
        lambda _study, _lower: [word for word in load_lexicon().words() if word.isalpha() and word.isascii()],
    ),
    "definitions": _of_sentences(
        "definitions", "a definition of a dictionary", lambda _lower: load_wordnet().glosses()
    ),
}
"""The kinds of lower bounds. To add one: a function here and a line at the end (a kind's place seeds its draws)."""
