"""The network over sentences of any lengths: those of about one length go through it together."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has no stubs

from spicegraph_parser.caption_pipeline.network import Analysis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from spicegraph_parser.caption_pipeline.network import Network

__all__ = ["analyse_sentences", "cut_sentences"]

# Words of a sentence: what is longer is parsed in parts, or its n * n scores would take all memory.
_LONGEST: Final = 200
_SENTENCES_AT_ONCE: Final = 96  # what keeps a layer's numbers in a core's own cache
_SCORES_AT_ONCE: Final = 1 << 16  # of heads, n * n a sentence: a long sentence's do not pad many short ones


def cut_sentences(lengths: Sequence[int]) -> Sequence[int]:
    """Return the lengths of sentences after cutting those that are too long for the network.

    >>> cut_sentences([3, 450])
    [3, 200, 200, 50]
    """
    if not lengths or max(lengths) <= _LONGEST:
        return lengths
    return [min(_LONGEST, length - start) for length in lengths for start in range(0, length, _LONGEST)]


def analyse_sentences(network: Network, forms: Iterable[str], lengths: Sequence[int]) -> Analysis:
    """Analyse sentences, whichever captions they come from; company does not change a sentence's analysis.

    Args:
        network: what analyses.
        forms: the PTB forms of the words of all sentences, one after the other.
        lengths: the number of words of each sentence, each from 1 to what :func:`cut_sentences` leaves.

    Returns:
        Tags, heads and labels, each (words,), in the order of ``forms``; heads count from 1 in their sentence.
    """
    words = network.words(forms)
    found = np.empty((3, len(words)), dtype=np.intp)
    sizes = np.array(lengths, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    # The products are small: threads of the linear algebra library wait for each other, ten times slower
    # on a busy machine; several cores are better used by several processes.
    with _blas().limit(limits=1, user_api="blas"):
        for part in _parts(sizes):
            own = sizes[part]
            where = np.repeat(starts[part] - (np.cumsum(own) - own), own) + np.arange(own.sum())
            analysis = network.analyse(words[where], own)
            found[:, where] = analysis.tags, analysis.heads, analysis.labels
    return Analysis(*found)


def _parts(lengths: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Return the numbers of the sentences that go through the network together, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        size = max(1, min(_SENTENCES_AT_ONCE, _SCORES_AT_ONCE // longest**2))
        yield order[start : start + size]
        start += size


@cache
def _blas() -> ThreadpoolController:
    """Return what sets the number of numpy's threads."""
    return ThreadpoolController()
