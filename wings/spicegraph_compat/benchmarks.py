"""Codabench and CapEvalKit: predictions and references in, files of scores out.

Codabench gives its scoring program a folder with ``ref/`` (the private references) and ``res/`` (the submission), and
a folder for what it writes (``scores.json`` and ``detailed_results.html``). In the scoring program's ``metadata.yaml``:

```yaml
command: spicegraph platform codabench $input $output
```

CapEvalKit calls a plug-in with its benchmark's predictions and references, and reads one JSON file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spicegraph_compat.evalai import leaderboard_scores, score_files
from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.metrics import check_names
from spicegraph_service.kit import System, made_folder, refuse_overwriting, render_page
from spicegraph_service.report import ReportOptions, build_report, to_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_scorer.readers.marks import ControlTokens


def score_submission(
    input_folder: str | Path,
    output_folder: str | Path,
    *,
    metrics: Sequence[str] = ("spice",),
    show_references: bool = False,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    pipeline: str = DEFAULT_PIPELINE,
    data: MetricData | None = None,
) -> dict[str, float]:
    """Score a submission (``ref`` and ``res``, a file in each); write ``scores.json`` and ``detailed_results.html``.

    The page shows scores alone, because the references of a challenge are private; with ``show_references`` it is a
    whole error report. Returned is what ``scores.json`` holds: the scores that are defined. Where something is wrong
    (:class:`InputError`), nothing is written.
    """
    references = _only_file(Path(input_folder) / "ref")
    submission = _only_file(Path(input_folder) / "res")
    page_file, scores_file = (Path(output_folder) / name for name in ("detailed_results.html", "scores.json"))
    refuse_overwriting([str(page_file), str(scores_file)], [str(references), str(submission)])
    result = score_files(
        str(submission),
        str(references),
        metrics=metrics,
        empty=empty,
        control_tokens=control_tokens,
        pipeline=pipeline,
        data=data,
    )
    scores = leaderboard_scores(result)
    made_folder(output_folder)
    options = ReportOptions(metrics=check_names(metrics), data=data or MetricData())
    if show_references:
        page = to_html(build_report([System("submission", result.items)], options, pipeline=pipeline))
    else:  # corpus scores, SPICE's categories and the signature, and no caption
        tables = {run.headline[0].name: run.categories() for run in result.runs}
        values = {
            "headline": [score for run in result.runs for score in run.headline],
            "counted": [(name, rows) for name, rows in tables.items() if any(means.micro for means in rows.values())],
            "items": len(result.items),
            "signature": msgspec.json.format(msgspec.json.encode(result.signature), indent=2).decode(),
        }
        page = render_page("scores.html.j2", values, package="spicegraph_compat")
    page_file.write_text(page, encoding="utf-8")
    scores_file.write_bytes(msgspec.json.format(msgspec.json.encode(scores), indent=2) + b"\n")
    return scores


def _only_file(folder: Path) -> Path:
    """Return the one file of a folder, of whatever name; hidden files do not count."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if len(files) != 1:
        names = ", ".join(path.name for path in files[:5]) or "none"
        raise InputError(f"{folder}: must contain exactly one file, contains {len(files)} ({names})")
    return files[0]


def plugin_output(
    predictions: str | Path,
    references: str | Path,
    *,
    metrics: Sequence[str] = ("spice",),
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    pipeline: str = DEFAULT_PIPELINE,
    data: MetricData | None = None,
) -> dict[str, Json]:
    """Return a plug-in's output: corpus scores by name, and ``per_item`` scores by id; ``None`` is undefined.

    Predictions are JSON Lines of ``{"id", "caption"}`` and references of ``{"id", "references"}``, or any format of
    ``score``; images without a prediction are left out, and a warning says how many.
    """
    result = score_files(
        str(predictions),
        str(references),
        metrics=metrics,
        partial=True,
        empty=empty,
        control_tokens=control_tokens,
        pipeline=pipeline,
        data=data,
    )
    rows = zip(result.items, result.item_scores(), strict=True)
    return {**result.corpus, "per_item": {str(item.id): scores for item, scores in rows}}
