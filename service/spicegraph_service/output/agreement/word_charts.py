"""The charts of human agreement on words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.studies.agreement.words import expected_point, observed_point
from spicegraph_scorer.studies.agreement.words.study import ALL
from spicegraph_service.output.agreement.charts import forest_chart, word_chart
from spicegraph_service.output.charts import series_ink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.studies.agreement.words import WordStudy
    from spicegraph_service.output.studies.model import Chart

__all__ = ["WordCharts"]

_STEPS = 100
_DRAWN = 60


class WordCharts:
    """The charts of a page, drawn when it is made."""

    def __init__(self, found: WordStudy) -> None:
        self._found = found

    def classes(self) -> tuple[Chart, ...]:
        """Draw the words of each class, and all of them in their classes' colours, with the model's curve."""
        references = self._found.people - 1
        curve = {f"model, k = {references}": _curve(references)}
        inks = {kind.kind: series_ink(number) for number, kind in enumerate(self._found.classes[:-1])}
        return tuple(
            word_chart(
                f"{kind.kind}: {counted(kind.words, 'word')}",
                [
                    (inks[word.kind], word.word, word.human.recall, word.human.precision)
                    for word in self._found.words
                    if kind.kind in {word.kind, ALL}
                    and word.human.recall is not None
                    and word.human.precision is not None
                ],
                curve,
            )
            for kind in self._found.classes
        )

    def curves(self) -> tuple[Chart, ...]:
        """Draw the most frequent words with each number of references, and the model's curves."""
        references = range(1, self._found.people)
        points = [
            (series_ink(k - 1), f"{word.word}, k = {k}", point.recall, point.precision)
            for word in self._found.words[:_DRAWN]
            for k in references
            for point in (observed_point(word.counts, k),)
            if point.recall is not None and point.precision is not None
        ]
        title = f"Fewer references k: the {min(_DRAWN, len(self._found.words))} most frequent words, and the model"
        return (word_chart(title, points, {f"k = {k}": _curve(k) for k in references}),)

    def systems(self) -> tuple[Chart, ...]:
        """Draw each system's precision at human recall beside the human precision, by class."""
        nothing = (None, None)
        return tuple(
            forest_chart(
                f"Precision at human recall: {kind.kind}",
                [
                    *((system.system, system.at_human_recall[kind.kind], nothing) for system in self._found.systems),
                    ("people", self._found.systems[0].human_precision[kind.kind], nothing),
                ],
                axis="precision",
            )
            for kind in self._found.classes
        )


def _curve(references: int) -> tuple[Sequence[float], Sequence[float]]:
    steps = [step / _STEPS for step in range(1, _STEPS + 1)]
    return steps, [expected_point(p, references).precision or 0.0 for p in steps]
