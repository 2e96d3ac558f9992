"""Conditions that a new system must not fulfil against an old one, such as ``SPICE < -0.005``."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.metric import Metric, ReadyScores, Score
from spicegraph_scorer.core.significance import Comparison, Resampling, compare, corrected
from spicegraph_scorer.errors import KINDS, chance_counts, explain
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_service.report.data import GateResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.metric import Matrix, Vector
    from spicegraph_scorer.core.tokens import Corpus
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic
    from spicegraph_service.report.data import SystemView

MOST_GATES: Final = 50
_CONDITION = re.compile(
    r"\s*(?P<sure>sure\s+)?(?P<name>[^<>.]+?)(?:\.(?P<part>f|pr|re|rate))?\s*(?P<sign>[<>])\s*(?P<limit>[-+]?[\d.]+)\s*"
)


class Gate(NamedTuple):
    """A condition on the second system minus the first."""

    text: str
    name: str  # of a score, a category or a kind of error
    part: str  # "f", "pr" or "re" of a category, "rate" of a kind; "": a score
    sign: str
    limit: float
    needs_significance: bool = False  # ``sure NAME < LIMIT``: a difference that may be chance does not count


def parse_gates(texts: Sequence[str], systems: int = 2) -> tuple[Gate, ...]:
    """Read conditions on systems, of which there must be two; an :class:`InputError` with every wrong one."""
    if texts and systems != 2:
        raise InputError(f"conditions compare two systems, and {systems} are given")
    gates, faults = [], []
    for text in texts:
        found = _CONDITION.fullmatch(text)
        try:
            parts = found.groupdict("") if found else {}
            limit = float(parts["limit"])
            gates.append(Gate(text.strip(), parts["name"], parts["part"], parts["sign"], limit, bool(parts["sure"])))
        except (KeyError, ValueError):
            faults.append(
                f"condition {text.strip()!a}: expected NAME < NUMBER, such as SPICE < -0.005, Color.f < -0.02 "
                "or sure Color.f < 0"
            )
    if len(texts) > MOST_GATES:
        faults.append(f"{len(texts)} conditions: at most {MOST_GATES}")
    if faults:
        raise InputError("\n".join(faults))
    return tuple(gates)


def gate_results(
    gates: Sequence[Gate],
    views: Sequence[SystemView],
    statistics: Sequence[Sequence[SpiceStatistic]],
    tests: Mapping[tuple[int, int], Sequence[Comparison]],
    draws: Resampling,
) -> tuple[GateResult, ...]:
    """Return the results of regression checks on two systems; ``statistics`` are SPICE's, by system."""
    if not gates:
        return ()
    scores = {test.name: test for test in tests[0, 1]}
    categories = [row.name for row in views[0].categories]
    known = {"": scores, "f": categories, "pr": categories, "re": categories, "rate": KINDS}
    faults = [
        f"condition {gate.text!a}: expected a score ({', '.join(scores)}), a category with .f, .pr or .re "
        f"({', '.join(categories)}), or a kind of error with .rate ({', '.join(KINDS)})"
        for gate in gates
        if gate.name not in known[gate.part]
    ]
    if faults:
        raise InputError("\n".join(faults))
    needs_errors = any(gate.part == "rate" for gate in gates)
    errors = [_errors(of_system) for of_system in statistics] if needs_errors else []

    def test_of(gate: Gate) -> Comparison:
        if gate.part == "rate":
            return _of_rate(gate.name, errors, draws)
        return _of_category(gate, statistics, draws) if gate.part else scores[gate.name]

    return tuple(map(_result, gates, corrected(map(test_of, gates))))


def _result(gate: Gate, test: Comparison) -> GateResult:
    difference = test.difference
    broken = difference is None or (
        (difference < gate.limit if gate.sign == "<" else difference > gate.limit)
        and (test.is_sure or not gate.needs_significance)
    )
    ps = [p for p in (test.p_bootstrap, test.p_randomization) if p is not None]
    return GateResult(gate.text, not broken, difference, test.low, test.high, max(ps, default=None))


def _of_category(gate: Gate, statistics: Sequence[Sequence[SpiceStatistic]], draws: Resampling) -> Comparison:
    rows = [[(getattr(Spice.by_category(s)[gate.name], gate.part),) for s in of_system] for of_system in statistics]
    return compare(ReadyScores((gate.name,)), rows[0], rows[1], resampling=draws)[0]


def _errors(statistics: Sequence[SpiceStatistic]) -> list[tuple[Counter[str], Mapping[str, int]]]:
    """Return the errors of each item by kind, and the tuples that can have one."""
    return [(Counter(error.kind for error in explain(s.match)), chance_counts(s.match)) for s in statistics]


def _of_rate(
    kind: str, errors: Sequence[Sequence[tuple[Counter[str], Mapping[str, int]]]], draws: Resampling
) -> Comparison:
    among = KINDS[kind].among
    rows = [[(found[kind], chances[among]) for found, chances in of_system] for of_system in errors]
    return compare(_Rate(kind), rows[0], rows[1], resampling=draws)[0]


@dataclass(frozen=True, slots=True)
class _Rate(Metric[tuple[int, int]]):
    """The rate of a kind of error, from the errors of each item and the tuples that can have it."""

    kind: str

    @property
    def name(self) -> str:
        """No metric of ``METRICS``."""
        return self.kind

    def signature(self) -> Mapping[str, str]:
        """Return the kind."""
        return {"rate": self.kind}

    def collect(self, corpus: Corpus) -> list[tuple[int, int]]:
        """Refuse: there is nothing to compute."""
        raise NotImplementedError

    def total(self, statistics: Sequence[tuple[int, int]]) -> tuple[Score, ...]:
        """Return the rate."""
        errors, chances = (sum(row[n] for row in statistics) for n in (0, 1))
        each = tuple(row[0] / row[1] if row[1] else None for row in statistics)
        return (Score(self.kind, errors / chances if chances else None, each),)

    def columns(self, statistics: Sequence[tuple[int, int]]) -> Matrix:
        """Return errors and chances."""
        return np.array(statistics, dtype=np.float64).reshape(-1, 2)

    def from_sums(self, sums: Matrix) -> Mapping[str, Vector]:
        """Return the rate of each row of sums; NaN where nothing can have the error."""
        errors, chances = sums.T
        return {self.kind: np.divide(errors, chances, out=np.full_like(errors, np.nan), where=chances > 0)}


def broken_line(result: GateResult) -> str:
    """Return the message for a failed regression check."""
    if result.difference is None:
        return f"{result.condition}: the difference is undefined"
    ends = "" if result.low is None else f", 95 % interval {result.low:+.4f} to {result.high:+.4f}"
    p = "" if result.p is None else f", p {result.p:.4f}"
    return f"{result.condition}: the difference is {result.difference:+.4f}{ends}{p}"
