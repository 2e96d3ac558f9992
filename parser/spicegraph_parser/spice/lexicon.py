"""The words of a language with their synsets of WordNet 3.0: English from the bundled index, others registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from spicegraph_parser.languages import find_language, load_registered
from spicegraph_parser.spice.index import Lexicon, Synonyms, load_index

if TYPE_CHECKING:
    from collections.abc import Callable


@overload
def load_lexicon() -> Lexicon: ...
@overload
def load_lexicon(language: str) -> Synonyms: ...
def load_lexicon(language: str = "en") -> Synonyms:
    """Return the lexicon of a language, loaded once per process: of English the bundled index.

    Args:
        language: a code of two or three letters: ``fr``, ``fra``. The words of other languages than English come from
            the Open Multilingual Wordnet, through nltk.

    Raises:
        InputError: the language is not known.
        DataError: the index is missing or damaged, or nltk's data are missing; the message has the line that gets them.

    Example:
        >>> sorted(load_lexicon().concept("puppy").synsets)
        [1322604, 10493835]
    """
    known = find_language(language)
    if known.code == "en":
        return load_index()
    load: Callable[[str], Synonyms] = load_registered("lexicon")
    return load(known.code)
