"""What a caption is expected to take of a worker, before it is parsed; the unit is a caption of usual length."""
# Words of a sentence are read one after the other, those of several sentences together; and where the best heads of a
# sentence are no tree, one is searched, in a time that grows with the cube of its length. So words in sentences of ten
# take a tenth of what they take without a full stop. The figures are measured ones (``bench/slowest_item.py``).

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_USUAL_CHARACTERS = 120
_SENTENCES = re.compile(r"[.!?]+\s")
_WORDS = re.compile(r"\w+|[^\w\s]")
_LONGEST = 200  # words of what is parsed at once
_SHORT = 25  # words; what a shorter sentence takes is shared with others
_PER_WORD, _PER_LONG_WORD = 0.1, 1.1


def text_cost(text: str) -> int:
    """Return what a text is expected to take."""
    return 1 if len(text) <= _USUAL_CHARACTERS else _long_cost(text)


@lru_cache(maxsize=1024)  # it is asked for the call's room, its chunks and each of its turns
def _long_cost(text: str) -> int:
    cost = 0.0
    for sentence in _SENTENCES.split(text):
        words = len(_WORDS.findall(sentence))
        for start in range(0, words, _LONGEST):
            piece = min(_LONGEST, words - start)
            cost += piece * _PER_WORD + max(0, piece - _SHORT) * _PER_LONG_WORD
    return max(1, round(cost))


def texts_cost(texts: Iterable[str]) -> int:
    """Return what texts are expected to take together."""
    return sum(map(text_cost, texts))
