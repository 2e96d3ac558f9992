"""EvalAI: the function ``evaluate`` that its challenge template calls.

In a challenge's ``evaluation_script/__init__.py``:

```python
from spicegraph_scorer.adapters.evalai import evaluate
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.adapters.leaderboard import leaderboard_scores, score_files

if TYPE_CHECKING:
    from spicegraph_scorer.metrics import MetricData


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

    Args:
        test_annotation_file: the private references.
        user_submission_file: the submission; like the references in any format of ``spicegraph score``.
        phase_codename: the phase; the name of the split where ``split`` is not given.
        metrics: names from ``METRICS``.
        split: the split's codename in the challenge's configuration.
        pipeline: the spaCy pipeline that parses captions.
        data: as for :func:`spicegraph_scorer.score`.
        _submission: what else EvalAI says of the submission; not used.

    Returns:
        ``{"result": [{split: scores}], "submission_result": scores}``, with the scores that are defined.

    Raises:
        InputError: the submission is faulty. EvalAI shows the message to the team: it names ids and fields,
            and never a reference's text.
    """
    result = score_files(user_submission_file, test_annotation_file, metrics=metrics, pipeline=pipeline, data=data)
    scores = leaderboard_scores(result)
    return {"result": [{split or phase_codename: scores}], "submission_result": scores}
