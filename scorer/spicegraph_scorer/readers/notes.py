"""What a person should know of items that can be scored, such as captions that are not English.

Metrics score other languages too, without an error. A caption is taken for another language where most of its words are
unknown to WordNet and a list of English function words, or where function words of other languages outnumber the
English ones. Words of fewer than four letters are looked up in the lists alone: WordNet has abbreviations that are
words elsewhere ("de", "la", "un").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spicegraph_parser.lexicon import load_lexicon
from spicegraph_scorer.core.items import empty_candidates
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.readers.checks import copies_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_scorer.core.items import Item

_FEWEST_WORDS: Final = 3
_FEWEST_KNOWN: Final = 0.5
_SHARE: Final = 0.1
"""Share of the candidates from which on a warning is given: names and misspellings are in every set of captions."""
_SHORT: Final = 4
_SAMPLE: Final = 200

_ENGLISH: Final = frozenset(
    """
    a an and another are as at be been being but by can could each for from had has have he her his how if in into is it
    its not of off on one or other over she some someone something than that the their them then there these they this
    those three to too two under up very was we were what when where which while who with without you your i all and any
    no bag bar bat bed bee big box boy bus bun cap car cat cow cup cut day dog dry ear eat egg eye fan far few fly fox
    fun get gym hat hay hen hot ice jet job kid lap leg lot low lie man mat men mom mud new old out own pan pen pet pie
    pig pot ran red run sad sea see set sit ski sky six sun tan tea ten tie toe top toy tub van wet yes zoo air arm art
    bow bay bin dad gas jar log map net nut oil oar owl paw pea rod row rug saw tap tv wig wok
    """.split()  # noqa: SIM905 (a list of words)
)
_OTHER: Final = frozenset(
    """
    der das ein eine einen einem einer und mit auf dem den im ist sind ihre seinem neben vor zwei von het een van met op
    zijn naar en aan bij twee de un une des les du dans avec sur est sont qui deux au aux et leur pres el los las una
    unos unas con por para del su sus al dos y la esta junto il lo gli della che di da dei nel nella sul sulla due alla
    um uma os na nas nos com em ao ate dois duas sobre och ett som av till det tva og til ve bir bu ile icin w z do sie
    jest oraz yang dan dengan sedang sebuah seorang
    """.split()  # noqa: SIM905 (a list of words)
)
_WORD: Final = re.compile(r"[^\W\d_]+")


def is_english(text: str) -> bool:
    """Say whether a text may be English; one of fewer than three words may.

    Example:
        >>> is_english("A surfer rides a big wave."), is_english("Un hombre monta una ola grande.")
        (True, False)
        >>> is_english("冲浪者在海浪上")
        False
    """
    words = _WORD.findall(text.lower())
    if not words:
        return True
    if len(words) < _FEWEST_WORDS:
        return text.isascii() or any(map(_is_known, words))
    english = sum(word in _ENGLISH for word in words)
    if sum(word in _OTHER for word in words) > english:
        return False
    return 2 * english >= len(words) or sum(map(_is_known, words)) >= _FEWEST_KNOWN * len(words)


@lru_cache(maxsize=10_000)
def _is_known(word: str) -> bool:
    return word in _ENGLISH or (len(word) >= _SHORT and bool(load_lexicon().synsets(word)))


def language_note(source: str, items: Sequence[Item]) -> str | None:
    """Say that a tenth of the candidates, or more, are not in English; ``None``: fewer are.

    All are looked at only where some of 200 evenly spread ones are not.
    """
    few = items[:: max(1, len(items) // _SAMPLE)]
    if all(is_english(item.candidate) for item in few):
        return None
    others = sum(not is_english(item.candidate) for item in items)
    if others < _SHARE * len(items):
        return None
    candidates = counted(len(items), "candidate")
    return f"{source}: {others:,} of {candidates} do not seem to be English; all metrics here are made for English"


def notes_on(source: str, items: Sequence[Item]) -> Iterator[str]:
    """Yield what is odd about items that can be scored: empty candidates, copies of references, other languages."""
    empty = empty_candidates(items)
    if empty:
        yield f"{source}: {counted(empty, 'empty candidate')} scored as zero"
    yield from filter(None, (copies_note(source, items), language_note(source, items)))
