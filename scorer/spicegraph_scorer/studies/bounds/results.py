"""What a study of bounds gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.studies.bounds.ranking import Pairs, RankAgreement
    from spicegraph_scorer.studies.bounds.study import Kind
    from spicegraph_scorer.studies.bounds.summary import Bound

__all__ = ["BoundsResult", "TrialBounds"]


@dataclass(frozen=True, slots=True)
class TrialBounds:
    """The scores of one trial, with those of each metric together.

    ``kind`` is ``human`` (the upper bound), ``system`` or ``lower``; ``title`` says in words what was scored.
    """

    name: str
    kind: Kind
    title: str
    metrics: Mapping[str, tuple[Bound, ...]]

    @property
    def scores(self) -> tuple[Bound, ...]:
        """The scores of all metrics."""
        return tuple(bound for bounds in self.metrics.values() for bound in bounds)


@dataclass(frozen=True, slots=True)
class BoundsResult:
    """Upper bound, systems and lower bounds of every score, and how the metrics' rankings agree.

    ``trials`` holds the human one first, then the systems, then the lower bounds.
    """

    signature: Mapping[str, Json]
    images: int
    captions: int
    rounds: int
    references: tuple[int, int]
    """The fewest and the most captions of an image that a held-out one is scored against."""
    trials: tuple[TrialBounds, ...]
    ranking: RankAgreement

    @property
    def human(self) -> TrialBounds:
        """The upper bound."""
        return self.trials[0]

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON values; ``None`` is undefined.

        ``trials`` is a list in which each score has the fields of a :class:`Bound`; ``ranking`` has, for captions
        and images, squares of ``tau_b`` and ``p`` in the order of its ``names``.
        """
        return {
            "signature": self.signature,
            "images": self.images,
            "captions": self.captions,
            "rounds": self.rounds,
            "references": {"min": self.references[0], "max": self.references[1]},
            "trials": [
                {
                    "name": trial.name,
                    "kind": trial.kind,
                    "title": trial.title,
                    "scores": {bound.name: _bound_dict(bound) for bound in trial.scores},
                }
                for trial in self.trials
            ],
            "ranking": {
                "names": self.ranking.names,
                "captions": _pairs_dict(self.ranking.captions),
                "images": _pairs_dict(self.ranking.images),
            },
        }


def _bound_dict(bound: Bound) -> dict[str, Json]:
    fields = asdict(bound)
    del fields["name"]
    return fields


def _pairs_dict(pairs: Pairs) -> dict[str, Json]:
    return {
        "tau_b": [[pair.value for pair in row] for row in pairs],
        "p": [[pair.p for pair in row] for row in pairs],
    }
