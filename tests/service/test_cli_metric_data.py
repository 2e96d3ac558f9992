"""``--vectors``, ``--idf`` and ``--categories``: taken by every command that computes metrics, refused if unused."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.graded.building import build_table
from spicegraph_scorer.metrics.graded.vectors import VectorTable
from spicegraph_service.cli import main, options
from spicegraph_service.cli.options import METRIC_DATA, MetricOptions

pytestmark = pytest.mark.model

Captured = pytest.CaptureFixture[str]

CANDIDATES = {1: "A puppy runs on grass.", 2: "A man rides a horse.", 3: "Two cats sleep on a sofa."}
REFERENCES = {
    1: ["A dog runs on a lawn.", "A dog on grass."],
    2: ["A man is riding a brown horse.", "A rider on a horse."],
    3: ["Two cats lie on a couch.", "Cats sleep."],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with captions in the shape of each command, a table, frequencies and categories."""
    made = tmp_path_factory.mktemp("captions")
    words = [[frozenset(text.lower().strip(".").split()) for text in texts] for texts in REFERENCES.values()] * 3
    build_table(words, name="toy", dimensions=8, fewest=2, order=None).write(made / "toy.npz")
    DocumentFrequencies.from_references([tokenize_texts(texts) for texts in REFERENCES.values()]).write(made / "f.npz")
    (made / "c.toml").write_text('[Pet]\nwords = ["dog", "cat", "puppy"]\n')
    items = [{"id": n, "candidate": text, "references": REFERENCES[n]} for n, text in CANDIDATES.items()]
    rated = [{**item, "ratings": [n, n + 1]} for n, item in enumerate(items)]
    pairs = [
        {"image_id": n, "captions": [text, "A bus."], "label": 0, "references": REFERENCES[n]}
        for n, text in CANDIDATES.items()
    ]
    for name, rows in {"items": items, "rated": rated, "pairs": pairs}.items():
        (made / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made / "predictions.jsonl").write_text(
        "".join(json.dumps({"id": n, "caption": text}) + "\n" for n, text in CANDIDATES.items())
    )
    (made / "references.jsonl").write_text(
        "".join(json.dumps({"id": n, "references": texts}) + "\n" for n, texts in REFERENCES.items())
    )
    (made / "in" / "ref").mkdir(parents=True)
    (made / "in" / "res").mkdir()
    (made / "in" / "ref" / "r.jsonl").write_text((made / "references.jsonl").read_text())
    (made / "in" / "res" / "p.jsonl").write_text((made / "predictions.jsonl").read_text())
    return made


COMMANDS = {
    "score": ("score", "{}/items.jsonl"),
    "compare": ("compare", "{}/items.jsonl", "B={}/items.jsonl", "--draws", "5"),
    "report": ("report", "{}/items.jsonl", "--draws", "5"),
    "bounds": ("bounds", "{}/items.jsonl", "--draws", "5", "--lower", "none"),
    "captions": ("agree", "captions", "{}/rated.jsonl", "--draws", "5"),
    "pairs": ("agree", "pairs", "{}/pairs.jsonl", "--draws", "5"),
}
CAPEVALKIT = (
    *("platform", "capevalkit", "--predictions", "{}/predictions.jsonl"),
    *("--references", "{}/references.jsonl", "-o", "{}/out.json"),
)
CODABENCH = ("platform", "codabench", "{}/in", "{}/out", "--show-references")


def run(folder: Path, *arguments: str) -> int:
    return main([argument.format(folder) for argument in arguments])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_computes_with_the_given_vectors_and_says_so(
    command: str, folder: Path, capsys: Captured
) -> None:
    texts = []
    for own in ((), ("--vectors", "{}/toy.npz")):
        assert run(folder, *COMMANDS[command], "--metrics", "spice-g", "--format", "json", *own) == 0
        texts.append(capsys.readouterr().out)
    bundled, mine = map(json.loads, texts)
    signature = VectorTable.read(folder / "toy.npz").signature
    assert mine["signature"]["metrics"]["spice-g"]["vectors"] == signature
    assert bundled["signature"]["metrics"]["spice-g"]["vectors"] != signature
    for found in (bundled, mine):
        del found["signature"]
    if command not in {"compare", "pairs"}:  # there, differences of 0 and the same preferences
        assert mine != bundled


@pytest.mark.parametrize("command", [CAPEVALKIT, CODABENCH], ids=["capevalkit", "codabench"])
def test_platforms_compute_with_the_given_vectors(command: tuple[str, ...], folder: Path, capsys: Captured) -> None:
    values = []
    for own in ((), ("--vectors", "{}/toy.npz")):
        assert run(folder, *command, "--metrics", "spice-g", *own) == 0
        written = folder / ("out.json" if command == CAPEVALKIT else "out/scores.json")
        found = json.loads(written.read_text())
        values.append({name.lower(): value for name, value in found.items()}["spice-g"])
    capsys.readouterr()
    assert values[0] != values[1]
    if command == CODABENCH:
        assert VectorTable.read(folder / "toy.npz").signature in (folder / "out/detailed_results.html").read_text()


UNUSED = {"--vectors": "{}/toy.npz", "--idf": "{}/f.npz", "--categories": "{}/c.toml"}
REFUSED = [
    *((COMMANDS[name], option) for name in ("score", "compare", "bounds") for option in UNUSED),
    *((COMMANDS[name], option) for name in ("captions", "pairs", "report") for option in ("--vectors", "--idf")),
    *((command, "--vectors") for command in (CAPEVALKIT, CODABENCH)),
]


@pytest.mark.parametrize(("command", "option"), REFUSED)
def test_a_file_that_no_metric_uses_is_refused(
    command: tuple[str, ...], option: str, folder: Path, capsys: Captured
) -> None:
    assert run(folder, *command, "--metrics", "rouge", option, UNUSED[option]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"error: {option} {UNUSED[option].format(folder)}: none of the chosen metrics uses it; ")
    assert {"--vectors": "spice-g", "--idf": "cider-d", "--categories": "spice-exact"}[option] in line


def test_a_file_is_taken_where_the_command_uses_it_by_itself(folder: Path, capsys: Captured) -> None:
    """The best candidate is chosen by SPIDEr, which has a CIDEr in it, and a report always counts SPICE's categories."""
    two = folder / "two.jsonl"
    two.write_text('{"id": 1, "candidates": ["a dog", "a cat"], "references": ["a dog runs"]}\n')
    best = ("score", str(two), "--candidates", "best", "--metrics", "rouge")
    assert run(folder, *best, "--idf", UNUSED["--idf"]) == 0
    assert run(folder, *COMMANDS["report"], "--metrics", "rouge", "--categories", UNUSED["--categories"]) == 0
    assert "Pet" in capsys.readouterr().out


@pytest.mark.parametrize("command", [*COMMANDS.values(), CAPEVALKIT])
def test_a_file_that_is_no_table_is_one_error(command: tuple[str, ...], folder: Path, capsys: Captured) -> None:
    assert run(folder, *command, "--metrics", "spice-g", "--vectors", "{}/items.jsonl") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: {folder}/items.jsonl: cannot be read as a table of vectors (it is something else)\n"


def test_no_command_names_what_metrics_take() -> None:
    """A new datum is a field of MetricOptions: the commands have it then, without a change."""
    data = {field.name for field in fields(MetricData)}
    assert set(METRIC_DATA) == data
    assert data <= {field.name for field in fields(MetricOptions)}
    modules = Path(options.__file__).parent.glob("*.py")
    named = {
        f"{path.name}: {name}"
        for path in modules
        if path.name not in {"options.py", "serve.py"}
        for name in data
        if re.search(rf"^    {name}: Annotated", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert not named
