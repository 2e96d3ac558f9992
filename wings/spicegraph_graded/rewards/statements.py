"""Statements without support at either end of a caption, and the caption without them.

A statement is what is said before the first or behind the last content word that a reference supports: "a close up
of", "..., possibly on a table". It may be right, but the references can't show it, so that whatever it adds to a score
is chance: :data:`~spicegraph_graded.rewards.reward.STATEMENT` takes that back.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, compress, product
from typing import TYPE_CHECKING, Final

from spicegraph_graded.spice_g.texts import weighted_stem, words_of_text
from spicegraph_graded.spice_g.vectors import load_vectors
from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.parse import word_set
from spicegraph_scorer.core.credit import FUNCTION_WORDS, Span, Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt


# to a word of the references, from which that supports a word; chosen by bench/exploits.py's rule
_LIKENESS: Final = 0.5
_PRONOUNS: Final = word_set(
    """
    i you he she it we they me him her us them this that these those who which what each itself himself herself
    themselves its where when
    """
)
_DETERMINERS: Final = word_set("a an the his her its their some this that these those one two three")
_OF_THE_PICTURE: Final = word_set(
    """
    photo photos photograph picture pictured image view shot close closeup like possibly probably maybe perhaps
    look looks looked looking seem seems appear appears show shows showing shown depict depicts
    beautiful lovely nice pretty great amazing wonderful interesting
    """
)
"""Words of the picture, of guesses and of taste, which no reference supports: they say nothing of what is seen."""
_OF_PLACES: Final = word_set(
    """
    front back side top bottom part end edge corner middle center centre background foreground area surface scene
    way group kind type piece other something someone one thing couple lot number bunch color colour pair
    """
)
"""Words of places and parts, which are like one another: a reference supports one by saying it."""
_INNER: Final = 4  # statements next to the supported words that are tried one by one
_OUTER: Final = 2  # and at the very ends


def signature() -> Mapping[str, str]:
    """The statements' signature."""
    return {"statement": f"1, likeness {_LIKENESS:g}", "statement vectors": load_vectors().signature}


@lru_cache(maxsize=50_000)
def _bases(word: str) -> frozenset[str]:
    """Return the word, its stem and its base forms."""
    bases = (plural_lemma(word), verb_lemma(word), *load_lexicon().forms(word))
    return frozenset({word, weighted_stem(word)[0], *bases})


@lru_cache(maxsize=4096)
def _said(references: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], npt.NDArray[np.float32]]:
    """Return the references' content words, the bases of these, and their vectors: (words, dimensions)."""
    words = frozenset(chain.from_iterable(map(words_of_text, references))) - FUNCTION_WORDS
    rows = load_vectors().rows([(word,) for word in sorted(words)])
    return words, frozenset(chain.from_iterable(map(_bases, words))), rows.vectors


def _supported(words: Sequence[str], references: tuple[str, ...]) -> list[bool]:
    """Say of each content word of a caption whether a reference has it, a form of it, or a word like it."""
    said, bases, vectors = _said(references)
    rows = load_vectors().rows([(word,) for word in words])
    likenesses = (rows.vectors @ vectors.T).max(axis=1, initial=0.0)
    return [
        word not in _OF_THE_PICTURE
        and (
            word in said
            if word in _OF_PLACES
            else not bases.isdisjoint(_bases(word)) or bool(likenesses[rows.places[word,]] >= _LIKENESS)
        )
        for word in words
    ]


def without_statements(text: str, references: tuple[str, ...]) -> list[Span]:
    """Return the parts (code points) that remain without statements at the end, the beginning, and both; or none."""
    spans = Words(text).spans
    forms = [text[start:end].lower() for start, end in spans]
    content = [n for n, form in enumerate(forms) if form not in FUNCTION_WORDS and form not in _PRONOUNS]
    supported = list(compress(content, _supported([forms[n] for n in content], references)))
    if not supported:
        return []
    before = content[: content.index(supported[0])]
    behind = content[content.index(supported[-1]) + 1 :]
    cut = dict.fromkeys([*behind[:_INNER], *behind[-_OUTER:]])
    left = dict.fromkeys([*before[:_OUTER], *before[-_INNER:]])
    ends = [len(text), *sorted((spans[_last(forms, content, number)][1] for number in cut), reverse=True)]
    starts = [0, *sorted(spans[_next(forms, content, number)][0] for number in left)]
    return list(product(starts, ends))[1:]


def _last(forms: Sequence[str], content: Sequence[int], statement: int) -> int:
    """Return the index of the last word before a statement's lead-in: "in the", "with", "and"."""
    least = max(number for number in content if number < statement)
    number = statement - 1
    while number > least and forms[number] in _DETERMINERS:
        number -= 1
    return max(number - 1, least)


def _next(forms: Sequence[str], content: Sequence[int], statement: int) -> int:
    """Return the word with which a caption goes on behind a content word: the next one, or its determiners."""
    number = next(number for number in content if number > statement)
    while number - 1 > statement and forms[number - 1] in _DETERMINERS:
        number -= 1
    return number
