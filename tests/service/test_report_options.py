"""What `report` and `compare` share with `score`: caches, workers, categories, frequencies; and pages that are split."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.cli import main
from spicegraph_service.engines import System
from spicegraph_service.output.pages import permalink, render_page
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.markdown import markdown_of
from spicegraph_service.report.render import _blocks, to_html
from spicegraph_service.report.verdict import verdict

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"image_id": 2, "test": "a brown dog runs", "refs": ["a puppy is running", "the brown dog"]},
    {"image_id": 1, "test": "two red cars", "refs": ["two cars", "blue cars on a road"]},
    {"image_id": "one", "test": "A  big 🐶 dog", "refs": ["a large dog", "an animal"]},
]
TOML = '[Animal]\nsubtree = "animal"\n[Material]\nkind = "attribute"\nwords = ["wooden"]\n'


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    first, second, categories = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.toml"
    first.write_text(json.dumps(ROWS))
    second.write_text(json.dumps([{**row, "test": "a blue car on a road"} for row in ROWS]))
    categories.write_text(TOML)
    return str(first), str(second), str(categories)


def written(target: Path, *call: str) -> str:
    assert main([*call, "-o", str(target), "--draws", "20"]) == 0
    return target.read_text(encoding="utf-8")


@pytest.mark.model
def test_cached_parses_and_workers_give_the_same_report_with_its_marks(
    files: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second, categories = files
    call = ["report", first, second, "--categories", categories, "--metrics", "spice,cider"]
    plain = written(tmp_path / "plain.json", *call)
    cache = ["--cache", str(tmp_path / "parses.db")]
    cold = written(tmp_path / "cold.json", *call, *cache)
    warm = written(tmp_path / "warm.json", *call, *cache, "--workers", "2")
    assert plain == cold == warm
    report = json.loads(warm)
    assert report["categories"][-2:] == ["Animal", "Material"]
    image = report["images"][2]
    caption = image["candidates"][0]["caption"]
    for view in image["candidates"][0]["candidate"]:
        if view["strings"] == ["dog", "big"]:
            assert [caption[a:b] for a, b in view["mentions"][0]["spans"]] == ["big", "dog"]
            (synset,) = (n for n in view["how"] if n)
            assert report["synsets"][str(synset)] == [
                {"name": "large.a.01", "gloss": "above average in size or number or quantity or magnitude or extent"}
            ]
            break
    else:
        pytest.fail("(dog, big) is not in the report")


@pytest.mark.model
def test_frozen_frequencies_stand_in_the_signature(files: tuple[str, str, str], tmp_path: Path) -> None:
    annotations = {"annotations": [{"id": n, "image_id": n, "caption": f"a dog {n}"} for n in range(5)]}
    (tmp_path / "references.json").write_text(json.dumps(annotations))
    frozen = str(tmp_path / "idf.npz")
    assert main(["idf", str(tmp_path / "references.json"), "-o", frozen]) == 0
    call = ["--metrics", "spice,cider", "--idf", frozen]
    report = json.loads(written(tmp_path / "r.json", "report", files[0], *call))
    assert "corpus" not in report["signature"]["metrics"]["cider"]["document frequencies"]
    compared = json.loads(written(tmp_path / "c.json", "compare", *files[:2], *call, "--format", "json"))
    assert (
        compared["signature"]["metrics"]["cider"]["document frequencies"]
        == report["signature"]["metrics"]["cider"]["document frequencies"]
    )


@pytest.mark.model
def test_own_categories_are_scored_alike_by_every_command(files: tuple[str, str, str], tmp_path: Path) -> None:
    first, second, categories = files
    own = ["--categories", categories]
    assert main(["score", first, *own, "-o", str(tmp_path / "s.json")]) == 0
    scored = json.loads((tmp_path / "s.json").read_text())
    report = json.loads(written(tmp_path / "r.json", "report", first, *own))
    compared = json.loads(written(tmp_path / "c.json", "compare", f"mine={first}", second, *own, "--format", "json"))
    animal = scored["corpus"]["SPICE_categories"]["Animal"]
    row = next(row for row in report["systems"][0]["categories"] if row["name"] == "Animal")
    assert (row["f"], row["tp"], row["fp"], row["fn"]) == (
        animal["f"],
        *(animal["micro"][k] for k in ("tp", "fp", "fn")),
    )
    assert compared["scores"]["SPICE_Animal"]["first"] == animal["f"]
    digests = {r["signature"]["metrics"]["spice"]["categories"] for r in (scored, report, compared)}
    assert len(digests) == 1
    page = written(tmp_path / "c.html", "compare", f"mine={first}", second, *own)
    assert ">Animal</text>" in page
    assert "mine and b" in page
    assert "What goes wrong" in page


@pytest.mark.model
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_split_page_leaves_the_details_to_its_folder(
    files: tuple[str, str, str], tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "page_files"
    folder.mkdir()
    (folder / "chunk7.js").write_text("of an earlier, larger report")
    (folder / "mine.txt").write_text("not ours")
    page = written(tmp_path / "page.html", command, *files[:2], "--split")
    assert 'id="chunk0"' not in page
    assert "'strict-dynamic'" in page
    assert sorted(path.name for path in folder.iterdir()) == ["chunk0.js", "mine.txt"]
    assert (folder / "chunk0.js").read_text().startswith('spicegraphPart("chunk0", "')
    whole = written(tmp_path / "whole.html", command, *files[:2])
    assert 'id="chunk0"' in whole
    assert "strict-dynamic" not in whole


def test_only_a_page_in_a_file_is_split(
    files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for call in (
        ["report", files[0], "--split"],
        ["report", files[0], "--split", "-o", str(tmp_path / "r.json")],
        ["compare", *files[:2], "--split"],
    ):
        assert main(call) == 2
        assert "--split: only an HTML page" in capsys.readouterr().err


def test_faults_of_categories_are_told_before_the_work(
    files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('[All]\nwords = ["a"]\n[B]\nsubtree = "xyzzy"\n')
    for command in ("score", "report"):
        assert main([command, files[0], "--categories", str(bad)]) == 2
        error = capsys.readouterr().err
        assert "category 'All': name: is taken" in error
        assert "category 'B': subtree[0]: WordNet 3.0 has no synset 'xyzzy'" in error


class Words:
    """A parser for tests: every word is an object; it does not know where words stand."""

    signature = "words-1"

    def facts(self, texts):  # type: ignore[no-untyped-def]
        return (tuple(Fact((word,), "objects", ((n,),)) for n, word in enumerate(text.split())) for text in texts)


def test_a_source_without_places_gives_a_report_without_marks() -> None:
    items = (Item(1, "dog", ("dog", "cat")),)
    report = build_report([System("a", items)], ReportOptions(resampling=Resampling(20)), pipeline=Words())
    (view,) = report.images[0].candidates[0].candidate
    assert [mention.spans for mention in view.mentions] == [()]


def test_37_reds_turned_to_blue_are_37_confusions_in_the_report() -> None:
    class Cars:
        signature = "cars-1"

        def facts(self, texts):  # type: ignore[no-untyped-def]
            for text in texts:
                color, noun = text.split()
                yield (Fact((noun,), "objects", ()), Fact((noun, color), "amod", ()))

    references = ("red car", "red car")
    good = tuple(Item(n, "red car", references) for n in range(100))
    bad = tuple(Item(n, "blue car" if n < 37 else "red car", references) for n in range(100))
    systems = [System("good", good), System("bad", bad)]
    report = build_report(systems, ReportOptions(resampling=Resampling(200)), pipeline=Cars())
    kinds = {kind.name: kind for kind in report.systems[1].kinds if kind.count}
    assert set(kinds) == {"color_confused", "color_missed"}
    (group,) = kinds["color_confused"].groups
    assert (group.words, group.count, group.items) == (("red", "blue"), 37, tuple(range(37)))
    color = next(row for row in report.systems[1].categories if row.name == "Color")
    assert (color.tp, color.fp, color.fn) == (63, 37, 37)
    hallucinated = next(row for row in report.systems[1].hallucinations if row.category == "Color")
    assert (hallucinated.invented, hallucinated.said) == (37, 100)
    assert (hallucinated.per_instance, hallucinated.per_sentence) == (0.37, 0.37)
    assert sum(kind.count for kind in report.systems[0].kinds) == 0
    assert [row.image_id for row in report.lost] == list(range(25))
    page = to_html(report)
    (block,) = [block for block in _blocks(report) if block["title"] == "colors said of right objects"]
    assert (block["of"], [row.count for row in block["kinds"][0]]) == ([100, 100], [0, 37])
    assert "37.0 %" in page
    assert '<h3>Examples of errors <span class="range">on images where good is better</span></h3>' in page
    told = verdict(report)
    assert told.headline.startswith("good is better than bad: SPICE ")
    assert [(found.system, found.sentence) for found in told.telling] == [(1, "says “blue”, references “red”")] * 3
    assert [place for place, _ in told.telling[0].captions] == [1, 0]
    assert "| Color confused | 37 | 37" in markdown_of(report).replace("  ", " ")


def test_permalinks_differ_where_ids_do() -> None:
    ids = [1, "1", '"1"', -1, "-1", "cat", "01", "1.5", 10**20, str(10**20)]
    assert len({permalink(image_id) for image_id in ids}) == len(ids)


def test_pages_of_other_packages_share_the_base(tmp_path: Path) -> None:
    page = render_page("base.html.j2", {})
    assert "default-src 'none'" in page
    assert "script-src 'none'" in page
    assert "<script" not in page
