"""``compare``, ``idf`` and the options of ``score`` that lean on them, as their users call them."""

from __future__ import annotations

import json
import re

import pytest

from spicegraph_parser.pipelines import load_pipeline, model_card
from spicegraph_service.cli import main
from spicegraph_service.output import tables
from wings import needs_graded

ITEMS = [
    {"id": number, "candidate": f"a {color} dog", "references": [f"a {color} dog runs", "a dog on grass"]}
    for number, color in enumerate(["brown", "black", "white", "red"])
]


@pytest.fixture
def files(tmp_path):
    first, second, annotations = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "captions.json"))
    first.write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    second.write_text("".join(json.dumps({**item, "candidate": "a cat"}) + "\n" for item in ITEMS))
    annotations.write_text(
        json.dumps({"annotations": [{"image_id": i["id"], "caption": text} for i in ITEMS for text in i["references"]]})
    )
    return first, second, annotations


@needs_graded
def test_compare_says_of_which_scores_the_lowest_is_the_best(files, capsys):
    first, second, _ = files
    assert main(["compare", str(first), str(second), "--metrics", "chair,bleu", "--draws", "20"]) == 0
    assert "lower is better: CHAIRi, CHAIRs\n" in capsys.readouterr().out
    assert main(["compare", str(first), str(second), "--metrics", "bleu", "--draws", "20"]) == 0
    assert "lower is better" not in capsys.readouterr().out


def test_compare_marks_significant_differences_on_a_terminal(tmp_path, monkeypatch, capsys):
    words = ["dog", "cat", "bus", "cup", "man", "boat", "tree", "car", "bird", "horse"]
    for name, said in (("good", words), ("bad", ["sea", *words])):
        rows = [{"id": n, "candidate": f"a {said[n]}", "references": [f"a {word}"]} for n, word in enumerate(words)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables, "is_terminal", lambda _: True)
    monkeypatch.setattr(tables, "console_width", lambda: 120)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    arguments = ["compare", "good.jsonl", "bad.jsonl", "--metrics", "rouge", "--draws", "200"]
    assert main(arguments) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "ROUGE_L" in line]
    best, worst, *_ = row.split()[1:]
    assert best == "\x1b[1;32m1.0000\x1b[0m"
    assert worst.startswith("\x1b[31m0.5")
    assert row.count("\x1b[31m") == 2  # the difference, too
    assert len(re.findall(r"\x1b\[1m *0\.00", row)) == 3  # both p, and the larger one corrected
    assert row.rstrip().endswith("*")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(arguments) == 0
    assert not re.search(r"\x1b\[[\d;]*3\dm", capsys.readouterr().out)


def test_compare_shows_a_table_and_writes_json(files, tmp_path, capsys):
    first, second, _ = files
    assert main(["compare", str(first), str(second), "--metrics", "bleu", "--draws", "50"]) == 0
    shown = capsys.readouterr().out
    assert "Bleu_1" in shown
    assert "p randomization" in shown
    output = tmp_path / "out.json"
    arguments = ["compare", str(first), str(second), "--metrics", "bleu", "--format", "json", "-o", str(output)]
    assert main(arguments) == 0
    scores = json.loads(output.read_text())["scores"]["Bleu_1"]
    assert scores["first"] > scores["second"]
    assert scores["difference"] == pytest.approx(scores["second"] - scores["first"])


def test_compare_shows_which_tuples_change(files, tmp_path, capsys):
    first, second, _ = files
    arguments = ["compare", str(first), str(second), "--changes"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert " 0       added wrong     (cat)\n         removed right   (dog) (dog, brown)\n" in shown
    assert main([*arguments, "-o", str(tmp_path / "out.json")]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["corpus"]["removed_right"] == sum(len(row["tuples"]["removed_right"]) for row in found["items"]) == 8
    assert found["systems"] == {"first": "a", "second": "b"}
    assert main([*arguments, "--metrics", "bleu"]) == 2
    assert "--changes: shows the tuples of one metric, spice or spice-exact" in capsys.readouterr().err
    assert main([*arguments, "-o", str(tmp_path / "out.html")]) == 2
    assert "--changes: can be written as table or json" in capsys.readouterr().err


def test_compare_takes_its_format_from_the_ending_and_names_the_systems(files, tmp_path, capsys):
    first, second, _ = files
    arguments = ["compare", f"mine={first}", str(second), "--metrics", "bleu", "--draws", "20"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("A: mine\nB: b\n\nB against A\n")
    assert main([*arguments, "-o", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["systems"] == {"first": "mine", "second": "b"}
    assert main([*arguments, "-o", str(tmp_path / "out.csv")]) == 2
    assert "can't write .csv; it can write .json, .html, .htm" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    assert main(["report", str(first), "-o", str(tmp_path / "out.csv")]) == 2
    assert "can't write .csv; it can write .json, .md" in capsys.readouterr().err


def test_compare_refuses_systems_of_different_images(files, tmp_path, capsys):
    first, _, _ = files
    other = tmp_path / "c.jsonl"
    other.write_text(json.dumps(ITEMS[0]) + "\n")
    assert main(["compare", str(first), str(other), "--metrics", "bleu"]) == 2
    assert "item 1 is only in the first" in capsys.readouterr().err


def test_a_single_caption_has_a_cider_score_with_frozen_frequencies(files, tmp_path, capsys):
    _, _, annotations = files
    frozen, single = tmp_path / "idf.npz", tmp_path / "single.jsonl"
    single.write_text(json.dumps(ITEMS[0]) + "\n")
    assert main(["idf", str(annotations), "-o", str(frozen)]) == 0
    assert "4 images" in capsys.readouterr().out

    def score(*options):
        assert main(["score", str(single), "--metrics", "cider", "--format", "json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    alone, weighted = score(), score("--idf", str(frozen))
    assert alone["corpus"]["CIDEr"] is None
    assert weighted["corpus"]["CIDEr"] > 0
    assert "4 images" in weighted["signature"]["metrics"]["cider"]["document frequencies"]


def test_the_frequencies_of_the_references_themselves_change_nothing(files, tmp_path, capsys):
    first, _, annotations = files
    frozen = tmp_path / "idf.npz"
    assert main(["idf", str(annotations), "-o", str(frozen)]) == 0
    capsys.readouterr()
    results = []
    for options in ([], ["--idf", str(frozen)]):
        assert main(["score", str(first), "--metrics", "cider", "--format", "json", *options]) == 0
        results.append(json.loads(capsys.readouterr().out)["corpus"]["CIDEr"])
    assert results[0] == pytest.approx(results[1], abs=1e-12)


def test_bad_frequencies_are_one_clear_error(files, tmp_path, capsys):
    first, _, _ = files
    wrong = tmp_path / "wrong.npz"
    wrong.write_text("no")
    reasons = {wrong: "it is something else", tmp_path / "missing.npz": "No such file or directory"}
    for path, reason in reasons.items():
        assert main(["score", str(first), "--metrics", "cider", "--idf", str(path)]) == 2
        assert f"cannot be read as document frequencies ({reason})" in capsys.readouterr().err


@pytest.mark.model
def test_workers_and_cache_give_the_same_scores(files, tmp_path, capsys):
    first, _, _ = files
    outputs = []
    for options in ([], ["--workers", "2"], ["--cache", str(tmp_path / "p.db")], ["--cache", str(tmp_path / "p.db")]):
        assert main(["score", str(first), "--format", "json", *options]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert all(output == outputs[0] for output in outputs)


@pytest.mark.model
def test_pipelines_prints_the_signature_and_the_model_card(capsys):
    assert main(["pipelines"]) == 0
    signature, _, card = capsys.readouterr().out.partition("\n\n")
    assert signature == load_pipeline().signature
    assert card == model_card()
    assert "## Known weaknesses" in card
