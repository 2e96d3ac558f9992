"""SPICE-G on the command line: ``--explain``, ``--vectors`` and ``spicegraph vectors build``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spicegraph_graded.spice_g.vectors import VectorTable
from spicegraph_service.cli import main

pytestmark = pytest.mark.model

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
CAPTIONS = str(EXAMPLES / "captions.json")
INPUT = (str(EXAMPLES / "retrieval.json"), "--references", CAPTIONS)


def items(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_table_has_the_categories_of_spice_g(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUT, "--metrics", "spice-g", "--confidence"]) == 0
    shown = capsys.readouterr().out
    assert "SPICE-G by category" in shown
    assert "SPICE-G_Color" in shown  # with an interval of its own
    assert "vectors:coco-train2014-" in shown


def test_explanations_stand_beside_the_scores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUT, "--metrics", "spice,spice-g", "--format", "jsonl", "--explain"]) == 0
    rows = items(capsys.readouterr().out)
    assert len(rows) == 200
    for row in rows:
        (why,) = row["explanation"].values()  # type: ignore[attr-defined]
        assert why["reference"]
        assert len(why["changes"]) <= 3
        gains = [change["gain"] for change in why["changes"]]
        assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize(
    "options", [("--metrics", "spice", "--format", "json"), ("--metrics", "spice-g"), ("--format", "csv")]
)
def test_what_cannot_be_explained_is_refused(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUT, "--explain", *options]) == 2
    assert "--explain" in capsys.readouterr().err


def test_credits_stand_beside_the_scores(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = "spice-g,cider,bleu"
    assert main(["score", *INPUT, "--metrics", metrics, "--format", "jsonl", "--credit"]) == 0
    for row in items(capsys.readouterr().out):
        assert list(row["credit"]) == ["SPICE-G", "CIDEr"]  # type: ignore[call-overload]
        for name, found in row["credit"].items():  # type: ignore[attr-defined]
            assert sum(word["credit"] for word in found["words"]) == pytest.approx(row["scores"][name])  # type: ignore[index]


@pytest.mark.parametrize("options", [("--metrics", "bleu", "--format", "json"), ("--metrics", "spice-g")])
def test_what_has_no_credit_is_refused(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUT, "--credit", *options]) == 2
    assert "--credit needs the metric spice or " in capsys.readouterr().err


def test_vectors_of_your_own_are_built_used_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "own.npz"
    assert main(["vectors", "build", CAPTIONS, "-o", str(table), "--dimensions", "16"]) == 0
    said = capsys.readouterr().out
    assert "16 dimensions, of 200 images, own-" in said
    signature = said.split()[-1]
    first = table.read_bytes()
    order = VectorTable.read(table).order
    assert order is not None
    assert order.flow("A man on a surfboard.") > 0 > order.flow("on man surfboard a a")
    assert main(["vectors", "build", CAPTIONS, "-o", str(table), "--dimensions", "16"]) == 0
    assert table.read_bytes() == first
    capsys.readouterr()
    values = []
    for options in ((), ("--vectors", str(table))):
        assert main(["score", *INPUT, "--metrics", "spice-g", "--format", "json", *options]) == 0
        result = json.loads(capsys.readouterr().out)
        values.append((result["signature"]["metrics"]["spice-g"]["vectors"], result["corpus"]["SPICE-G"]))
    assert values[1][0] == signature
    assert values[0] != values[1]


def test_vectors_of_your_own_beside_the_bundled_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, both, twice = (str(tmp_path / f"{name}.npz") for name in ("own", "both", "twice"))
    assert main(["vectors", "build", CAPTIONS, "-o", both, "--dimensions", "16", "--extend", "coco"]) == 0
    assert "in 208 dimensions, of 82,983 images, both-" in capsys.readouterr().out
    assert main(["vectors", "build", CAPTIONS, "-o", own, "--dimensions", "16"]) == 0
    assert main(["vectors", "build", CAPTIONS, "-o", twice, "--dimensions", "16", "--extend", own]) == 0
    assert "in 32 dimensions, of 400 images, twice-" in capsys.readouterr().out
    assert main(["vectors", "build", CAPTIONS, "-o", twice, "--extend", str(tmp_path / "none.npz")]) == 2
    assert "none.npz: cannot be read as a table of vectors" in capsys.readouterr().err


def test_compare_takes_the_same_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "own.npz"
    assert main(["vectors", "build", CAPTIONS, "-o", str(table), "--name", "toy"]) == 0
    other = ("--references", CAPTIONS, "--metrics", "spice-g", "--vectors", str(table), "--draws", "20")
    assert main(["compare", INPUT[0], f"B={INPUT[0]}", *other, "--format", "json"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out[out.index("{") :])
    assert found["scores"]["SPICE-G"]["difference"] == 0
    assert found["signature"]["metrics"]["spice-g"]["vectors"].startswith("toy-")


@pytest.mark.parametrize(
    ("captions", "message"), [("one caption each", "several of each image"), ("hardly any words", "only")]
)
def test_captions_that_make_no_table_are_refused(
    captions: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["a dog and a cat on a red mat"] if captions == "one caption each" else ["a dog", "a cat"]
    annotations = [{"image_id": n, "id": n, "caption": text} for n in range(8) for text in texts]
    source, table = tmp_path / "captions.json", tmp_path / "table.npz"
    source.write_text(json.dumps({"annotations": annotations}))
    assert main(["vectors", "build", str(source), "-o", str(table)]) == 2
    assert message in capsys.readouterr().err
    assert not table.exists()


@pytest.mark.parametrize("content", [None, b"not a table"])
def test_a_file_that_is_no_table_is_refused(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.npz"
    if content is not None:
        path.write_bytes(content)
    assert main(["score", *INPUT, "--metrics", "spice-g", "--vectors", str(path)]) == 2
    assert "table.npz: cannot be read as a table of vectors" in capsys.readouterr().err
