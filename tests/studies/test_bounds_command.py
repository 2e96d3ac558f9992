"""``spicegraph bounds`` as people call it: every format, every source of texts, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_scorer import read_items, score
from spicegraph_service.cli import main
from spicegraph_service.engines.local import spread_over
from spicegraph_studies.bounds import BoundsStudy, find_bounds, human, system
from spicegraph_studies.pages.bounds import bounds_study
from spicegraph_studies.pages.output import STUDY_FORMATS, StudyFormat

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
CAPTIONS = str(EXAMPLES / "captions.json")
RETRIEVAL = str(EXAMPLES / "retrieval.json")
FAST = ("--metrics", "bleu,rouge", "--draws", "30")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command; return exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["bounds", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """An input with references of its own, a name that is markup, and captions that are."""
    rows = [
        {"image_id": 1, "test": "a <blink>dog</blink>", "refs": ["a dog runs", "the brown dog", "a dog"]},
        {"image_id": 2, "test": "two cats", "refs": ["cats", "two cats on a sofa"]},
    ]
    path = tmp_path / "in.json"
    path.write_text(json.dumps(rows))
    return path


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {trial["name"]: trial["scores"] for trial in found["trials"]}


def test_systems_people_and_lower_bounds_of_the_example(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = run(f"mine={RETRIEVAL}", "--references", CAPTIONS, *FAST, "--format", "json")
    assert status == 0
    assert "warning" not in err
    found = json.loads(out)
    assert (found["images"], found["captions"], found["rounds"]) == (200, 1000, 5)
    trials = by_name(found)
    assert list(trials) == ["human", "mine", "intra", "gibberish-10", "words-10", "definitions"]
    first = read_items(str(EXAMPLES / "human.json"), references=str(EXAMPLES / "captions_without_first.json"))
    theirs = score(first.items, ["bleu", "rouge"]).corpus
    for name in ("Bleu_1", "Bleu_4", "ROUGE_L"):
        assert trials["human"][name]["rounds"][0] == pytest.approx(theirs[name], abs=1e-9)
        assert trials["words-10"][name]["value"] < trials["human"][name]["low"]
        share = trials["mine"][name]["share"]
        assert share["low"] < share["percent"] < share["high"]
        assert share["percent"] == pytest.approx(100 * trials["mine"][name]["value"] / trials["human"][name]["value"])


def test_table_names_everything(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = run(RETRIEVAL, "--references", CAPTIONS, *FAST)
    assert status == 0
    assert "warning" not in err
    for text in ("200 images, 1,000 captions", "People against people", "retrieval", "Kendall's tau-b", "words-10"):
        assert text in out
    assert all(len(line) <= 120 for line in out.splitlines() if "Bleu_1" in line)


def test_csv_has_a_row_for_each_score_of_each_trial(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run("--references", CAPTIONS, *FAST, "--lower", "intra", "--format", "csv")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["trial"], row["score"]) for row in rows[:2]] == [("human", "Bleu_1"), ("human", "Bleu_2")]
    assert {row["trial"] for row in rows} == {"human", "intra"}
    assert rows[0]["percent"] == ""
    assert float(rows[-1]["percent"]) < 100
    assert rows[0]["captions_n"] == "1000"


def test_csv_of_the_rounds_and_of_the_rankings(run: Callable[..., tuple[int, str, str]]) -> None:
    options = ("--references", CAPTIONS, *FAST, "--lower", "none")
    found = json.loads(run(*options, "--format", "json")[1])
    rounds = list(csv.DictReader(io.StringIO(run(*options, "--format", "csv", "--table", "rounds")[1])))
    shown = [float(row["value"]) for row in rounds if row["score"] == "ROUGE_L"]
    assert shown == by_name(found)["human"]["ROUGE_L"]["rounds"]
    ranking = list(csv.DictReader(io.StringIO(run(*options, "--format", "csv", "--table", "ranking")[1])))
    assert len(ranking) == 2 * 5 * 4 / 2
    last = ranking[-1]
    assert (last["over"], last["first"], last["second"]) == ("images", "Bleu_4", "ROUGE_L")
    assert float(last["tau_b"]) == found["ranking"]["images"]["tau_b"][3][4]


def test_latex_tables_have_as_many_columns_as_they_say(run: Callable[..., tuple[int, str, str]], jar: Path) -> None:
    status, out, _ = run(f"my_50%={jar}", *FAST, "--lower", "intra", "--format", "latex")
    assert status == 0
    tables = out.split(r"\begin{tabular}")[1:]
    assert len(tables) == 5  # people, the system, the lower bound, and two rankings
    for table in tables:
        layout = table[1 : table.index("}")]
        lines = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(layout) - 1}
    assert r"my\_50\%" in tables[1]


def test_page_is_whole_and_escapes_what_users_write(
    run: Callable[..., tuple[int, str, str]], jar: Path, tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    status, out, _ = run(f"<i>mine={jar}", *FAST, "-o", str(target))
    assert (status, out) == (0, "")
    page = target.read_text()
    assert "<i>mine" not in page
    assert "&lt;i&gt;mine" in page
    assert "1 to 2 others of its image" in page
    assert page.count('<svg class="plot"') == 4
    assert 'rowspan="8"' in page
    assert page.rstrip().endswith("</html>")
    assert "<script" not in page


@pytest.mark.parametrize(
    ("ending", "start"), [(".json", "{"), (".csv", "trial,"), (".tex", "%"), (".txt", "200 images")]
)
def test_the_ending_says_the_format(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, ending: str, start: str
) -> None:
    target = tmp_path / f"out{ending}"
    status, _, _ = run("--references", CAPTIONS, *FAST, "--lower", "none", "-o", str(target))
    assert status == 0
    assert target.read_text().startswith(start)


def test_the_same_seed_gives_the_same_output(run: Callable[..., tuple[int, str, str]], jar: Path) -> None:
    arguments = (str(jar), *FAST, "--format", "json", "--seed", "3")
    assert run(*arguments) == run(*arguments)
    assert run(*arguments)[1] != run(*arguments[:-1], "4")[1]


def test_the_number_of_processes_changes_nothing() -> None:
    captions = {image: (f"a dog {image}", "the dog runs", f"a {image % 7} cat") for image in range(1300)}
    study = BoundsStudy.of(captions)
    trial = system("s", dict.fromkeys(captions, "a dog runs"), study)
    with spread_over(2) as spread:
        two = find_bounds(study, [trial], ["spice", "rouge", "bleu"], spread=spread)
    one = find_bounds(study, [trial], ["spice", "rouge", "bleu"])
    assert two == one


def test_other_corpora_and_sentences(run: Callable[..., tuple[int, str, str]], tmp_path: Path, jar: Path) -> None:
    sentences = tmp_path / "text.txt"
    sentences.write_text("\n".join(("This is a sentence of the text.", "", "Short.")))
    arguments = ("--other", CAPTIONS, "--sentences", str(sentences), "--length", "3", "--per-image", "1")
    status, out, err = run(str(jar), *FAST, *arguments, "--format", "json")
    assert status == 0
    assert "warning" not in err
    trials = by_name(json.loads(out))
    assert {"inter", "sentences", "gibberish-3", "gibberish-sentences-3", "words-3"} <= set(trials)
    assert trials["sentences"]["ROUGE_L"]["captions"]["sd"] is not None


def test_categories_of_ones_own_and_frozen_frequencies(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, jar: Path
) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[Pet]\nkind = "object"\nwords = ["dog", "cat"]\n')
    assert main(["idf", CAPTIONS, "-o", str(tmp_path / "df.npz")]) == 0
    arguments = ("--categories", str(own), "--idf", str(tmp_path / "df.npz"), "--lower", "none", "--format", "json")
    status, out, _ = run(str(jar), "--metrics", "spice,cider", "--draws", "20", *arguments)
    assert status == 0
    found = json.loads(out[out.index("{") :])
    assert by_name(found)["human"]["SPICE_Pet"]["value"] == 1.0
    assert by_name(found)["human"]["CIDEr"]["value"] > 0
    assert "images)" in found["signature"]["metrics"]["cider"]["document frequencies"]


def write(path: Path, value: object) -> str:
    path.write_text(json.dumps(value))
    return str(path)


def annotations(captions: dict[int, list[str]]) -> dict[str, object]:
    rows = ((image, text) for image, texts in captions.items() for text in texts)
    return {"annotations": [{"id": i, "image_id": image, "caption": text} for i, (image, text) in enumerate(rows)]}


def test_partial_leaves_out_what_lacks_captions_or_results(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    captions = write(tmp_path / "a.json", annotations({1: ["a dog", "the dog"], 2: ["a cat"], 3: ["x y", "z"]}))
    results = write(tmp_path / "r.json", [{"image_id": 1, "caption": "a dog"}])
    status, _, err = run(results, "--references", captions, *FAST)
    assert status == 2
    assert "--partial" in err
    status, out, _ = run(results, "--references", captions, *FAST, "--partial", "--lower", "none", "--format", "json")
    assert status == 0
    assert json.loads(out)["images"] == 1
    status, out, _ = run("--references", captions, *FAST, "--partial", "--format", "json")
    assert json.loads(out)["images"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there are no captions: give --references"),
        (("--references", "{captions}", "--lower", "noise"), "there is no lower bound 'noise'"),
        (("--references", "{captions}", "--lower", "intra,inter"), "inter is drawn from the texts of --other FILE"),
        (("--references", "{captions}", "--metrics", "nothing"), "there is no metric 'nothing'"),
        (("--references", "{captions}", "--captions", "1"), "at least 2 of each image"),
        (("--references", "{captions}", "--captions", "6"), "200 images with fewer than 6 captions"),
        (("--references", "{captions}", "--length", "0"), "at least one word"),
        (("--references", "{captions}", "--other", "missing.json"), "missing.json"),
        (("--references", "{captions}", "-o", "/nowhere/out.html"), "there is no folder"),
        (("--references", "{captions}", "--table", "ranks"), "there is no table 'ranks'; there are scores, rounds,"),
        (("--references", "{captions}", "--table", "ranking"), "--table selects a table for CSV: add --format csv"),
        (("{retrieval}", "{retrieval}", "--references", "{captions}"), "two trials are called 'retrieval'"),
        (("human={retrieval}", "--references", "{captions}"), "two trials are called 'human'"),
    ],
)
def test_what_is_wrong_is_said_in_one_error(
    run: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], message: str
) -> None:
    filled = [text.replace("{captions}", CAPTIONS).replace("{retrieval}", RETRIEVAL) for text in arguments]
    status, out, err = run(*FAST, *filled)
    assert (status, out) == (2, "")
    assert err.count("error: ") == 1
    assert message in err
    assert "Traceback" not in err


def test_inputs_with_different_references_do_not_fit(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    one = write(tmp_path / "one.json", [{"image_id": 1, "test": "a", "refs": ["b c", "d"]}])
    two = write(tmp_path / "two.json", [{"image_id": 1, "test": "a", "refs": ["b c", "e"]}])
    status, _, err = run(one, two, *FAST)
    assert status == 2
    assert "two: item 1 has different references" in err


def test_undefined_scores_are_dashes_and_nulls() -> None:
    study = BoundsStudy((1,), (("a dog", "the dog"),))
    with pytest.warns(UserWarning, match="CIDEr is undefined"):
        found = find_bounds(study, [system("s", {1: "a cat"}, study)], ["cider"])
    shown = bounds_study(found)
    assert json.loads(STUDY_FORMATS[StudyFormat.JSON](shown))["trials"][0]["scores"]["CIDEr"]["value"] is None
    assert "–" in STUDY_FORMATS[StudyFormat.TABLE](shown)
    for form in StudyFormat:
        assert "nan" not in STUDY_FORMATS[form](shown).lower()
    assert found.human.name == human(study).name
