"""Several data sets side by side: what of each is studied, and in which form, as Wang and Gaizauskas compare them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics import needs_of
from spicegraph_scorer.readers.fields import Wanted
from spicegraph_scorer.readers.references import read_records, read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_studies.bounds.study import BoundsStudy

_HYPHEN: Final = re.compile(r"(?<=\w)-(?=\w)")


def is_corpus(path: str) -> bool:
    """Say whether a file holds references alone: a corpus, and not a system's captions with their references.

    Raises:
        InputError: it holds references, and they are faulty.
    """
    if path == "-":
        return False
    holds_candidates = False
    try:
        with open_source(path, limits=DEFAULT_LIMITS) as source:
            records = read_records(source, limits=DEFAULT_LIMITS, wanted=Wanted("both"))
            if records is not None and records.format.references:
                return False
            holds_candidates = True  # or text of either kind, such as a table of captions
    except InputError:
        pass
    try:
        read_reference_files([path], limits=DEFAULT_LIMITS)
    except InputError:
        if holds_candidates:
            return False
        raise
    return True


def split_hyphens(text: str) -> str:
    """Return a text with the parts of words such as ``well-known`` as words, as the study has them.

    >>> split_hyphens("a well-known man - see")
    'a well known man - see'
    """
    return _HYPHEN.sub(" ", text)


def drawn(captions: Mapping[ItemId, Sequence[str]], count: int, seed: int) -> dict[ItemId, tuple[str, ...]]:
    """Return so many captions of each image, drawn at random and in their order; of images with fewer, all."""
    generator = np.random.default_rng(seed)
    chosen = {}
    for image, texts in captions.items():
        places = np.sort(generator.permutation(len(texts))[:count]).tolist()
        chosen[image] = tuple(texts[place] for place in places)
    return chosen


def with_own_frequencies(data: MetricData, study: BoundsStudy, metrics: Sequence[str]) -> MetricData:
    """Return the data with document frequencies of a corpus's own captions, where none are given and some are used."""
    if data.frequencies is not None or not any("frequencies" in needs.data for needs in needs_of(metrics)):
        return data
    return replace(data, frequencies=DocumentFrequencies.from_references(list(map(tokenize_texts, study.captions))))
