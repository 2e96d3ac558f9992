"""Kendall's coefficients of resampled images, from pairs that are counted once, image by image.

Concordant minus discordant pairs are a quadratic form: with M[g, h] the sum of sign(x_i - x_j) sign(y_i - y_j) over the
observations i of image g and j of image h, and w how often each image was drawn, it is w'Mw / 2. So a resample costs a
product with a matrix of images, however many captions these have and however many people rated each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import scipy

from spicegraph_scorer.core.significance import Resampling, percentile_bounds, share_as_extreme
from spicegraph_studies.agreement.coefficients import (
    COEFFICIENTS,
    KENDALL,
    Balance,
    MetricComparison,
    PairOrder,
    blocks,
    correlation,
    of_balance,
    williams,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scipy.sparse import csr_array

    from spicegraph_studies.agreement.coefficients import Indices, Matrix, Vector

MOST_IMAGES: Final = 3000  # for more images, the matrix of their pairs takes longer than it saves
_MOST_RATINGS: Final = 64

_Rows: TypeAlias = "tuple[Indices, Vector, Matrix]"
"""Observations by image and value: image (in order), value, and how often each rating stands there."""


def _rows(values: Vector, ratings: Indices, groups: Indices) -> _Rows:
    distinct, places = np.unique(values, return_inverse=True)
    cells, row = np.unique(groups * len(distinct) + places, return_inverse=True)
    kinds = int(ratings.max()) + 1
    histograms = np.bincount(row * kinds + ratings, minlength=len(cells) * kinds).reshape(len(cells), kinds)
    return cells // len(distinct), distinct[cells % len(distinct)], histograms.astype(np.float64)


def _balance(first: _Rows, second: _Rows, images: int) -> Matrix:
    """Concordant minus discordant pairs of one's observations and the other's, for each two images."""
    (first_images, first_values, first_histograms), (second_images, second_values, second_histograms) = first, second
    kinds = first_histograms.shape[1]
    signed = first_histograms @ np.sign(np.arange(kinds)[:, None] - np.arange(kinds)).astype(np.float64)
    # Values are gone through in order: how many of the other's observations are lower minus how many are higher.
    below = np.zeros((images, kinds))
    np.subtract.at(below, second_images, second_histograms)
    balance = np.zeros((images, images))
    orders = [np.argsort(values, kind="stable") for values in (first_values, second_values)]
    distinct = np.unique(np.concatenate([first_values, second_values]))
    cuts = [
        np.searchsorted(values[order], [*distinct, np.inf]).tolist()
        for values, order in zip((first_values, second_values), orders, strict=True)
    ]
    for place in range(len(distinct)):
        of_first, of_second = (order[cut[place] : cut[place + 1]] for order, cut in zip(orders, cuts, strict=True))
        at, said = second_images[of_second], second_histograms[of_second]  # an image has one row for a value
        below[at] += said
        balance[first_images[of_first]] += signed[of_first] @ below.T
        below[at] += said
    return balance


def _incidence(classes: Indices, groups: Indices, shape: tuple[int, int]) -> csr_array:
    """Return how many observations of each class (row) each image has (column)."""
    return scipy.sparse.csr_array((np.ones(len(classes)), (classes, groups)), shape=shape)


def _pairs(counts: Matrix) -> Vector:
    """Return how many pairs stand in one class, (classes, resamples) -> (resamples)."""
    pairs: Vector = (np.einsum("ij,ij->j", counts, counts) - counts.sum(axis=0)) / 2
    return pairs


def image_pairs(values: Mapping[str, Vector], ratings: Vector, groups: Indices) -> dict[str, ImagePairs]:
    """Return the pairs of each metric by image; of none where there are too many images or ratings for that."""
    if int(groups.max()) >= MOST_IMAGES or len(np.unique(ratings)) > _MOST_RATINGS:
        return {}
    return {name: ImagePairs(each, ratings, groups) for name, each in values.items()}


def _balanced(balance: Vector, first: Matrix, second: Matrix) -> Balance:
    """Return the counts behind Kendall's coefficients, from the observations of each tie class."""
    classes = np.minimum(np.count_nonzero(first > 0, axis=0), np.count_nonzero(second > 0, axis=0))
    return Balance(balance, _pairs(first), _pairs(second), second.sum(axis=0), classes.astype(np.float64))


class ImagePairs:
    """The pairs of a metric's values and ratings, by image."""

    def __init__(self, values: Vector, ratings: Vector, groups: Indices) -> None:
        images = int(groups.max()) + 1
        classes, of_value = np.unique(values, return_inverse=True)
        kinds, of_rating = np.unique(ratings, return_inverse=True)
        rows = _rows(values, of_rating, groups)
        self.balance = _balance(rows, rows, images)
        self.first = _incidence(of_value, groups, (len(classes), images))
        self.second = _incidence(of_rating, groups, (len(kinds), images))

    def balance_of(self, weights: Matrix) -> Balance:
        """Count the pairs of resamples; ``weights``: (resamples, images), how often each image was drawn."""
        drawn = np.ascontiguousarray(weights.T)
        balance = np.einsum("ij,ij->i", weights @ self.balance, weights) / 2
        return _balanced(balance, self.first @ drawn, self.second @ drawn)


def exchanged_balances(
    sides: tuple[ImagePairs, ImagePairs], values: tuple[Vector, Vector], ratings: Vector, groups: Indices
) -> Callable[[Matrix], tuple[Balance, Balance]]:
    """Return a function from exchanges, (draws, images) of 0 or 1, to both metrics' balances."""
    images = int(groups.max()) + 1
    ranks = np.unique(ratings, return_inverse=True)[1]
    classes, places = np.unique(np.concatenate(values), return_inverse=True)
    of_first, of_second = sides[0].balance, sides[1].balance
    between = _balance(_rows(values[0], ranks, groups), _rows(values[1], ranks, groups), images)
    # observations by value and image, of either metric, by the same list of values
    at_sides = [_incidence(at, groups, (len(classes), images)) for at in np.split(places, 2)]

    def balances(exchanged: Matrix) -> tuple[Balance, Balance]:
        moved = np.ascontiguousarray(exchanged.T)
        square = np.einsum("ij,ij->i", exchanged @ (of_first + of_second - 2 * between), exchanged)
        sums = (
            of_first.sum() + square + 2 * exchanged @ (between.sum(axis=0) - of_first.sum(axis=1)),
            of_second.sum() + square + 2 * exchanged @ (between.sum(axis=1) - of_second.sum(axis=1)),
        )
        change = (at_sides[1] - at_sides[0]) @ moved
        rated: Matrix = np.repeat(sides[0].second.sum(axis=1)[:, None], len(exchanged), axis=1).astype(np.float64)
        first, second = (
            _balanced(balance / 2, at.sum(axis=1)[:, None] + sign * change, rated)
            for balance, at, sign in zip(sums, at_sides, (1, -1), strict=True)
        )
        return first, second

    return balances


def permutation(
    name: str,
    first: Vector,
    second: Vector,
    ratings: Vector,
    groups: Indices,
    *,
    resampling: Resampling,
    pairs: tuple[ImagePairs, ImagePairs] | None = None,
) -> float | None:
    """Two-sided p of exchanging two metrics' values group by group, each with probability one half."""
    observed = [correlation(name, values, ratings).value for values in (first, second)]
    if observed[0] is None or observed[1] is None:
        return None
    sides = first, second
    # Metrics have scales of their own: ranks are exchanged, and for Pearson's values with mean 0 and deviation 1.
    scaled = [scipy.stats.zscore(side) if name == "pearson" else scipy.stats.rankdata(side) for side in sides]
    generator, differences = resampling.generator(), []
    if pairs is not None and name in KENDALL:
        balances, images = exchanged_balances(pairs, (scaled[0], scaled[1]), ratings, groups), int(groups.max()) + 1
        for size in blocks(resampling.draws, images):
            exchanged = balances(generator.integers(0, 2, size=(size, images)).astype(np.float64))
            differences.append(of_balance(exchanged[1])[name] - of_balance(exchanged[0])[name])
        return share_as_extreme(np.concatenate(differences), observed[1] - observed[0])
    # Both metrics' values stand in one list; who holds which of them is a weighting of the list by 0 and 1.
    both = PairOrder(np.concatenate(scaled), np.concatenate([ratings, ratings]))
    resampled = COEFFICIENTS[name].resampled
    for size in blocks(resampling.draws, 2 * len(first)):
        moved = generator.integers(0, 2, size=(size, int(groups.max()) + 1)).astype(np.float64)[:, groups]
        weights: Matrix = np.hstack([1 - moved, moved])
        differences.append(resampled(both, 1 - weights) - resampled(both, weights))
    return share_as_extreme(np.concatenate(differences), observed[1] - observed[0])


def compared(
    name: str,
    values: Mapping[str, Vector],
    ratings: Vector,
    groups: Indices,
    *,
    draws: Mapping[str, Vector],
    resampling: Resampling,
    pairs: Mapping[str, ImagePairs] | None = None,
) -> MetricComparison:
    """Return how a coefficient of two metrics differs; ``draws`` are those of resamples, ``pairs`` save time."""
    (first_metric, first), (second_metric, second) = values.items()
    of_first, of_second = (correlation(name, each, ratings).value for each in (first, second))
    if of_first is None or of_second is None:
        return MetricComparison(first_metric, second_metric, name, of_first, of_second, *[None] * 5)
    sides = (pairs[first_metric], pairs[second_metric]) if pairs else None
    return MetricComparison(
        first_metric,
        second_metric,
        name,
        of_first,
        of_second,
        of_second - of_first,
        *percentile_bounds(draws[second_metric] - draws[first_metric]),
        permutation(name, first, second, ratings, groups, resampling=resampling, pairs=sides),
        williams(
            correlation("pearson", first, ratings).value,
            correlation("pearson", second, ratings).value,
            correlation("pearson", first, second).value,
            len(ratings),
        ),
    )
