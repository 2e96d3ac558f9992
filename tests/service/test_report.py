"""The report's content: it adds up to the scores, names its evidence, and treats captions as text."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer import score, score_tuples
from spicegraph_scorer.core.categories import Category
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics.spice.categories import CATEGORIES
from spicegraph_scorer.readers.checks import check_items
from spicegraph_service.cli import main
from spicegraph_service.engines import System
from spicegraph_service.report import REPORT_FORMATS, Report, ReportFormat, ReportOptions, build_report
from spicegraph_service.report.data import TupleState
from spicegraph_service.report.images import Pictures, image_sources, overlay
from spicegraph_service.report.markdown import markdown_of
from spicegraph_service.report.render import CHUNK, to_html, to_json
from spicegraph_service.report.verdict import strongest_and_weakest
from wings import needs_graded
from word_facts import WordFacts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FAST = ReportOptions(metrics=("spice", "bleu"), resampling=Resampling(50))


REFERENCES = ("red_car dog", "red_car bench")


def items(candidates: Iterable[str]) -> tuple[Item, ...]:
    return tuple(Item(number, candidate, REFERENCES) for number, candidate in enumerate(candidates))


ONE = items(["blue_car dog", "red_car", "zebra", "red_car dog bench"])
TWO = items(["red_car dog", "red_car", "dog", "zebra dog"])


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report([System("one", ONE), System("two", TWO)], FAST, pipeline=WordFacts())


def test_scores_are_those_of_score(report: Report) -> None:
    for view, given_items in zip(report.systems, (ONE, TWO), strict=True):
        corpus = score(given_items, ("spice", "bleu"), pipeline=WordFacts()).corpus
        assert {row.name: row.value for row in view.scores} == {
            key: value for key, value in corpus.items() if key != "SPICE_categories"
        }
        categories: Any = corpus["SPICE_categories"]
        for row in view.categories:
            expected = categories[row.name]
            assert (row.f, row.pr, row.re, row.items) == tuple(expected[k] for k in ("f", "pr", "re", "items"))
            assert (row.tp, row.fp, row.fn) == tuple(expected["micro"][k] for k in ("tp", "fp", "fn"))


def test_errors_add_up_to_what_is_wrong(report: Report) -> None:
    for place, view in enumerate(report.systems):
        wrong = sum(kind.count for kind in view.kinds if kind.kind.side == "invented")
        assert wrong == view.categories[0].fp
        shown = Counter(
            t.kind
            for image in report.images
            for t in (*image.candidates[place].candidate, *image.candidates[place].reference)
            if t.kind
        )
        assert shown == {kind.name: kind.count for kind in view.kinds if kind.count}


def test_a_tuple_has_a_partner_or_an_explanation(report: Report) -> None:
    for image in report.images:
        for candidate in image.candidates:
            for view in (*candidate.candidate, *candidate.reference):
                assert bool(view.partners) != bool(view.kind)


def test_every_part_of_the_spread_holds_every_item_once(report: Report) -> None:
    for view in report.systems:
        for rows in (view.distribution, view.by_length, view.by_references):
            assert sum(row.items for row in rows) == report.items


def test_ranks_tests_and_moves(report: Report) -> None:
    one, two = (view.scores[0] for view in report.systems)
    assert one.value is not None
    assert two.value is not None
    assert (one.rank, two.rank) == ((1, 2) if one.value > two.value else (2, 1))
    spice = next(test for tests in report.tests.values() for test in tests if test.name == "SPICE")
    assert spice.difference == pytest.approx(two.value - one.value)
    assert {row.image_id for row in report.gained} == {0, 2}
    assert [row.image_id for row in report.lost] == [3]
    assert report.gained[0].difference >= report.gained[1].difference > 0


@needs_graded
def test_the_lowest_chair_ranks_first_and_the_page_says_so() -> None:
    invented = tuple(Item(item.id, "red_car zebra giraffe", item.references) for item in ONE)
    options = ReportOptions(metrics=("chair",), resampling=Resampling(20), human=False)
    built = build_report([System("a", invented), System("b", ONE)], options, pipeline=WordFacts())
    ranks = {row.name: [view.scores[i].rank for view in built.systems] for i, row in enumerate(built.systems[0].scores)}
    assert ranks == {"SPICE": [2, 1], "CHAIRi": [2, 1], "CHAIRs": [2, 1], "CHAIR_Recall": [2, 1]}
    assert {row.name for row in built.systems[0].scores if row.lower_is_better} == {"CHAIRi", "CHAIRs"}
    assert to_html(built).count("lower is better") == 2


def test_the_human_row_is_the_first_reference_against_the_others(report: Report) -> None:
    assert report.human is not None
    held_out = [Item(item.id, item.references[0], item.references[1:]) for item in ONE]
    corpus = score(held_out, ("spice",), pipeline=WordFacts()).corpus
    assert report.human.scores[0].value == corpus["SPICE"]


def test_with_a_single_reference_there_is_no_human_row() -> None:
    single = (Item(1, "dog", ("dog",)),)
    assert build_report([System("a", single)], FAST, pipeline=WordFacts()).human is None


def test_systems_are_held_in_one_order_whatever_theirs() -> None:
    built = build_report([System("a", ONE), System("b", TWO[::-1])], FAST, pipeline=WordFacts())
    assert [image.candidates[1].caption for image in built.images] == [item.candidate for item in TWO]


def test_categories_of_ones_own_are_scored_everywhere() -> None:
    animal = Category(1, keys=frozenset({"dog", "zebra"}))
    options = ReportOptions(data=MetricData(categories={**CATEGORIES, "Animal": animal}), resampling=Resampling(50))
    built = build_report([System("a", ONE)], options, pipeline=WordFacts())
    assert built.categories[-1] == "Animal"
    row = built.systems[0].categories[-1]
    assert (row.name, row.tp, row.fp, row.fn) == ("Animal", 2, 1, 2)
    assert built.systems[0].hallucinations[-1].invented == 1
    assert row.low is not None
    assert row.high is not None
    assert ">Animal</text>" in to_html(built)


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ([], "at least one system"),
        ([System("a", ONE), System("a", TWO)], "two systems have the name 'a'"),
        ([System("a", ONE), System("b", TWO[1:])], "item 0 is only in 'a'"),
        ([System("a", ONE[1:]), System("b", TWO)], "item 0 is only in 'b'"),
        ([System("a", ONE), System("b", (Item(0, "dog", ("cat",)), *TWO[1:]))], "item 0 has other references"),
    ],
)
def test_faults_are_named(systems: list[System], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_report(systems, FAST, pipeline=WordFacts())


def test_every_format_is_written(report: Report) -> None:
    assert set(REPORT_FORMATS) == set(ReportFormat)
    values = json.loads(to_json(report))
    assert values["systems"][0]["scores"][0]["value"] == report.systems[0].scores[0].value
    assert len(values["images"]) == report.items


def unpacked(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/octet-stream" id="{name}">([^<]*)</script>', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b85decode(found[1].replace(".", "<"))))


def test_the_page_holds_every_image_in_its_chunk() -> None:
    many = tuple(Item(f"im {n}", "red_car dog", REFERENCES) for n in range(CHUNK + 1))
    page = to_html(build_report([System("a", many)], FAST, pipeline=WordFacts()))
    index = unpacked(page, "index")
    assert index["ids"] == [item.id for item in many]
    assert [len(unpacked(page, f"chunk{n}")) for n in (0, 1)] == [CHUNK, 1]
    assert unpacked(page, "chunk1")[0][0] == list(REFERENCES)


NASTY = "</script><script>alert(1)</script> | `x` \"q\" 'p' & <b>"


def test_the_page_is_one_file_without_network_and_without_markup_from_captions() -> None:
    nasty = [Item(f"{NASTY}{n}", NASTY, (NASTY, "dog")) for n in range(3)]
    given_items = check_items(nasty, control_tokens="keep")
    built = build_report([System(NASTY, given_items)], FAST, pipeline=WordFacts())
    page = to_html(built)
    assert "alert(1)</script>" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "default-src 'none'" in page
    assert page.count("<script>") == 1


def test_markdown_keeps_captions_in_their_cells() -> None:
    given_items = check_items([Item(1, "a|b <i>x</i> [l](u)", ("dog", "cat"))], control_tokens="keep")
    text = markdown_of(build_report([System("a|b", given_items)], FAST, pipeline=WordFacts()))
    assert "a\\|b" in text
    assert "<i>" not in text
    widths = [
        {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines() if line.startswith("|")}
        for block in text.split("\n\n")
    ]
    assert all(len(found) <= 1 for found in widths)


@pytest.mark.model
def test_marks_stand_at_the_words(tmp_path: Path) -> None:
    given_items = (Item(1, "A  brown dog 🐶 runs", ("the dog is brown", "a puppy in a park")),)
    built = build_report([System("a", given_items)], FAST)
    view = built.images[0].candidates[0]
    marked = {t.strings: [view.caption[a:b] for m in t.mentions for a, b in m.spans] for t in view.candidate}
    assert marked[("dog",)] == ["dog"]
    assert marked[("dog", "brown")] == ["brown", "dog"]
    match = next(t for t in view.candidate if t.strings == ("dog", "brown"))
    assert match.how == (0, 0)


def test_a_synonym_names_its_synset() -> None:
    given_items = (Item(1, "sofa", ("couch",)),)
    built = build_report([System("a", given_items)], FAST, pipeline=WordFacts())
    assert built.images[0].candidates[0].candidate[0].how == (4256520,)  # sofa, couch, lounge


def test_both_graphs_lie_over_each_other() -> None:
    match = score_tuples(
        [["sofa"], ["sofa", "blue"], ["zebra"], ["sofa", "zebra", "bite"]],
        [[["couch"], ["couch", "red"], ["ball"], ["couch", "ball", "see"], ["sofa", "sofa", "chase"]], [["sofa"]]],
    ).statistic.match
    picture = overlay(match)
    states = {box.name: box.state for box in picture.boxes}
    sofa = next(box for box in picture.boxes if "sofa" in box.name)
    assert sofa.state is TupleState.MATCHED
    assert {name: state for name, state, _ in sofa.attributes} == {
        "red": TupleState.MISSED,
        "blue": TupleState.INVENTED,
    }
    assert {
        match.reference[t].strings[1] if s is TupleState.MISSED else match.candidate[t].strings[1]
        for _, s, t in sofa.attributes
    } == {"red", "blue"}
    assert (states["ball"], states["zebra"]) == (TupleState.MISSED, TupleState.INVENTED)
    labels = {name: state for line in picture.lines for name, state, _ in line.labels}
    assert labels == {"see": TupleState.MISSED, "bite": TupleState.INVENTED, "chase": TupleState.MISSED}
    assert all(box.x + box.width <= picture.width for box in picture.boxes)


def test_images_come_from_a_pattern_or_a_folder(tmp_path: Path) -> None:
    assert image_sources(Pictures("https://x.org/{id:06}.jpg?{id}"), [7, "a b"]) == {
        7: "https://x.org/000007.jpg?7",
        "a b": "https://x.org/000a%20b.jpg?a%20b",
    }
    for name in ("COCO_val2014_000000000042.jpg", "cat.png", "cat.txt"):
        (tmp_path / name).touch()
    (tmp_path / "pages").mkdir()
    found = image_sources(Pictures(str(tmp_path), page=tmp_path / "pages"), [42, "cat", "dog"])
    assert found == {42: "../COCO_val2014_000000000042.jpg", "cat": "../cat.png"}
    elsewhere = image_sources(Pictures(str(tmp_path), url="https://x.org/a/"), ["cat"])
    assert elsewhere == {"cat": "https://x.org/a/cat.png"}
    (tmp_path / "cat.png").write_bytes(b"meow")
    assert image_sources(Pictures(str(tmp_path), embed=True), ["cat"]) == {"cat": "data:image/png;base64,bWVvdw=="}
    for wrong in (Pictures("https://x.org/{id}", embed=True), Pictures(str(tmp_path), url="javascript:x")):
        with pytest.raises(InputError, match="images"):
            image_sources(wrong, ["cat"])


@pytest.mark.parametrize("pattern", ["javascript:alert({id})", "data:text/html,{id}", "nowhere", "file:///x/{id}"])
def test_images_from_elsewhere_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="images"):
        image_sources(Pictures(pattern), [1])


JAR = [
    {"image_id": 2, "test": "a brown dog runs", "refs": ["a dog is running", "the brown dog"]},
    {"image_id": 1, "test": "two red cars", "refs": ["two cars", "blue cars on a road"]},
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps(JAR))
    second.write_text(json.dumps([{**row, "test": "a blue car on a road"} for row in JAR]))
    return str(first), str(second)


@pytest.mark.model
@pytest.mark.parametrize(
    ("name", "begins"), [("r.html", "<!DOCTYPE html>"), ("r.json", "{"), ("r.md", "# mine and b"), ("r", "<!DOCTYPE")]
)
def test_the_command_writes_what_the_ending_says(
    files: tuple[str, str], tmp_path: Path, name: str, begins: str
) -> None:
    target = tmp_path / name
    assert main(["report", f"mine={files[0]}", files[1], "-o", str(target), "--draws", "20"]) == 0
    assert target.read_text(encoding="utf-8").lstrip().startswith(begins)


@pytest.mark.model
def test_a_person_is_told_what_was_written(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("spicegraph_service.cli.report.note", told.append)
    target = str(tmp_path / "r.md")
    assert main(["report", *files, "-o", target, "--draws", "20"]) == 0
    assert told == [f"{target}: the report of 2 systems"]
    assert main(["report", *files, "--format", "markdown", "--draws", "20"]) == 0
    assert len(told) == 1


def test_no_category_without_a_hit_is_called_strong() -> None:
    scores = {"Object": 0.5, "Relation": 0.0, "Color": None, "Size": 0.0, "Attribute": 0.25}
    assert strongest_and_weakest(scores) == [
        ("Strongest", "Object (0.500), Attribute (0.250)"),
        ("Weakest", "Relation (0.000), Size (0.000)"),
    ]
    assert strongest_and_weakest({"Object": 0.5, "Size": 0.0}) == [
        ("Strongest", "Object (0.500)"),
        ("Weakest", "Size (0.000)"),
    ]
    assert strongest_and_weakest({"Object": 0.5}) == [("Strongest", "Object (0.500)")]
    assert strongest_and_weakest({"Size": 0.0, "Color": None}) == [("Weakest", "Size (0.000)")]


@pytest.mark.model
def test_the_command_takes_categories_and_images(files: tuple[str, str], tmp_path: Path) -> None:
    categories, target = tmp_path / "c.toml", tmp_path / "r.json"
    categories.write_text('[Animal]\nkind = "object"\nwords = ["dog"]\n')
    call = ["report", files[0], "-o", str(target), "--categories", str(categories), "--no-human"]
    assert main([*call, "--images", "https://x.org/{id}.jpg", "--title", "Two of mine", "--draws", "20"]) == 0
    values = json.loads(target.read_text())
    assert (values["title"], values["human"], values["categories"][-1]) == ("Two of mine", None, "Animal")
    assert values["images"][0]["source"] == "https://x.org/2.jpg"


def test_the_command_names_a_bad_file(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", files[0], "--categories", "nowhere.toml"]) == 2
    assert "nowhere.toml: can't be read" in capsys.readouterr().err
    assert main(["report", files[0], files[0]]) == 2
    assert "two systems have the name 'a'" in capsys.readouterr().err


@pytest.mark.model
def test_compare_writes_the_same_page(files: tuple[str, str], tmp_path: Path) -> None:
    pages = []
    for command in ("compare", "report"):
        target = tmp_path / f"{command}.html"
        assert main([command, *files, "-o", str(target), "--draws", "20"]) == 0
        pages.append(re.sub(r"Made</dt><dd>[^<]*", "", target.read_text(encoding="utf-8")))
    assert pages[0] == pages[1]
    assert "What goes wrong" in pages[0]
