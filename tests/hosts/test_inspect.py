"""Inspect: the scorer in a task, and over a stored log."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import spicegraph_inspect
from inspect_ai import Task, score
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from spicegraph_inspect import captions

from conftest import ROWS
from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from inspect_ai.scorer import Score

NAMES = ["spice", "spice_precision", "spice_recall", "rouge_l"]


def run(folder: Path, scorer: object) -> str:
    """Evaluate a model that says the rows' captions; return where the log is."""
    dataset = [Sample(input=f"image {n}", target=list(references), id=n) for n, (_, references) in enumerate(ROWS)]
    outputs = [ModelOutput.from_content("mockllm", caption) for caption, _ in ROWS]
    for output in outputs:
        output.usage = ModelUsage()  # else Inspect counts tokens, with a file from the network
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = evaluate(
        Task(dataset=dataset, scorer=scorer), model=model, log_dir=str(folder), display="none", max_samples=1
    )
    assert log.status == "success", log.error
    return log.location


def scores_in(log: object) -> list[Score]:
    """Return each sample's score by ours; an installed package's name may stand before it."""
    (name,) = [name for name in log.samples[0].scores if name.endswith("captions")]
    return [sample.scores[name] for sample in sorted(log.samples, key=lambda sample: sample.id)]


def test_a_task(tmp_path: Path, expected: list[dict[str, float]]) -> None:
    log = read_eval_log(run(tmp_path, captions("spice,rouge")))
    found = scores_in(log)
    assert [score.value for score in found] == expected
    assert [score.answer for score in found] == [caption for caption, _ in ROWS]
    (means,) = [{m.name: m.value for m in s.metrics.values()} for s in log.results.scores if s.name == "spice"]
    assert means["mean"] == pytest.approx(sum(row["spice"] for row in expected) / 3)
    assert {s.name for s in log.results.scores} == set(NAMES)


def test_a_stored_log(tmp_path: Path, expected: list[dict[str, float]]) -> None:
    from inspect_ai.scorer import includes

    stored = read_eval_log(run(tmp_path, includes()))
    log = score(stored, captions("spice,rouge"), action="append", display="none")
    assert [score.value for score in scores_in(log)] == expected


def test_a_stored_log_on_the_command_line(tmp_path: Path, expected: list[dict[str, float]]) -> None:
    """As the documentation has it: `inspect score LOG --scorer spicegraph_inspect.py@captions`."""
    from inspect_ai.scorer import includes

    log, scored = run(tmp_path, includes()), tmp_path / "scored.eval"
    shutil.copy(spicegraph_inspect.__file__, tmp_path)
    options = ["-S", "metrics=spice,rouge", "--action", "append", "--output-file", str(scored)]
    command = [Path(sys.executable).with_name("inspect"), "score", log, "--scorer", "spicegraph_inspect.py@captions"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [score.value for score in scores_in(read_eval_log(str(scored)))] == expected


def test_cider_needs_frequencies(frequencies: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="document frequencies"):
        captions("spice,cider")
    log = read_eval_log(run(tmp_path, captions("cider", idf=str(frequencies))))
    assert scores_in(log)[0].value["cider"] > 1
