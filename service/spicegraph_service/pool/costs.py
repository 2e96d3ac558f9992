"""What a caption is expected to take of a worker, before it is parsed; the unit is a caption of usual length."""
# Words of a sentence are read one after the other, and where their best heads are no tree, one is searched in a time
# that grows with the cube of its length: a list of 200 words without a full stop takes as long as 170 captions, the
# same words in sentences of ten as long as five. The figures are measured ones (``bench/slowest_item.py``).

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_USUAL_CHARACTERS = 120
_SENTENCES = re.compile(r"[.!?]+\s")
_WORDS = re.compile(r"\w+|[^\w\s]")
_LONGEST = 200  # words of what is parsed at once
_SHORT = 25  # words; what a shorter sentence takes is shared with others
_PER_WORD, _PER_LONG_WORD, _PER_LONG_SQUARE = 1 / 40, 1 / 12, 1 / 14**2


def text_cost(text: str) -> int:
    """Return what a text is expected to take."""
    if len(text) <= _USUAL_CHARACTERS:
        return 1
    cost = 0.0
    for sentence in _SENTENCES.split(text):
        words = len(_WORDS.findall(sentence))
        for start in range(0, words, _LONGEST):
            piece = min(_LONGEST, words - start)
            long = max(0, piece - _SHORT)
            cost += piece * _PER_WORD + long * _PER_LONG_WORD + long * long * _PER_LONG_SQUARE
    return max(1, round(cost))


def texts_cost(texts: Iterable[str]) -> int:
    """Return what texts are expected to take together."""
    return sum(map(text_cost, texts))
