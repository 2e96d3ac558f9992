"""What the length of texts says by itself, and what scores say with length held constant.

Every study of descriptions has a mapping of this: what length alone says is named ``""``, all else by the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_scorer.core.length import LONG
from spicegraph_studies.agreement.coefficients import Vector, correlation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spicegraph_scorer.core.results import Json

_ROUNDING: Final = 1e-12


def with_length_constant(values: Mapping[str, Vector], ratings: Vector, words: Vector) -> dict[str, float | None]:
    """Return the rank correlation of words and ratings (``""``), and each metric's with words held constant.

    Nothing where texts have 30 words or fewer in the mean. With rank correlations r of ratings (a), scores (b) and
    words (c), it is (r_ab - r_ac r_bc) / sqrt((1 - r_ac^2) (1 - r_bc^2)); ``None`` where one of them is undefined.
    """
    if not len(words) or words.mean() <= LONG:
        return {}
    alone = correlation("spearman", words, ratings).value
    held: dict[str, float | None] = {"": alone}
    for name, each in values.items():
        plain, follows = correlation("spearman", each, ratings).value, correlation("spearman", each, words).value
        if plain is None or alone is None or follows is None or max(alone**2, follows**2) > 1 - _ROUNDING:
            held[name] = None
        else:
            held[name] = (plain - alone * follows) / float(np.sqrt((1 - alone**2) * (1 - follows**2)))
    return held


def word_counts(texts: Iterable[str]) -> Vector:
    """Return how many words each text has."""
    return np.array([len(text.split()) for text in texts], dtype=np.float64)


def length_json(length: Mapping[str, float | None]) -> dict[str, Json]:
    """Return the length figures as JSON, by score; the unnamed one is ``length alone``."""
    return {name or "length alone": value for name, value in length.items()}
