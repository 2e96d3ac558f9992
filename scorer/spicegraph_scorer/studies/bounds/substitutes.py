"""What stands in for held-out captions to find lower bounds: texts that can't describe the image.

Source: Wang and Gaizauskas, LREC 2016, "Cross-validating Image Description Datasets and Evaluation Metrics",
section 5. Their general text is the Brown corpus; here it is WordNet's definitions, and whatever sentences the
caller gives. The word list is WordNet's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_parser.lexicon import load_lexicon
from spicegraph_parser.wordnet import load_wordnet
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.studies.bounds.study import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.studies.bounds.study import Integers, Study

_SHORTEST_SENTENCE: Final = 5  # words
_SHORTEST_TEXT: Final = 10  # characters


@dataclass(frozen=True, slots=True)
class Lower:
    """Which lower bounds to find, and what they draw from.

    Attributes:
        kinds: keys of ``SUBSTITUTES``; those whose texts are not given are left out.
        others: the captions of other corpora, for ``inter``; each corpus is as likely as the others.
        sentences: general text, for ``sentences`` and ``gibberish-sentences``; sentences of fewer than five
            words or ten characters are left out, as in the source.
        lengths: the numbers of words of gibberish; ``None`` is the mean length of the captions, rounded.
        per_image: how many different texts are drawn for an image; ``None``: a new one for every caption.
        seed: the same seed draws the same texts, whatever other kinds are asked for.
    """

    kinds: tuple[str, ...] = (
        "intra",
        "inter",
        "sentences",
        "definitions",
        "gibberish",
        "gibberish-sentences",
        "words",
    )
    others: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = ()
    lengths: tuple[int | None, ...] = (10, None)
    per_image: int | None = None
    seed: int = 12345

    def __post_init__(self) -> None:
        """Refuse what nothing can be drawn from."""
        unknown = [kind for kind in self.kinds if kind not in SUBSTITUTES]
        if unknown:
            raise InputError(f"there is no lower bound {unknown[0]!a}; there are {', '.join(SUBSTITUTES)}")
        if any(length is not None and length < 1 for length in self.lengths) or not self.lengths:
            raise InputError("lengths: gibberish has at least one word")
        if self.per_image is not None and self.per_image < 1:
            raise InputError(f"per image: at least one text is drawn, got {self.per_image}")
        if not all(self.others):
            raise InputError("another corpus contains no caption")


@dataclass(frozen=True, slots=True)
class _Draw:
    """How many texts are drawn for each image, and what draws them."""

    study: Study
    counts: Integers
    generator: np.random.Generator
    per_image: int | None

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def trial(self, name: str, title: str, texts: Sequence[str]) -> Trial:
        """Return the trial of the texts: text k of an image stands in for caption k, or the first again."""
        ends = np.cumsum(self.counts).tolist()
        rows = zip([0, *ends], ends, self.study.captions)  # noqa: B905 (the last end begins no image)
        cut = ((texts[start:end], len(captions)) for start, end, captions in rows)
        candidates = tuple(tuple(mine[place % len(mine)] for place in range(size)) for mine, size in cut)
        few = "" if self.per_image is None else f", {self.per_image} drawn for each image"
        return Trial(name, "lower", candidates, title + few)


def lower_trials(study: Study, lower: Lower) -> Iterator[Trial]:
    """Yield the trials of the lower bounds, in the order of ``lower.kinds``.

    Raises:
        InputError: nothing can be drawn: there is a single image, or no sentence is long enough.
    """
    counts = study.sizes if lower.per_image is None else np.minimum(study.sizes, lower.per_image)
    for kind in dict.fromkeys(lower.kinds):
        place = list(SUBSTITUTES).index(kind)
        draw = _Draw(study, counts, np.random.default_rng([lower.seed, place]), lower.per_image)
        yield from SUBSTITUTES[kind](draw, lower)


def _intra(draw: _Draw, _lower: Lower) -> Iterator[Trial]:
    study = draw.study
    if len(study.ids) < 2:
        raise InputError("captions of other images: there is only one image")
    captions = [text for texts in study.captions for text in texts]
    sizes = np.repeat(study.sizes, draw.counts)
    starts = np.repeat(np.cumsum(study.sizes) - study.sizes, draw.counts)
    # A draw among the captions of the other images: those from the image's own first one on are moved behind its last.
    places = draw.generator.integers(0, len(captions) - sizes)
    places += np.where(places >= starts, sizes, 0)
    yield draw.trial("intra", "a caption of another image", [captions[place] for place in places.tolist()])


def _inter(draw: _Draw, lower: Lower) -> Iterator[Trial]:
    if not lower.others:
        return
    corpora = draw.generator.integers(0, len(lower.others), draw.total).tolist()
    shares = draw.generator.random(draw.total).tolist()
    texts = [
        lower.others[corpus][int(share * len(lower.others[corpus]))]
        for corpus, share in zip(corpora, shares, strict=True)
    ]
    yield draw.trial("inter", "a caption of another corpus", texts)


def _sentences(draw: _Draw, lower: Lower) -> Iterator[Trial]:
    if lower.sentences:
        yield _of_sentences(draw, "sentences", "a sentence of the given text", lower.sentences)


def _definitions(draw: _Draw, _lower: Lower) -> Iterator[Trial]:
    yield _of_sentences(draw, "definitions", "a definition of a dictionary", load_wordnet().glosses())


def _of_sentences(draw: _Draw, name: str, title: str, texts: Sequence[str]) -> Trial:
    long = [text for text in texts if len(text.split()) >= _SHORTEST_SENTENCE and len(text) >= _SHORTEST_TEXT]
    if not long:
        raise InputError(f"{name}: none has {_SHORTEST_SENTENCE} words and {_SHORTEST_TEXT} characters")
    places = draw.generator.integers(0, len(long), draw.total).tolist()
    return draw.trial(name, title, [long[place] for place in places])


def _gibberish(draw: _Draw, lower: Lower) -> Iterator[Trial]:
    captions = [text for texts in draw.study.captions for text in texts]
    yield from _of_words(draw, lower, "gibberish", "words of the captions", _tokens(captions))


def _gibberish_sentences(draw: _Draw, lower: Lower) -> Iterator[Trial]:
    if lower.sentences:
        name = "gibberish-sentences"
        yield from _of_words(draw, lower, name, "words of the given text", _tokens(lower.sentences))


def _words(draw: _Draw, lower: Lower) -> Iterator[Trial]:
    words = [word for word in load_lexicon().words() if word.isalpha() and word.isascii()]
    yield from _of_words(draw, lower, "words", "words of a dictionary", words)


def _of_words(draw: _Draw, lower: Lower, name: str, title: str, words: Sequence[str]) -> Iterator[Trial]:
    """Yield a trial for each length, of words that are drawn independently: as often as they stand in ``words``."""
    if not words:
        raise InputError(f"{name}: there are no words to draw from")
    for length in _lengths(draw.study, lower):
        places = draw.generator.integers(0, len(words), (draw.total, length)).tolist()
        texts = [" ".join([words[place] for place in row]) for row in places]
        yield draw.trial(f"{name}-{length}", f"{length} random {title}", texts)


def _lengths(study: Study, lower: Lower) -> list[int]:
    if None not in lower.lengths:
        return list(dict.fromkeys(length for length in lower.lengths if length is not None))
    tokens = tokenize_texts([text for texts in study.captions for text in texts])
    mean = max(1, round(sum(map(len, tokens)) / len(tokens)))
    return list(dict.fromkeys(mean if length is None else length for length in lower.lengths))


def _tokens(texts: Sequence[str]) -> list[str]:
    return [word for tokens in tokenize_texts(texts) for word in tokens]


SUBSTITUTES: Mapping[str, Callable[[_Draw, Lower], Iterator[Trial]]] = {
    "intra": _intra,
    "inter": _inter,
    "sentences": _sentences,
    "gibberish": _gibberish,
    "gibberish-sentences": _gibberish_sentences,
    "words": _words,
    "definitions": _definitions,
}
"""The kinds of lower bounds. To add one: a function here and a line at the end (a kind's place seeds its draws)."""
