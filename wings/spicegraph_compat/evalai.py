"""EvalAI: the function ``evaluate`` that its challenge template calls.

In a challenge's ``evaluation_script/__init__.py``:

```python
from spicegraph_compat.evalai import evaluate
```

:func:`score_files` and :func:`leaderboard_scores` serve other platforms too: files in, one flat table of numbers out.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from spicegraph_compat.caption_metric import flat_scores
from spicegraph_parser.errors import counted
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.checks import Empty, notes_on
from spicegraph_scorer.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.results import Result
    from spicegraph_scorer.readers.marks import ControlTokens


def evaluate(
    test_annotation_file: str,
    user_submission_file: str,
    phase_codename: str,
    *,
    metrics: tuple[str, ...] = ("spice",),
    split: str | None = None,
    pipeline: str = DEFAULT_PIPELINE,
    data: MetricData | None = None,
    **_submission: object,
) -> dict[str, object]:
    """Score a submission for EvalAI's leaderboard.

    EvalAI shows the message of an InputError to the team: it names ids and fields, and never a reference's text.

    Args:
        test_annotation_file: the private references.
        user_submission_file: the submission; like the references in any format of ``spicegraph score``.
        phase_codename: the phase; the name of the split where ``split`` is not given.
        metrics: names from ``METRICS``.
        split: the split's codename in the challenge's configuration.
        pipeline: what parses captions, as for :func:`spicegraph_scorer.score`.
        data: as for :func:`spicegraph_scorer.score`.
        _submission: what else EvalAI says of the submission; not used.

    Returns:
        ``{"result": [{split: scores}], "submission_result": scores}``, with the scores that are defined.
    """
    result = score_files(user_submission_file, test_annotation_file, metrics=metrics, pipeline=pipeline, data=data)
    scores = leaderboard_scores(result)
    return {"result": [{split or phase_codename: scores}], "submission_result": scores}


def score_files(
    candidates: str,
    references: str,
    *,
    metrics: Sequence[str] = ("spice",),
    partial: bool = False,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    pipeline: str = DEFAULT_PIPELINE,
    data: MetricData | None = None,
) -> Result:
    """Score a file of candidates against a file of references, in any format of ``spicegraph score``.

    With ``partial``, images without a candidate are left out, and with ``empty="zero"`` empty candidates score as the
    original programs score them; a warning says how many. ``control_tokens`` is that of
    :func:`spicegraph_scorer.score`.
    """
    dataset = read_items(candidates, references=references, partial=partial, empty=empty, control_tokens=control_tokens)
    if dataset.left_out:
        left_out, images = dataset.left_out, dataset.left_out + len(dataset.items)
        warnings.warn(
            f"{candidates}: {counted(left_out, 'image')} of the {images:,} in {references} left out: no candidate",
            stacklevel=2,
        )
    for note in notes_on(candidates, dataset.items):
        warnings.warn(note, stacklevel=2)
    return score(dataset.items, metrics, pipeline=pipeline, data=data)


def leaderboard_scores(result: Result) -> dict[str, float]:
    """Return the corpus scores that are defined, under flat keys (``spice``, ``spice_color_f``, ``bleu_4`` ...)."""
    return {name: value for name, value in flat_scores(result).items() if not math.isnan(value)}
