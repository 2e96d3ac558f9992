"""METEOR as it was published in 2005, in the form of nltk; its numbers have nothing to do with METEOR 1.5's.

nltk's own function does the work. What it asks of WordNet is answered by the bundled lexicon, so that nothing
has to be downloaded, or by nltk's corpus where that is installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_scorer import Metric, Score
from spicegraph_scorer.metrics.meteor.data import INSTALL, Sources, find_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_parser.spice.index import Lexicon
    from spicegraph_scorer import Corpus

_PARAMETERS = {"alpha": 0.9, "beta": 3.0, "gamma": 0.5}


class Lemma(Protocol):
    """One word of a synset."""

    def name(self) -> str:
        """Return the word; underscores join the parts of a compound."""
        ...


class NltkSynset(Protocol):
    """Words of one meaning."""

    def lemmas(self) -> Sequence[Lemma]:
        """Return the words."""
        ...


class NltkWordNet(Protocol):
    """What nltk's function asks of WordNet."""

    def synsets(self, word: str) -> Sequence[NltkSynset]:
        """Return the meanings of a word or of its base forms."""
        ...


class _Lemma(str):
    __slots__ = ()

    def name(self) -> str:
        return str(self)


class _Synset(tuple[_Lemma, ...]):
    __slots__ = ()

    def lemmas(self) -> tuple[_Lemma, ...]:
        return self


@dataclass(frozen=True, eq=False)
class BundledWordNet:
    """The lexicon in the shape of nltk's WordNet reader.

    The lexicon knows neither parts of speech nor capitals, and finds one base form where nltk looks for one
    in each part of speech ("surfer" is not a form of "surf" there). On COCO captions 1.1 % of the items have
    other scores than with nltk's corpus, and the mean is 0.0002 higher; :func:`nltk_wordnet` gives nltk's own.
    """

    lexicon: Lexicon
    members: Mapping[int, _Synset] = field(repr=False)

    def synsets(self, word: str) -> list[_Synset]:
        """Return the meanings that METEOR's synonym module knows of a word."""
        return [self.members[number] for number in self.lexicon.synsets(word) if number in self.members]


def bundled_wordnet() -> BundledWordNet:
    """Return WordNet 3.0 as the lexicon and METEOR's files hold it."""
    return _wordnet_of(find_sources())


@lru_cache(maxsize=1)
def _wordnet_of(sources: Sources) -> BundledWordNet:
    """Return what METEOR's files hold, which takes most of a second to read."""
    members: dict[int, list[_Lemma]] = {}
    for word, numbers in sources.synsets.items():
        for number in dict.fromkeys(numbers):
            members.setdefault(number, []).append(_Lemma(word))
    return BundledWordNet(load_lexicon(), {number: _Synset(words) for number, words in members.items()})


def nltk_wordnet() -> NltkWordNet:
    """Return nltk's own WordNet corpus, with which the scores are exactly nltk's.

    Raises:
        DataError: nltk or its corpus is not installed.
    """
    try:
        from nltk.corpus import wordnet  # type: ignore[import-untyped] # noqa: PLC0415 (an extra, slow to import)
    except ImportError as error:
        raise DataError(INSTALL) from error
    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise DataError("nltk's WordNet corpus is not installed: python -m nltk.downloader wordnet") from error
    reader: NltkWordNet = wordnet
    return reader


class _Stemmer:
    """nltk's Porter stemmer, which it uses by default, with a memory."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped] # noqa: PLC0415

        self.stem: Callable[[str], str] = lru_cache(maxsize=1 << 16)(PorterStemmer().stem)


@cache
def _nltk_version() -> str:
    try:
        return version("nltk")
    except ImportError as error:
        raise DataError(INSTALL) from error


@dataclass(frozen=True, slots=True)
class Meteor2005(Metric[float]):
    """METEOR of 2005: exact words, Porter stems and WordNet synonyms; the best reference counts.

    ``wordnet``: where synonyms come from; ``None`` opens :func:`bundled_wordnet` at each :meth:`collect`. The
    corpus value is the mean of the items' values.

    Source: Banerjee and Lavie 2005, with the later parameters of nltk (alpha 0.9, beta 3, gamma 0.5).
    """

    wordnet: NltkWordNet | None = field(default=None, repr=False)

    name = "meteor-2005"

    def signature(self) -> Mapping[str, str]:
        """Return what must be equal for two values to be comparable.

        Raises:
            DataError: nltk is not installed.
        """
        synonyms = f"{load_lexicon().signature} without parts of speech"
        if not (self.wordnet is None or isinstance(self.wordnet, BundledWordNet)):
            get_version: Callable[[], str] = getattr(self.wordnet, "get_version", str)
            synonyms = f"{type(self.wordnet).__name__} {get_version()}".strip()
        return {
            "variant": "2005-nltk",
            **{name: str(value) for name, value in _PARAMETERS.items()},
            "synonyms": synonyms,
            "nltk": _nltk_version(),
        }

    def collect(self, corpus: Corpus) -> list[float]:
        """Return the score of each item, in [0, 1], in the order of ``corpus.items``.

        Raises:
            DataError: nltk or METEOR's data is not installed.
        """
        return self.score_tokens((item.candidate, item.references) for item in corpus.tokens)

    def score_tokens(self, items: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> list[float]:
        """Return the scores of tokenized items: a candidate and its references.

        Example:
            >>> Meteor2005().score_tokens([(["a", "dog"], [["a", "dog"]])])  # doctest: +SKIP
            [0.9375]
        """
        try:
            from nltk.translate.meteor_score import meteor_score  # type: ignore[import-untyped] # noqa: PLC0415
        except ImportError as error:
            raise DataError(INSTALL) from error
        wordnet = self.wordnet or bundled_wordnet()
        stemmer = _Stemmer()
        return [
            meteor_score(references, candidate, stemmer=stemmer, wordnet=wordnet, **_PARAMETERS)
            for candidate, references in items
        ]

    def total(self, statistics: Sequence[float]) -> tuple[Score, ...]:
        """Return the score ``METEOR_2005``; its corpus value is ``None`` where there are no items."""
        return (Score.mean("METEOR_2005", statistics),)
