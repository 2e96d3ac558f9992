"""Whether two metrics rank the same: Kendall's tau-b of every two scores, over captions and over images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spicegraph_scorer.studies.agreement.coefficients import Correlation, correlation
from spicegraph_scorer.studies.bounds.summary import image_means

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.studies.bounds.study import Study
    from spicegraph_scorer.studies.bounds.summary import Matrix, Vector

__all__ = ["RankAgreement", "rank_agreement"]

Pairs: TypeAlias = "tuple[tuple[Correlation, ...], ...]"


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Kendall's tau-b with its p-value for every two scores: a square, in the order of ``names``.

    ``captions`` ranks the held-out captions, ``images`` the images by the mean of their captions' scores. The
    p-values take captions and images as independent of each other.
    """

    names: tuple[str, ...]
    captions: Pairs
    images: Pairs


def rank_agreement(scores: Mapping[str, Matrix], study: Study) -> RankAgreement:
    """Return how the human scores agree with each other.

    Args:
        scores: by name, (rounds, images), NaN where undefined.
        study: the images.
    """
    captions = [values[study.new] for values in scores.values()]
    images = [image_means(values, study) for values in scores.values()]
    return RankAgreement(tuple(scores), _square(captions), _square(images))


def _square(columns: list[Vector]) -> Pairs:
    found: dict[tuple[int, int], Correlation] = {}
    for one, first in enumerate(columns):
        for other, second in enumerate(columns[: one + 1]):
            both = ~np.isnan(first) & ~np.isnan(second)
            found[one, other] = found[other, one] = correlation("tau_b", first[both], second[both])
    places = range(len(columns))
    return tuple(tuple(found[one, other] for other in places) for one in places)
