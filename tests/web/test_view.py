"""The viewer of results and the page to try captions on."""

from __future__ import annotations

import csv
import gzip
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import time
from base64 import b85decode
from contextlib import closing
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_web.table import Query, ResultTable, by_category
from spicegraph_web.viewer import category_tables, choices, overview_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from browser import Browser

NASTY = "<script>hacked=1</script><img src=x onerror=hacked=1>"
COUNT = 400


def rows(seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "image_id": number,
            "scores": {
                "SPICE": round(chance.random(), 3) if number % 7 else None,
                "SPICE_categories": {"All": {"f": chance.random(), "tp": number}},
            },
        }
        for number in range(COUNT)
    ]


def read(folder: Path, *files: tuple[str, str], captions: dict[str, str] | None = None) -> ResultTable:
    table = ResultTable(files, captions or {}, folder)
    table.read()
    if table.fault:
        raise InputError(table.fault)
    return table


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "parquet", "gz"])
def test_every_format_of_score_gives_the_same_columns(tmp_path: Path, form: str) -> None:
    wanted = rows(1)
    path = tmp_path / f"result.{form}"
    flat = [
        {
            "image_id": row["image_id"],
            "SPICE": row["scores"]["SPICE"],
            **{f"SPICE_categories_All_{key}": one for key, one in row["scores"]["SPICE_categories"]["All"].items()},
        }
        for row in wanted
    ]
    if form == "json":
        path.write_text(json.dumps({"corpus": {}, "signature": {}, "items": wanted}, indent=2))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in wanted))
    elif form == "gz":
        path = tmp_path / "result.jsonl.gz"
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in wanted).encode()))
    elif form == "csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(flat[0]))
            writer.writeheader()
            writer.writerows(flat)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(flat), path)
    found = read(tmp_path, ("a", str(path)))
    assert set(found.scores) == {"SPICE", "SPICE_categories_All_tp"}  # F of all tuples is SPICE itself
    assert found.column(0, "SPICE_categories_All_f")[:3].tolist() == [
        row["scores"]["SPICE_categories"]["All"]["f"] for row in wanted[:3]
    ]
    listed = found.find(Query(score="SPICE", count=COUNT))[1]
    assert [(one.id, one.scores[0]) for one in listed] == [(str(r["image_id"]), r["scores"]["SPICE"]) for r in wanted]


def test_the_spice_program_s_own_output(tmp_path: Path) -> None:
    text = '[{"image_id": "a", "scores": {"All": {"f": 0.5}, "Color": {"f": NaN}}}]'
    (tmp_path / "spice.json").write_text(text)
    found = read(tmp_path, ("a", str(tmp_path / "spice.json")))
    assert found.find(Query(score="All_f"))[1][0].scores == (0.5,)
    assert found.find(Query(score="Color_f"))[1][0].scores == (None,)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> ResultTable:
    folder = tmp_path_factory.mktemp("view")
    for number, name in enumerate("ab"):
        lines = rows(number) if name == "a" else list(reversed(rows(number)))[:-5]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    words = ["a red dog", "100% of a_cat", NASTY, "ein Hund \N{DOG FACE} STRASSE"]
    captions = [{"image_id": number, "caption": words[number % 4]} for number in range(COUNT)]
    (folder / "captions.json").write_text(json.dumps(captions))
    references = {
        "annotations": [{"image_id": number, "caption": f"reference {number}"} for number in range(COUNT)] * 2
    }
    (folder / "references.json").write_text(json.dumps(references))
    return read(
        folder,
        ("a", str(folder / "a.jsonl")),
        ("b", str(folder / "b.jsonl")),
        captions={"a": str(folder / "captions.json"), "": str(folder / "references.json")},
    )


@pytest.mark.parametrize("order", ["file", "worst", "best", "ahead", "behind"])
@pytest.mark.parametrize("text", ["", "RED", "%", "a_c", "strasse", "reference 39", "nothing"])
def test_queries_find_what_a_loop_finds(two: ResultTable, order: str, text: str) -> None:
    first = {row["image_id"]: row["scores"]["SPICE"] for row in rows(0)}
    second = {row["image_id"]: row["scores"]["SPICE"] for row in list(reversed(rows(1)))[:-5]}
    words = ["a red dog", "100% of a_cat", NASTY, "ein Hund \N{DOG FACE} STRASSE"]
    kept = [
        number
        for number in range(COUNT)
        if (value := first[number]) is not None
        and 0.2 <= value <= 0.8
        and text.casefold() in f"{number}\n{words[number % 4]}\nreference {number}\nreference {number}".casefold()
    ]

    def key(number: int) -> float:
        value = first[number] if order in {"worst", "best"} else None
        if order in {"ahead", "behind"}:
            other = second.get(number)
            value = None if other is None else first[number] - other
        if value is None:
            return 9.0
        return -value if order in {"best", "ahead"} else value

    if order != "file":
        kept.sort(key=key)
    total, items, _ = two.find(Query(text, "SPICE", 0, 0.2, 0.8, order, count=COUNT))
    assert [int(item.id) for item in items] == kept
    assert total == len(kept)
    _, page, _ = two.find(Query(text, "SPICE", 0, 0.2, 0.8, order, start=10, count=7))
    assert [int(item.id) for item in page] == kept[10:17]


def test_pages_are_there_while_the_first_rows_are_read(tmp_path: Path) -> None:
    """What has been counted, but is not in the database yet, is not asked for."""
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(1)))
    table = ResultTable((("a", str(tmp_path / "r.jsonl")),), {}, tmp_path)
    assert overview_of(table).verdict.headline == "No scores have been read"
    table._keys["7"] = 0
    assert table.find(Query(order="worst"))[1] == []
    table._keys.clear()
    table.read()
    assert table.find(Query(order="worst", score="SPICE"))[0] == COUNT


def test_an_item_has_everything(two: ResultTable) -> None:
    key = two.find(Query(text="reference 6", score="SPICE"))[1][0].key
    item = two.item(key)
    assert item is not None
    assert (item.id, item.captions, item.references) == ("6", (NASTY, ""), ("reference 6",) * 2)
    assert len(item.scores["SPICE"]) == 2
    assert json.loads(item.rows[0])["image_id"] == 6
    assert two.item(COUNT) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.json", "[]", "contains no items"),
        ("a.json", "[7]", "item 1: expected an object"),
        ("a.json", '{"corpus": {}}', "expected the items"),
        ("a.json", '[{"image_id": 1}, {"SPICE": 1}]', "item 2: lacks image_id"),
        ("a.jsonl", '{"image_id": 1}\n{"image_id": 2}\nx\n', "line 3: is not JSON"),
        ("a.csv", "SPICE\n1\n", "item 1: lacks image_id"),
        ("a.parquet", "x", "is not Parquet"),
        ("a.json", '[{"image_id": 1, "caption": "a dog"}]', "a.json: contains no scores; view shows what score wrote"),
        ("a.jsonl", '{"image_id": 1, "candidate": "a", "references": ["a"]}\n', "contains no scores"),
        ("a.csv", "image_id,caption\n1,a dog\n", "contains no scores"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path, ("a", str(tmp_path / name)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"corpus": {"CIDEr": null}, "items": [{"image_id": 1, "scores": {"CIDEr": null}}]}'),
        ("a.csv", "image_id,CIDEr\n1,\n"),
    ],
)
def test_scores_that_are_undefined_are_scores(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read(tmp_path, ("a", str(tmp_path / name))).count == 1


class Local:
    """A command that serves pages to this machine."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "spicegraph_service", *arguments, "--no-browser"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = None
        for line in self.process.stderr:
            found = re.search(r"(http://127\.0\.0\.1:\d+)(/\S+/)", line)
            if found:
                break
        assert found is not None
        self.host, self.path = urlsplit(found.group(1)).netloc, found.group(2)

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        with closing(http.client.HTTPConnection(self.host, timeout=60)) as connection:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def wait(self) -> None:
        """Wait until the files are read: until then an item may lack its captions."""
        for _ in range(600):
            if "being read" not in self.get(self.path)[1]:
                return
            time.sleep(0.1)
        raise TimeoutError

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("local")
    lines = [{"image_id": f"{NASTY}{n}", "caption": NASTY, "scores": {"SPICE": n / 60, NASTY: 1}} for n in range(60)]
    (folder / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    made = Local("view", f"<img src onerror>={folder / 'r.jsonl'}")
    yield made
    assert made.stop() == 0


def test_scores_are_grouped_and_none_stands_twice() -> None:
    names = ["SPICE", "SPICE_categories_Object_f", "SPICE_categories_Object_tp", "Color_re"]
    plain, metrics = by_category(names)
    assert plain == ["SPICE"]
    (table, other) = category_tables(metrics, dict.fromkeys(names, (0.5, 3.0)))
    assert table == {"title": "SPICE by category", "rows": [("Object: F", [0.5, 3.0]), ("Object: Right", [0, 3])]}
    assert isinstance(table["rows"][1][1][1], int)
    assert other["title"] == "by category"
    assert choices(names) == [
        ("", [("SPICE", "SPICE")]),
        (
            "SPICE by category",
            [("SPICE_categories_Object_f", "SPICE Object: F"), ("SPICE_categories_Object_tp", "SPICE Object: Right")],
        ),
        ("by category", [("Color_re", "Color: Recall")]),
    ]


def test_the_first_screen_says_who_is_better_and_calls_means_means(tmp_path: Path) -> None:
    for name, step in (("good", 0.2), ("bad", 0.0)):
        items = [
            {
                "image_id": n,
                "scores": {"Bleu_4": 0.1, "SPICE": n / 200 + step, "SPICE_categories": {"Color": {"f": 0.3 + step}}},
            }
            for n in range(100)
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps({"corpus": {"Bleu_4": 0.17, "SPICE": 0.5}, "items": items}))
    overview = overview_of(read(tmp_path, *((name, str(tmp_path / f"{name}.json")) for name in ("bad", "good"))))
    assert overview.verdict.headline == "good is better than bad: SPICE 0.448 against 0.247"
    assert overview.verdict.detail.startswith("Means of 100 items. The difference is +0.200 (95 % interval +0.200 to")
    assert ("Stronger in", "Color (+0.200)") in overview.verdict.points
    assert overview.corpus["Bleu_4"] == [0.17, 0.17]
    assert overview.rows["Bleu_4"][0].value == pytest.approx(0.1)
    assert overview.pair == (1, 0)
    assert set(overview.charts) == {"category", "spread"}


def test_intervals_end_where_scores_end_and_level_systems_are_called_so(tmp_path: Path) -> None:
    for name in ("a", "b"):
        items = [{"image_id": n, "scores": {"SPICE": float(n == 1), "CIDEr": 2.0 - 2.0 * (n == 1)}} for n in range(5)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"corpus": {}, "items": items}))
    overview = overview_of(read(tmp_path, *((name, str(tmp_path / f"{name}.json")) for name in ("a", "b"))))
    assert [(mark.low, mark.value) for mark in overview.rows["SPICE"]] == [(0.0, 0.2)] * 2
    assert [(mark.value, mark.high) for mark in overview.rows["CIDEr"]] == [(1.6, 2.0)] * 2
    assert overview.rows["SPICE"][0].high == pytest.approx(0.2 + 1.96 * 0.2)
    assert overview.verdict.headline == "a and b score the same: SPICE 0.200"


def test_strangers_words_are_text_in_the_viewer(viewer: Local) -> None:
    for path in ("", "?part=1", f"?q={quote(NASTY)}", "item/3", "?order=best&start=50", "?system=x&low=y&start=-1"):
        status, page = viewer.get(viewer.path + path)
        assert status == 200
        assert "<script>hacked" not in page
        assert "<img src" not in page.replace("<img src=data", "")
        assert path == "?part=1" or "default-src 'none'" in page.replace("&#39;", "'")
    assert viewer.get(f"{viewer.path}item/60")[0] == 404
    assert viewer.get(f"{viewer.path}item/{NASTY.replace('/', '').replace(' ', '')}")[0] == 404


def test_the_viewer_answers_this_machine_s_user_alone(viewer: Local) -> None:
    assert viewer.get("/")[0] == 404
    assert viewer.get("/guess/")[0] == 404
    assert viewer.get(viewer.path, Host="evil.example")[0] == 403
    assert viewer.get(viewer.path, Host=f"evil.example:{viewer.host.rpartition(':')[2]}")[0] == 403


def test_the_viewer_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[]")
    (tmp_path / "bad.parquet").write_text("PAR1, and nothing of a table")
    (tmp_path / "good.jsonl").write_text('{"image_id": "1", "scores": {"SPICE": 1}}\n')
    for arguments, message in (
        ((str(tmp_path / "bad.parquet"),), "is not Parquet"),
        ((str(tmp_path / "good.jsonl"), str(tmp_path / "bad.parquet")), "is not Parquet"),
        (("nothing.json",), "there is no such file"),
        ((str(tmp_path / "bad.json"),), "contains no items"),
        ((str(tmp_path / "bad.json"), "--captions", "x=y.json"), "there is no result 'x'"),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "spicegraph_service", "view", *arguments, "--no-browser"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 2
        assert message in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False)])
def test_the_viewer_is_sound_in_chromium(
    viewer: Local, start_browser: Callable[..., Browser], axe: str, *, width: int, dark: bool
) -> None:
    """Its pages by axe-core; and by keyboard: type a filter, go to an item, come back."""
    browser = start_browser()
    browser.look(width=width, dark=dark)
    origin = f"http://{viewer.host}"
    for path in ("", "item/3"):
        browser.visit(origin + viewer.path + path)
        browser.check(axe, origin)
    browser.visit(origin + viewer.path)
    browser.tab_to("input[name=q]")
    browser.type("zz")
    browser.until("document.querySelectorAll('#items tbody tr').length === 0")
    for _ in "zz":
        browser.key("Backspace", code=8)
    browser.type("=1>7")
    browser.until("document.querySelectorAll('#items tbody tr').length === 1")
    browser.tab_to("#items a")
    browser.enter()
    assert browser.js("location.pathname") == f"{viewer.path}item/7"
    browser.tab_to("a[data-key=Escape]")
    browser.enter()
    assert browser.js("location.pathname") == viewer.path
    assert browser.js("document.querySelectorAll('#items tbody tr').length") == 1  # the filter is still there
    assert browser.js("location.hash") == "#item-7"
    assert browser.js("window.hacked") is None
    assert browser.errors == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_pages_end_without_an_error_when_asked(tmp_path: Path, number: int) -> None:
    """Behind ``&`` a shell has Ctrl-C ignored, which the command takes over; it must end all the same."""
    (tmp_path / "r.jsonl").write_text('{"image_id": "1", "caption": "a cat", "scores": {"SPICE": 1}}\n')
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        local = Local("view", f"a={tmp_path / 'r.jsonl'}")
    finally:
        signal.signal(signal.SIGINT, before)
    assert local.get(local.path)[0] == 200
    assert local.stop(number) == 0


@pytest.mark.model
@pytest.mark.slow
def test_the_demo_is_sound_in_chromium(start_browser: Callable[..., Browser], axe: str) -> None:
    local = Local("demo")
    browser = start_browser()
    origin = f"http://{local.host}"
    try:
        for width, dark in ((1400, False), (1400, True), (390, False)):
            browser.look(width=width, dark=dark)
            browser.visit(origin + local.path)
            browser.tab_to("input[name=caption]")
            browser.key("End", code=35)
            browser.type(f" and {NASTY} a red cup")
            browser.until("document.getElementById('result').textContent.includes('(cup, red)')")
            browser.check(axe, origin)
            assert browser.js("window.hacked") is None
    finally:
        assert local.stop() == 0


def unpacked(page: str, name: str) -> Any:
    packed = re.search(rf'data-{name}="([^"]*)"', page)
    assert packed is not None
    return json.loads(gzip.decompress(b85decode(unescape(packed[1]).replace(".", "<"))))


@pytest.mark.model
def test_captions_are_tried() -> None:
    local = Local("demo")
    try:
        status, page = local.get(f"{local.path}?part=1&caption=a+brown+dog&references=a+dog+that+is+brown")
        assert status == 200
        assert "SPICE 0.400" in page
        assert "1 of 2 said is right: P\u00a00.500; 1 of 3 found: R\u00a00.333." in page
        references, _, said_by_references, ((candidate, *_),) = unpacked(page, "chunk")[0]
        assert references == ["a dog that is brown"]
        assert [(view[0], bool(view[2])) for view in candidate] == [(["dog"], True), (["dog", "brown"], False)]
        assert ["dog"] in [strings for strings, *_ in said_by_references]
        _, silent = local.get(f"{local.path}?part=1&caption=and+then&references=a+dog+that+is+brown")
        assert "none said: P\u00a00.000; 0 of 3 found: R\u00a00.000." in silent
        _, people = local.get(f"{local.path}?part=1&caption=a+brown+dog&references=a+dog+that+is+brown&style=scene")
        assert "SPICE 1.000" in people
        for caption, references in ((NASTY, NASTY), ("", ""), ("a dog", ""), ("\0", "a"), ("a" * 30_000, "b")):
            status, page = local.get(f"{local.path}?caption={quote(caption)}&references={quote(references)}")
            assert status == 200
            assert "<script>hacked" not in page
            assert "<img src=x" not in page
    finally:
        assert local.stop() == 0


@pytest.mark.model
def test_an_empty_box_is_empty_and_the_first_page_shows_one_wrong_colour() -> None:
    local = Local("demo")
    try:
        for asked in ("?caption=&references=", "?part=1&references=a+dog", "?part=1&caption=a+dog", "?caption=a+dog"):
            _, page = local.get(local.path + asked)
            assert "Scores need a caption and at least one reference" in page
            assert "SPICE 0." not in page
        _, page = local.get(local.path)
        ((candidate, *_),) = unpacked(page, "chunk")[0][3]
        wrong = [view[0] for view in candidate if not view[2]]
        assert wrong == [["sofa", "red"]]
        assert len(candidate) == 8
    finally:
        assert local.stop() == 0


@pytest.mark.model
def test_an_item_is_drawn_with_its_captions_as_in_a_report(tmp_path: Path) -> None:
    texts = ["a red car", "two dogs on grass"]
    scores = [{"image_id": n, "scores": {"SPICE": 1.0, "Bleu_1": 0.25}} for n in range(2)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scores))
    (tmp_path / "c.json").write_text(json.dumps([{"image_id": n, "caption": text} for n, text in enumerate(texts)]))
    rows = [{"image_id": n, "caption": text} for n, text in enumerate(["a blue car", "two dogs on grass"])]
    (tmp_path / "references.json").write_text(json.dumps({"annotations": rows}))
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "COCO_000000000001.gif").write_bytes(b"GIF89a")
    local = Local(
        *("view", str(tmp_path / "r.jsonl"), "--captions", str(tmp_path / "c.json")),
        *("--references", str(tmp_path / "references.json"), "--images", str(tmp_path / "pictures")),
    )
    try:
        local.wait()
        _, page = local.get(f"{local.path}item/1")
        index = unpacked(page, "index")
        assert index["captions"] == [["two dogs on grass"]]
        assert (index["metrics"], index["values"]) == (["Bleu_1"], [[[0.25]]])
        assert index["sources"] == [f"{local.path}images/COCO_000000000001.gif"]
        assert local.get(index["sources"][0]) == (200, "GIF89a")
        assert "The file says" not in page
        _, page = local.get(f"{local.path}item/0")
        assert "The file says SPICE 1.000 for r; what is drawn has 0.500" in page
        _, page = local.get(f"{local.path}?part=telling")
        assert "says “red”, references “blue”" in page.replace("</span>", "")
        assert "<h3>Examples of errors</h3>" in page
        assert 'href="item/0"' in page
        assert local.get(f"{local.path}images/../r.jsonl")[0] == 404
    finally:
        assert local.stop() == 0
