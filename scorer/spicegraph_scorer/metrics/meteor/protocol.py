"""The lines that METEOR's program exchanges with its callers (``-stdio``), for tools made to drive it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spicegraph_parser.errors import InputError
from spicegraph_scorer.metrics.meteor.data import MeteorData
from spicegraph_scorer.metrics.meteor.scoring import score_texts
from spicegraph_scorer.metrics.meteor.statistics import Counts, add_counts, parse_counts, score
from spicegraph_scorer.metrics.meteor.text import COCO_TEXT, TextOptions

__all__ = ["SEPARATOR", "answer", "split_line"]

SEPARATOR = "|||"

_UP_TO_SPACE = "".join(map(chr, range(0x21)))

_Answer = Callable[[Sequence[str], MeteorData, TextOptions], list[str]]


def split_line(line: str) -> list[str]:
    """Return the fields of a line, without white space at their ends.

    Empty fields at the end of the line are dropped, yet one that holds a space is a field.
    """
    fields = line.split(SEPARATOR)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return [field.strip(_UP_TO_SPACE) for field in fields]


def _score(fields: Sequence[str], data: MeteorData, options: TextOptions) -> list[str]:
    if len(fields) < 2:
        return ["Error: specify hypothesis and at least one reference"]
    *references, candidate = fields
    return [score_texts([(candidate, references)], data=data, options=options)[0].line]


def _counts(fields: Sequence[str]) -> list[Counts]:
    try:
        return [parse_counts(field) for field in fields]
    except ValueError as error:
        msg = f"METEOR line: {error}"
        raise InputError(msg) from error


def _evaluate(fields: Sequence[str], _data: MeteorData, _options: TextOptions) -> list[str]:
    if not fields:
        return ["Error: specify Meteor stats"]
    items = _counts(fields)
    return [str(score(counts)) for counts in [*items, add_counts(items)]]


def _single(fields: Sequence[str], _data: MeteorData, _options: TextOptions) -> list[str]:
    if len(fields) != 1:
        return ["Error: specify Meteor stats"]
    return [str(score(counts)) for counts in _counts(fields)]


_ANSWERS: dict[str, _Answer] = {"SCORE": _score, "EVAL": _evaluate, "SING": _single}


def answer(line: str, *, data: MeteorData, options: TextOptions = COCO_TEXT) -> list[str]:
    """Return the lines with which METEOR answers a line.

    ``SCORE ||| reference ||| ... ||| candidate`` gives the 23 counts; ``EVAL ||| counts ||| ...`` gives a
    score for each and one for their sum; ``SING ||| counts`` gives one score. Other lines give a line that
    starts with ``Error:``.

    Raises:
        InputError: counts are not 23 numbers (the program ends there).

    Example:
        >>> answer("EVAL", data=load_data())  # doctest: +SKIP
        ['Error: specify Meteor stats']
    """
    for name, reply in _ANSWERS.items():
        if line.startswith((name, name.lower())):
            return reply(split_line(line)[1:], data, options)
    return ["Error: specify SCORE or EVAL or SING"]
