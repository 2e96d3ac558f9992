"""Guards: what no caption of people has, and captions that are made to please a metric do.

A guard is 0 for a caption that it lets through, 1 for one that it stops. Each stops at most a few of 10,000 captions of
people; what references do, a candidate may do as well. To add one: a function of an item, and a line in ``GUARDS``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from spicegraph_graded.chair import CLASSES
from spicegraph_graded.fluency.detector import load_detector, sentences_of
from spicegraph_graded.fluency.metric import FluencyStatistic, fluency_of
from spicegraph_graded.spice_g.texts import words_of_text
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.parse import word_set
from spicegraph_scorer.core.credit import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spicegraph_scorer.core.items import Item

_LONGEST: Final = 2.0  # times the longest reference
_FREE_WORDS: Final = 30  # a candidate may have in any case
_RUN: Final = 6  # words said again in a row
_TIMES: Final = 4  # one content word
_DISORDER: Final = -10.0  # nats of the order table
_NAMED: Final = re.compile(r"\bor (?:an?|the|some|maybe|perhaps) ")
_DENIED: Final = re.compile(r"\b(?:no|not|without|never|neither|nor|none|nobody|nothing)\b|n['’]t\b")
_OPEN: Final = word_set("a an the and or of with while is are his her its their at from as by for in on to")
_COLOURS: Final = word_set(
    "red blue green yellow black white brown orange pink purple gray grey silver gold golden tan beige"
)
_MOST_COLOURS: Final = 6
BROKEN: Final = 0.999  # probability of an error above which a guard stops a caption: one of 3,000 captions of people
_FEWEST: Final = 4  # words of a caption, or as many as the shortest reference has


def _fluency(text: str) -> FluencyStatistic:
    return fluency_of(load_detector(), [text])[0]


@lru_cache(maxsize=4096)
def _words(text: str) -> Sequence[str]:
    return tuple([word for sentence in sentences_of(text) for word in sentence if word != ","])


def unfinished(item: Item) -> float:
    """Ends with an article, a preposition or a conjunction where no reference does, and looks unfinished."""
    words = _words(item.candidate)
    if not words:
        return 1.0
    if words[-1] not in _OPEN or any(_words(text)[-1:] == words[-1:] for text in item.references):
        return 0.0
    strict = words[-1] in ("a", "an", "the", "and", "or", "of", "with", "while", "is", "are", "his", "its", "their")
    return float(strict or _fluency(item.candidate).wrong > BROKEN)


def broken(item: Item) -> float:
    """The fluency detector is all but sure that something is wrong, and surer than of every reference."""
    wrong = _fluency(item.candidate).wrong
    return float(wrong > BROKEN and all(_fluency(text).wrong < wrong for text in item.references))


def disorder(item: Item) -> float:
    """Words follow one another as they hardly ever do, less so than in any reference."""
    order = load_vectors().order
    if order is None:
        return 0.0
    flow = order.flow(item.candidate)
    return float(flow < _DISORDER and all(order.flow(text) > flow for text in item.references))


def said_again(item: Item) -> float:
    """Says a run of six words again, two words twice in a row, or one content word four times."""
    words = _words(item.candidate)
    return float(_repeats(words) and not any(_repeats(_words(text)) for text in item.references))


def _repeats(words: Sequence[str]) -> bool:
    if len(words) - len(set(words)) < 2:  # each of what follows has more; so most captions
        return False
    runs = [tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)]
    doubled = sum(this_word == next_word for this_word, next_word in pairwise(words))
    content = Counter([word for word in words if len(word) > len("with")])
    return len(set(runs)) < len(runs) or doubled > 1 or max(content.values(), default=0) >= _TIMES


def excess(item: Item) -> float:
    """Has more than thirty words, and more than twice those of the longest reference."""
    said = len(_words(item.candidate))
    return float(
        said > _FREE_WORDS
        and said > _LONGEST * max((len(_words(reference)) for reference in item.references), default=0)
    )


def stub(item: Item) -> float:
    """Has fewer than four words, and fewer than every reference."""
    said = len(_words(item.candidate))
    return float(said < _FEWEST and said < min((len(_words(reference)) for reference in item.references), default=0))


def signs(item: Item) -> float:
    """Has invisible characters, or letters of a script that no reference has."""
    if item.candidate.isascii():
        return 0.0
    scripts = {script for text in item.references for script in _scripts(text)}
    return float(any(script not in scripts and script != "LATIN" for script in _scripts(item.candidate)))


def _scripts(text: str) -> Iterable[str]:
    for sign in text:
        if not sign.isascii():
            if unicodedata.category(sign) in ("Cf", "Co", "Cn", "Cs"):
                yield "INVISIBLE"
            elif sign.isalpha():
                yield unicodedata.name(sign, "UNKNOWN").split()[0]


def hedge(item: Item) -> float:
    """Offers several things with "or a", as no reference does."""
    named = len(_NAMED.findall(item.candidate.lower()))
    return float(named > 1 and named > 1 + sum(bool(_NAMED.search(text.lower())) for text in item.references))


def denial(item: Item) -> float:
    """Begins with "there is no", or denies three things, where no reference denies any."""
    text = item.candidate.lower()
    begins = re.match(r"\W*there (?:is|are) (?:no|not)\b(?! (?:image|picture|photo|caption)\b)", text)
    denies = begins is not None or len(_DENIED.findall(text)) > 2
    return float(denies and not any(_DENIED.search(reference.lower()) for reference in item.references))


def chain(item: Item) -> float:
    """Names one thing by three words in a row: synonyms of WordNet, or of CHAIR's objects."""
    concept = load_lexicon().concept
    words = _words(item.candidate)
    for first, second, third in zip(words, words[1:], words[2:], strict=False):
        kind = CLASSES.get(second)
        by_class = kind is not None and kind == CLASSES.get(first) == CLASSES.get(third)
        by_synset = len(second) > len("with") and (middle := concept(second)).shares(concept(first))
        if (by_class or (by_synset and middle.shares(concept(third)))) and len({first, second, third}) == 3:
            return 1.0
    return 0.0


def colours(item: Item) -> float:
    """Names more than six different colours, and more than any reference."""
    named = len(_COLOURS.intersection(_words(item.candidate)))
    return float(
        named > _MOST_COLOURS and all(named > len(_COLOURS.intersection(_words(text))) for text in item.references)
    )


GUARDS: Final[Mapping[str, Callable[[Item], float]]] = {
    guard.__name__.replace("_", "-"): guard
    for guard in (unfinished, broken, disorder, said_again, excess, stub, signs, hedge, denial, chain, colours)
}
"""Every guard by its name."""


def generic(item: Item) -> float:
    """How much more frequent the candidate's rarest word is than every reference's, in [0, 1]."""
    said, least = _rarest(item.candidate), min(map(_rarest, item.references), default=0.0)
    return 1 - said / least if said < least else 0.0


@lru_cache(maxsize=4096)
def _rarest(text: str) -> float:
    vectors = load_vectors()
    forms = [vectors.unknown.canonical(word) for word in words_of_text(text) if word not in FUNCTION_WORDS]
    return max([vectors.idf[vectors.places[form]] for form in forms if form in vectors.places], default=0.0)


GUARD_TERMS: Final[Mapping[str, Callable[[Item], float]]] = {
    "guard": lambda item: float(any(guard(item) for guard in GUARDS.values())),
    **{f"guard-{name}": guard for name, guard in GUARDS.items()},
    "generic": generic,
}
"""Terms of a reward that are of the whole caption beside its references, each in [0, 1].

``guard`` is 1 where any of the guards stops a caption, ``guard-NAME`` is one of them alone. ``generic`` says by what
share a caption's rarest word is more frequent than that of every reference.
"""


def guarded(term: str, items: Sequence[Item]) -> list[float]:
    """Return a guard's value for each item; the fluency detector reads in batches."""
    if term in {"guard", "guard-unfinished", "guard-broken"}:
        fluencies = fluency_of(load_detector(), [item.candidate for item in items])  # which remembers them
        doubted = [item for item, fluency in zip(items, fluencies, strict=True) if fluency.wrong > BROKEN]
        fluency_of(load_detector(), [text for item in doubted for text in item.references])
    return list(map(GUARD_TERMS[term], items))


def signature() -> Mapping[str, str]:
    """Return the guards' signature."""
    return {"guard": "1", "guard detector": load_detector().signature, "guard order": load_vectors().signature}
