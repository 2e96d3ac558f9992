"""MLflow 3: the scorer in an evaluation that a local file store records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlflow
import pytest
from spicegraph_mlflow import caption_scorer

from conftest import ROWS
from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_an_evaluation(tmp_path: Path, expected: list[dict[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_experiment("captions")
    data = [
        {"inputs": {"image": n}, "outputs": caption, "expectations": {"references": list(references)}}
        for n, (caption, references) in enumerate(ROWS)
    ]
    result = mlflow.genai.evaluate(data=data, scorers=[caption_scorer("spice,rouge")])
    for name in expected[0]:
        assert result.metrics[f"{name}/mean"] == pytest.approx(sum(row[name] for row in expected) / len(expected))


def test_one_row(expected: list[dict[str, float]]) -> None:
    caption, references = ROWS[0]
    scorer = caption_scorer("spice,rouge")
    found = scorer(outputs=caption, expectations={"references": list(references)})
    assert {feedback.name: feedback.value for feedback in found} == expected[0]
    (one,) = caption_scorer("rouge")(outputs=caption, expectations={"expected_response": references[0]})
    assert 0 < one.value < 1


@pytest.mark.parametrize(
    ("outputs", "expectations", "message"),
    [
        ({"text": "a dog"}, {"references": ["a dog"]}, "outputs: is dict, expected the caption"),
        ("a dog", {"answer": "a dog"}, "expectations: holds neither references nor expected_response"),
        ("a dog", {"references": []}, "references: contains no reference"),
    ],
)
def test_faulty_rows(outputs: object, expectations: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        caption_scorer()(outputs=outputs, expectations=expectations)


def test_cider_needs_frequencies(frequencies: Path) -> None:
    with pytest.raises(InputError, match="document frequencies"):
        caption_scorer(["cider"])
    scorer = caption_scorer(["cider"], idf=str(frequencies))
    (found,) = scorer(outputs=ROWS[0][0], expectations={"references": list(ROWS[0][1])})
    assert found.value > 1
