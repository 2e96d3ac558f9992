"""Of which kind a text is: a caption of a photograph, one of something else by its nouns, or a description.

People who draw graphs of captions of photographs have other conventions than those who draw the rest: the network reads
each kind by its own.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma
from spicegraph_parser.scenes.words import WORDS
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_parser.scenes.network import Names

LONGEST_CAPTION: Final = 40  # words up to which several sentences are captions: descriptions of pictures have more
_MOST_WORDS: Final = 100_000
_FOREIGN: Final = 0.2  # least share of nouns that photographs lack; none of DiscoSG's first 100 descriptions has it


class Kind(IntEnum):
    """Kinds of texts, each with the number of its conventions in the network's weights."""

    PHOTOGRAPH = 0
    OTHER = 1
    DESCRIPTION = 2


def kind_of(forms: Sequence[str], lengths: Sequence[int], names: Names) -> Kind:
    """Return the kind of a text of sentences.

    It is of another kind where a fifth of its words are nouns that captions of photographs lack, and else a description
    if it has several sentences and more than ``LONGEST_CAPTION`` words.
    """
    words = [form.lower() for form in forms if form[0].isalpha()]
    foreign = sum(word not in names.known and word not in WORDS["told"] and is_noun(word) for word in words)
    if foreign and foreign >= _FOREIGN * len(words):
        return Kind.OTHER
    return Kind.DESCRIPTION if len(lengths) > 1 and len(forms) > LONGEST_CAPTION else Kind.PHOTOGRAPH


@lru_cache(maxsize=_MOST_WORDS)
def is_noun(word: str) -> bool:
    """Say whether WordNet has a noun, which typing errors are not."""
    wordnet = load_wordnet()
    last = word.rpartition("-")[2]
    forms = (word, last, plural_lemma(last))
    return word in WORDS["depictions"] or any(wordnet.senses(form, "n") for form in forms)
