"""``spicegraph agree`` as its users call it: tables, files and pages of all four studies."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest
from scipy import stats

from spicegraph_parser import load_pipeline
from spicegraph_service.cli import main
from spicegraph_service.output.grid import Column, Grid, cell_text, to_csv, to_latex
from spicegraph_studies.agreement import CAPTION_PROTOCOLS, PAIR_PROTOCOLS
from spicegraph_studies.agreement.coefficients import COEFFICIENTS
from spicegraph_studies.cli.agree import CoefficientName

pytestmark = pytest.mark.slow

COCO = Path(__file__).parents[2] / "examples" / "coco"
NASTY = "<script>alert(1)</script> & 50 % \x1b[2J"


def lines(folder, name, rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def rated(tmp_path):
    texts = ["a dog runs on grass", "a dog on grass", "a cat", "a dog", "two birds fly", "a dog runs"]
    rows = [
        {
            "image_id": n // 2,
            "candidate": text,
            "references": ["a dog runs on the grass", "the dog is on grass"],
            "ratings": [rating, rating + 1],
            "metrics": {NASTY: float(n)},
        }
        for n, (text, rating) in enumerate(zip(texts, [4, 3, 1, 2, 1, 4], strict=True))
    ]
    return lines(tmp_path, "rated.jsonl", rows)


@pytest.fixture
def pairs(tmp_path):
    rows = [
        {
            "image_id": n,
            "category": "swap_obj" if n % 2 else NASTY,
            "captions": ["a dog runs", "a cat runs"],
            "label": n % 2,
            "references": ["a dog is running", "one cat", "a dog"],
        }
        for n in range(6)
    ]
    return lines(tmp_path, "pairs.jsonl", rows)


@pytest.fixture
def systems(tmp_path):
    human, scores = tmp_path / "human.csv", tmp_path / "scores.csv"
    names = ["a", "b", "c", "d"]
    human.write_text("system,M1,M2\n" + "".join(f"{n},0.{i + 1},{5 - i}\n" for i, n in enumerate(names)))
    scores.write_text(
        "system,SPICE,CIDEr\n" + "".join(f"{n},0.{2 * i + 1},{(3 * i) % 4}\n" for i, n in enumerate(names))
    )
    return str(human), str(scores)


def run(capsys, *arguments):
    code = main(["agree", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_captions_table_says_protocol_removals_ties_and_tests(rated, capsys):
    code, out, err = run(capsys, "captions", rated, "--metrics", "rouge", "--draws", "20")
    assert (code, err) == (0, "")
    for part in ("Protocol plain: tau-b", "6 captions of 3 images", "Removed: nothing", "ROUGE_L", "ties: metric"):
        assert part in out
    assert "people: rating" in out
    assert "p, permutation" in out
    assert "rouge|variant:ROUGE-L, coco" in out
    assert "\x1b" not in out


def test_captions_json_has_scipys_coefficients(rated, capsys):
    code, out, _ = run(capsys, "captions", rated, "--metrics", "none", "--draws", "20", "--format", "json")
    assert code == 0
    found = json.loads(out)
    row = found["metrics"][NASTY]["coefficients"]["tau_b"]
    assert row["value"] == pytest.approx(stats.kendalltau(range(6), [4, 3, 1, 2, 1, 4]).statistic)
    assert set(row) == {"value", "p", "low", "high"}
    assert found["protocol"]["name"] == "plain"
    assert found["signature"]["resampling"] == {"draws": 20, "seed": 12345, "interval": 0.95}


def test_a_changed_protocol_says_so(rated, capsys):
    options = ("--protocol", "flickr8k-expert", "--ratings", "mean", "--coefficient", "pearson", "--format", "json")
    _, out, _ = run(capsys, "captions", rated, "--metrics", "rouge", "--draws", "5", *options)
    protocol = json.loads(out)["protocol"]
    assert protocol["name"] == "flickr8k-expert, changed"
    assert (protocol["coefficient"], protocol["ratings"], protocol["own"]) == ("pearson", "mean", "drop-caption")
    assert "coefficient pearson, ratings mean" in protocol["about"]
    unchanged = run(
        capsys, "captions", rated, "--metrics", "rouge", "--draws", "5", "--ratings", "mean", "--format", "json"
    )
    assert json.loads(unchanged[1])["protocol"]["name"] == "plain"


def test_hallucinations_in_every_output(pairs, tmp_path, capsys):
    asked = ("hallucinations", pairs, "--metrics", "chair,rouge", "--draws", "20")
    code, out, err = run(capsys, *asked, "--protocol", "aloha-localisation")
    assert (code, err) == (0, "")
    for part in (
        "Protocol aloha-localisation",
        "6 with a marked word",
        "an average precision of 0.500",
        "localisation",
    ):
        assert part in out
    found = json.loads(run(capsys, *asked, "--format", "json")[1])
    assert found["detections"]["ROUGE_L"]["localisation"] is None
    assert (
        found["detections"]["CHAIRi"]["localisation"]["value"] == found["detections"]["CHAIRs"]["localisation"]["value"]
    )
    rows = list(csv.DictReader(io.StringIO(run(capsys, *asked, "--format", "csv")[1])))
    assert {(row["score"], row["figure"]) for row in rows} >= {("CHAIRi", "localisation"), ("ROUGE_L", "auc")}
    page = tmp_path / "page.html"
    assert run(capsys, *asked, "-o", str(page))[0] == 0
    shown = page.read_text()
    assert all(f">{label}</title>" in shown for label in ("average precision", "AUC", "localisation"))
    best = max(found["detections"], key=lambda name: found["detections"][name]["average_precision"]["value"])
    value = found["detections"][best]["average_precision"]["value"]
    assert f"{best} finds captions with a wrong word best: average precision {value:.3f}" in shown
    assert "Chance is 0.500." in shown
    assert " .. " not in shown.partition("<main")[2]
    code, _, err = run(capsys, "hallucinations", pairs, "--metrics", "none")
    assert (code, "name a metric" in err) == (2, True)


def test_hallucinations_are_looked_for_on_scene_graphs_and_thresholds_come_with_them(pairs, capsys):
    asked = ("hallucinations", pairs, "--metrics", "spice-g", "--draws", "5")
    written = json.loads(run(capsys, *asked, "--format", "json")[1])
    assert written["signature"]["metrics"]["spice-g"]["pipeline"] == load_pipeline("scene").signature
    assert list(written["thresholds"]) == ["0.05", "0.1", "0.2"]
    limits = list(written["thresholds"].values())
    assert limits == sorted(limits, reverse=True)
    assert f"{limits[1]:.3f} (10%)" in " ".join(run(capsys, *asked)[1].split())
    for more in (("--pipeline", "en_caption", "--graph-style", "spice"), ("--graph-style", "spice")):
        other = json.loads(run(capsys, *asked, *more, "--format", "json")[1])
        assert other["signature"]["metrics"]["spice-g"]["pipeline"] == load_pipeline().signature
    assert (
        json.loads(run(capsys, "hallucinations", pairs, "--metrics", "chair", "--draws", "5", "--format", "json")[1])[
            "thresholds"
        ]
        == {}
    )


def test_the_coefficients_of_the_option_are_those_that_there_are():
    assert set(get_args(CoefficientName)) == set(COEFFICIENTS)


def test_pairs_by_category_with_ties_and_a_curve(pairs, capsys):
    options = ("--metrics", "rouge", "--draws", "20", "--curve", "1,9", "--ties", "wrong", "--format", "json")
    code, out, _ = run(capsys, "pairs", pairs, *options)
    assert code == 0
    found = json.loads(out)
    assert found["protocol"]["name"] == "plain, changed"
    assert found["metrics"]["ROUGE_L"]["swap_obj"]["value"] == 0
    assert found["metrics"]["ROUGE_L"]["all"]["value"] == 0.5
    assert [(point["references"], point["fewer_references"]) for point in found["curve"]] == [(1, 0), (9, 6)]
    assert found["curve"][0]["metrics"]["ROUGE_L"]["all"]["value"] is not None
    assert {row["value"] for row in found["curve"][1]["metrics"]["ROUGE_L"].values()} == {None}
    table = run(capsys, "pairs", pairs, "--metrics", "rouge", "--protocol", "pascal50s", "--draws", "5")[1]
    assert "a tie counts as right; 5 references drawn at random, mean of 5 draws" in table
    assert "6 pairs with fewer references than that" in table


def test_a_curve_is_undefined_where_no_pair_has_so_many_references(pairs, tmp_path, capsys):
    options = ("--metrics", "rouge", "--draws", "5", "--curve", "1,9")
    table = run(capsys, "pairs", pairs, *options)[1]
    assert "6 pairs with fewer than 9 references: that column is undefined." in table
    page = tmp_path / "page.html"
    assert run(capsys, "pairs", pairs, *options, "-o", str(page))[0] == 0
    assert "undefined" in page.read_text()


def test_systems_with_p_values(systems, capsys):
    code, out, _ = run(capsys, "systems", *systems, "--draws", "20", "--format", "json")
    assert code == 0
    cell = json.loads(out)["metrics"]["SPICE"]["M2"]["coefficients"]["pearson"]
    expected = stats.pearsonr([0.1, 0.3, 0.5, 0.7], [5, 4, 3, 2])
    assert (cell["value"], cell["p"]) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue, abs=1e-9))
    table = run(capsys, "systems", *systems, "--draws", "20", "--metrics", "SPICE")[1]
    assert "CIDEr" not in table
    assert "M1" in table


def test_systems_from_the_json_of_score(tmp_path, systems, capsys):
    for number, name in enumerate("abcd"):
        items = [{"id": 1, "candidate": "a dog" + " runs" * number, "references": ["a dog runs"]}]
        source = lines(tmp_path, f"{name}.jsonl", items)
        assert (
            main(["score", source, "--metrics", "rouge", "-o", str(tmp_path / f"{name}.json"), "--format", "json"]) == 0
        )
    files = [f"a={tmp_path / 'a.json'}", *(str(tmp_path / f"{name}.json") for name in "bcd")]
    capsys.readouterr()
    code, out, _ = run(capsys, "systems", systems[0], *files, "--draws", "5")
    assert code == 0
    assert "ROUGE_L" in out


def test_protocols_are_listed_with_what_they_do(capsys):
    code, out, _ = run(capsys, "protocols")
    assert code == 0
    for name in (*CAPTION_PROTOCOLS, *PAIR_PROTOCOLS):
        assert name in out
    assert "not averaged" in out


class Page(HTMLParser):
    """What a page holds: tags and texts."""

    def __init__(self, html):
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id" and value]

    def handle_data(self, data):
        self.texts.append(data)


def test_every_study_has_a_page_with_charts_that_escapes_what_files_hold(rated, pairs, systems, tmp_path, capsys):
    page = str(tmp_path / "page.html")
    studies = {
        ("captions", rated, "--metrics", "rouge"): 3,
        ("pairs", pairs, "--metrics", "rouge", "--curve", "1,2,3"): 7,
        ("systems", *systems): 4,
    }
    for arguments, charts in studies.items():
        code, out, err = run(capsys, *arguments, "--draws", "5", "-o", page)
        assert (code, out, err) == (0, "", "")
        found = Page(Path(page).read_text(encoding="utf-8"))
        assert found.tags.count("figure") == charts
        assert "script" not in found.tags
        assert len(found.ids) == len(set(found.ids))
        if arguments[0] != "systems":
            assert any("<script>alert(1)</script>" in text for text in found.texts)


def test_csv_and_latex_by_the_files_ending(rated, pairs, systems, tmp_path, capsys):
    table, tex = tmp_path / "out.csv", tmp_path / "out.tex"
    assert run(capsys, "captions", rated, "--metrics", "rouge", "--draws", "5", "-o", str(table))[0] == 0
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert {row["coefficient"] for row in rows} == set(COEFFICIENTS)
    assert float(rows[0]["interval low"]) <= float(rows[0]["value"]) <= float(rows[0]["interval high"])
    assert run(capsys, "pairs", pairs, "--metrics", "rouge", "--draws", "5", "-o", str(tex))[0] == 0
    text = tex.read_text(encoding="utf-8")
    assert r"\begin{tabular}{lrrrrrr}" in text
    assert r"swap\_obj" in text
    assert "% Protocol plain" in text
    assert run(capsys, "systems", *systems, "--draws", "5", "--format", "latex")[1].count(r"\toprule") == 5


@pytest.mark.parametrize(
    ("command", "table", "columns"),
    [
        ("captions", "agreement", {"metric", "coefficient", "value", "interval low", "tied_both"}),
        ("captions", "comparisons", {"first_metric", "difference", "p_permutation", "p_williams"}),
        ("pairs", "accuracy", {"metric", "category", "references", "accuracy"}),
        ("pairs", "comparisons", {"first_metric", "difference", "p_permutation"}),
        ("systems", "correlations", {"metric", "human", "coefficient", "p"}),
        ("systems", "comparisons", {"human", "first_metric", "p_williams"}),
    ],
)
def test_csv_holds_the_table_that_is_asked_for(command, table, columns, rated, pairs, systems, tmp_path, capsys):
    arguments = {
        "captions": (rated, "--metrics", "rouge,bleu", "--draws", "5"),
        "pairs": (pairs, "--metrics", "rouge,bleu", "--draws", "5"),
        "systems": (*systems, "--draws", "5"),
    }
    code, out, err = run(capsys, command, *arguments[command], "--format", "csv", "--table", table)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert rows
    assert columns <= rows[0].keys()
    code, _, err = run(capsys, command, *arguments[command], "--format", "csv", "--table", "nothing")
    assert code == 2
    assert "there is no table 'nothing'; there are " in err
    assert table in err


def test_people_see_once_what_rows_share():
    columns = [Column("a", "text"), Column("b", "text")]
    grid = Grid("", columns, [("x", "1"), ("x", "2"), ("y", "3"), ("x", "4")], is_grouped=True)
    assert [len(group) for group in grid.groups()] == [2, 1, 1]
    assert [line for line in to_latex(grid).splitlines() if line.endswith("\\\\")] == [
        r"a & b \\",
        r"x & 1 \\",
        r" & 2 \\",
        r"y & 3 \\",
        r"x & 4 \\",
    ]
    assert to_csv(grid) == "a,b\nx,1\nx,2\ny,3\nx,4\n"


def test_a_grid_writes_every_kind_of_cell():
    columns = [Column("a", "text"), Column("n"), Column("p", "p"), Column("x", "percent"), Column("i", "span")]
    row = ("50 % & more_{x}", 0.12345, 0.0001, 0.5, (0.1, 0.25))
    grid = Grid("Title\nof two lines", columns, [row, (None, None, None, None, (None, None))], ["note"])
    assert [cell_text(*pair) for pair in zip(columns, row, strict=True)] == [
        "50 % & more_{x}",
        "0.123",
        "< 0.001",
        "50.0",
        "0.100 .. 0.250",
    ]
    assert to_csv(grid) == "a,n,p,x,i low,i high\n50 % & more_{x},0.12345,0.0001,0.5,0.1,0.25\n,,,,,\n"
    latex = to_latex(grid)
    assert latex.startswith("% Title of two lines\n% note\n")
    assert r"50 \% \& more\_\{x\} & 0.123 & $<$ 0.001 & 50.0 & 0.100 .. 0.250 \\" in latex
    assert r"-- & -- & -- & -- & -- \\" in latex


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("captions", "{rated}", "--protocol", "flickr9k"), "there is no protocol 'flickr9k' for captions"),
        (("captions", "{rated}", "--metrics", "spiice"), "there is no metric 'spiice'"),
        (("captions", "nowhere.jsonl"), "nowhere.jsonl: there is no such file"),
        (("captions", "{rated}", "--rating", "stars"), "line 1, stars: is missing"),
        (("captions", "{pairs}"), "line 1, candidate: is missing"),
        (("captions", "{rated}", "-o", "no/folder/x.html"), "there is no folder"),
        (("pairs", "{rated}"), "line 1, captions: is missing"),
        (("pairs", "{pairs}", "--references", "many"), "--references: expected whole numbers"),
        (("pairs", "{pairs}", "--references", "1,2"), "--references: expected one number or 'all'"),
        (("pairs", "{pairs}", "--curve", "0"), "--curve: expected whole numbers"),
        (("pairs", "{pairs}", "--metrics", "none"), "there is no metric: none is asked for"),
        (("systems", "{human}", "{human}", "--metrics", "SPICE"), "--metrics: there is no score 'SPICE'"),
        (("systems", "{human}", "{scores}", "{scores}"), "'a' already has a score 'CIDEr'"),
    ],
)
def test_bad_input_is_one_error_and_exit_code_2(arguments, message, rated, pairs, systems, capsys):
    places = {"rated": rated, "pairs": pairs, "human": systems[0], "scores": systems[1]}
    code, out, err = run(capsys, *(argument.format(**places) for argument in arguments))
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
