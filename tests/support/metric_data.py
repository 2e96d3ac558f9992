"""Files that commands give to metrics: vectors, document frequencies, categories; captions in the shape of each command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_service.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Captured = pytest.CaptureFixture[str]

UNUSED = {"--vectors": "{}/toy.npz", "--idf": "{}/f.npz", "--categories": "{}/c.toml"}
CANDIDATES = {1: "A puppy runs on grass.", 2: "A man rides a horse.", 3: "Two cats sleep on a sofa."}
REFERENCES = {
    1: ["A dog runs on a lawn.", "A dog on grass."],
    2: ["A man is riding a brown horse.", "A rider on a horse."],
    3: ["Two cats lie on a couch.", "Cats sleep."],
}


@pytest.fixture(scope="module")
def metric_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with captions in the shape of each command, a table, frequencies and categories."""
    made = tmp_path_factory.mktemp("captions")
    words = [[frozenset(text.lower().strip(".").split()) for text in texts] for texts in REFERENCES.values()] * 3
    building = pytest.importorskip("spicegraph_graded.spice_g.building", reason="the wing is left out")
    building.build_table(words, name="toy", dimensions=8, fewest=2, order=None).write(made / "toy.npz")
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


def run(folder: Path, *arguments: str) -> int:
    return main([argument.format(folder) for argument in arguments])


def check_vectors_are_used(command: Sequence[str], folder: Path, capsys: Captured, *, differs: bool) -> None:
    """A command computes with the vectors that it is given, and its signature says so."""
    texts = []
    for own in ((), ("--vectors", "{}/toy.npz")):
        assert run(folder, *command, "--metrics", "spice-g", "--format", "json", *own) == 0
        texts.append(capsys.readouterr().out)
    bundled, mine = map(json.loads, texts)
    from spicegraph_graded import VectorTable

    signature = VectorTable.read(folder / "toy.npz").signature
    assert mine["signature"]["metrics"]["spice-g"]["vectors"] == signature
    assert bundled["signature"]["metrics"]["spice-g"]["vectors"] != signature
    for found in (bundled, mine):
        del found["signature"]
    if differs:  # of some, differences are 0 and preferences the same
        assert mine != bundled


def check_unused_is_refused(command: Sequence[str], option: str, folder: Path, capsys: Captured) -> None:
    """A command refuses a file that none of its metrics uses."""
    assert run(folder, *command, "--metrics", "rouge", option, UNUSED[option]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"error: {option} {UNUSED[option].format(folder)}: none of the chosen metrics uses it; ")
    assert {"--vectors": "spice-g", "--idf": "cider", "--categories": "spice-exact"}[option] in line


def check_other_files_are_refused(command: Sequence[str], folder: Path, capsys: Captured) -> None:
    """A file that is not a table of vectors is one error."""
    assert run(folder, *command, "--metrics", "spice-g", "--vectors", "{}/items.jsonl") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: {folder}/items.jsonl: cannot be read as a table of vectors (it is something else)\n"
