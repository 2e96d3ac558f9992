"""The report in Debian's Chromium, driven over the DevTools pipe: what a reader clicks, types and sees."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.readers.checks import check_items
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.render import to_html, to_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from spicegraph_scorer.core.items import CheckedItems

Browser = Any  # the class of conftest.py
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

NASTY = "<script>window.hacked=1</script> \"quotes\" & 'more' <img src=x onerror=hacked=1> شارع قديم 🐶"


def kept(items: Iterable[Item]) -> CheckedItems:
    """Return items whose captions are scored as they are, markup and all."""
    return check_items(items, control_tokens="keep")


def systems() -> list[System]:
    references = ("red_car dog", "red_car bench")
    items = [Item(n, "blue_car dog" if n % 3 == 0 else "red_car dog", references) for n in range(120)]
    items.append(Item("nasty", NASTY, ("dog", f"cat {NASTY}")))
    items.append(Item("1", "sofa dog", ("couch animal", "couch")))
    other = [Item(item.id, "red_car bench dog", item.references) for item in items]
    return [System("one", kept(items)), System("<i>two</i>", kept(other))]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, word_facts: Any) -> Path:
    report = build_report(systems(), ReportOptions(resampling=Resampling(50)), pipeline=word_facts)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(report), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium(start_browser: Callable[..., Browser]) -> Browser:
    return start_browser()


@pytest.fixture
def browser(chromium: Browser, page: Path) -> Iterator[Browser]:
    chromium.errors.clear()
    chromium.open(page)
    yield chromium
    assert chromium.errors == []


STATUS = "document.getElementById('status').textContent"
IDS = "[...document.querySelectorAll('#list .id')].map(e => e.textContent)"
SCORES = "[...document.querySelectorAll('#list .chosen .score')].map(e => Number(e.textContent))"


def choose(browser: Browser, control: str, value: str) -> None:
    browser.js(
        f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
        f"(document.getElementById({control!r}))"
    )


def test_the_list_comes_worst_first_and_sorts_the_other_way(browser: Browser) -> None:
    worst = browser.js(SCORES)
    assert worst == sorted(worst)
    choose(browser, "order", "best")
    best = browser.js(SCORES)
    assert best == sorted(best, reverse=True)
    assert best[0] > worst[0]


def test_a_search_filters_by_typing(browser: Browser) -> None:
    browser.click("#query")
    browser.type("blue_")
    browser.until(f"{STATUS} === '40 of 122 images'")
    assert "q=blue_" in browser.js("location.hash")


def test_a_kind_of_error_filters(browser: Browser) -> None:
    kind = "[...document.querySelectorAll('#kind option')].find(o => o.textContent === 'Color confused').value"
    choose(browser, "kind", browser.js(kind))
    assert browser.js(STATUS) == "40 of 122 images: color confused"


def test_an_error_group_leads_to_its_images(browser: Browser) -> None:
    browser.js(
        "[...document.querySelectorAll('details.kind')].find(d => d.textContent.includes('Color confused')).open = true"
    )
    browser.click("a[href^='#kind=color_confused&group=0']")
    browser.until(f"{STATUS} === '40 of 122 images: color confused (red / blue)'")


def test_an_image_opens_by_click_and_marks_its_states(browser: Browser) -> None:
    browser.click("#list a")
    browser.until("!document.getElementById('detail').hidden")
    assert browser.js("document.activeElement.textContent").startswith("Image ")
    assert browser.js("document.querySelectorAll('#detail .graph rect').length") > 0


def test_the_drill_down_says_why(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=3")
    text = browser.js("document.getElementById('detail').textContent")
    assert "color confused; references have (car, red)" in text
    assert "2 of 2 references" in text


def test_it_works_by_keyboard(browser: Browser) -> None:
    browser.js("document.querySelector('#list a').focus()")
    first = browser.js("document.activeElement.querySelector('.id').textContent")
    browser.key("Enter", code=13, text="\r")
    browser.until(f"document.querySelector('#detail h3')?.textContent === 'Image {first}'")
    following = browser.js(IDS)[1]
    browser.key("ArrowRight", code=39)
    browser.until(f"document.querySelector('#detail h3').textContent === 'Image {following}'")
    browser.key("Escape", code=27)
    browser.until("document.getElementById('detail').hidden")
    assert browser.js("document.activeElement.querySelector('.id').textContent") == following


def test_closing_leads_back_to_the_card_that_was_opened(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js("document.querySelector('.telling a.whole').focus()")
    browser.key("Enter", code=13, text="\r")
    browser.until("!document.getElementById('detail').hidden")
    browser.key("Escape", code=27)
    browser.until("document.getElementById('detail').hidden")
    browser.until("document.activeElement.matches('.telling a.whole')")
    assert browser.js("(r => r.top >= 0 && r.bottom <= innerHeight)(document.activeElement.getBoundingClientRect())")


def test_systems_stand_side_by_side_and_graphs_have_views(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=3")
    captions = "[...document.querySelectorAll('#detail .system')].map(s => [s.ariaLabel, s.querySelector('.said').textContent])"
    assert browser.js(captions) == [["one", "blue_car dog"], ["<i>two</i>", "red_car bench dog"]]
    left, right = browser.js("[...document.querySelectorAll('#detail .system')].map(s => s.getBoundingClientRect().x)")
    assert left < right
    assert browser.js("document.querySelectorAll('#detail .key mark').length") == 4
    both = browser.js("document.querySelectorAll('#detail .graph text').length")
    browser.js("[...document.querySelectorAll('#detail button')].find(b => b.textContent === 'Caption').click()")
    assert browser.js("document.querySelectorAll('#detail .graph text').length") < both


def test_words_tuples_and_graphs_are_linked_by_pointer_and_keys(browser: Browser, page: Path) -> None:
    class_of = "[...document.querySelectorAll('#detail .pointed')].map(e => [e.tagName, e.textContent])"
    browser.open(page, "#image=4")
    browser.js(
        "document.querySelector('#detail .system tr[data-t]').dispatchEvent(new Event('mouseover', {bubbles: true}))"
    )
    assert browser.js("document.querySelectorAll('#detail .pointed').length") > 1
    browser.js("document.querySelector('#detail .system tr[data-t]').focus()")
    browser.key("ArrowDown", code=40)
    assert browser.js("document.activeElement.cells[0].textContent") == "(car, red)"
    assert browser.js("document.querySelector('#detail h3').textContent") == "Image 4"
    pointed = browser.js(class_of)
    assert ["text", "red"] in pointed
    assert {text.partition(")")[0] for tag, text in pointed if tag == "TR"} == {"(car, red"}


def test_near_misses_are_not_called_invented(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=%221%22")
    badges = "[...document.querySelectorAll('#detail .system .tuples')][0].innerText"
    assert "near miss" in browser.js(badges)
    assert "invented" not in browser.js(badges)
    assert browser.js("document.querySelector('#detail .graph .near text').textContent") == "dog"


def test_the_arithmetic_is_in_words(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=3")
    rows = "[...document.querySelectorAll('#detail .system')].map(s => [...s.querySelectorAll('.sums tr')].map(r => r.innerText.replaceAll('\\t', ' ')))"
    first, _ = browser.js(rows)
    assert first[0] == "SPICE 2 of 3 said are right: P 0.667 2 of 4 found: R 0.500 F 0.571"
    assert "Color 0 of 1 said are right: P 0.000 0 of 1 found: R 0.000 F 0.000" in first
    assert "In neither: Relation, Cardinality, Size." in browser.js(
        "document.querySelector('#detail .system').innerText"
    )


def test_a_word_and_a_synset_filter(browser: Browser, page: Path) -> None:
    browser.open(page, "#word=vehicle.n.01&system=0")
    assert browser.js(STATUS) == "40 of 122 images"  # the color of the car is missed there
    browser.open(page, "#word=blue&system=0")
    assert browser.js(STATUS) == "40 of 122 images"
    browser.open(page, "#word=animal.n.01&kind=object_near_miss")
    assert browser.js(IDS) == ["1"]
    assert "animal.n.01" in browser.js("[...document.querySelectorAll('#words option')].map(o => o.value)")


@pytest.mark.model
def test_a_word_is_what_its_place_makes_it(chromium: Browser, tmp_path: Path) -> None:
    """Who looks for animals wants no jets that fly and nothing that is young; and sees which word it is."""
    references = ("a jet on a field", "a plane")
    items = tuple(
        Item(n, text, references) for n, text in enumerate(["a young jet", "a duck on a field", "a jet flies"])
    )
    options = ReportOptions(resampling=Resampling(20), human=False)
    page = tmp_path / "senses.html"
    page.write_text(to_html(build_report([System("one", kept(items))], options)), encoding="utf-8")
    chromium.open(page, "#word=animal.n.01")
    assert chromium.js(IDS) == ["1"]
    assert chromium.js("[...document.querySelectorAll('#list .badge')].map(b => b.textContent)") == ["duck"]


def test_the_list_is_exported_with_notes_that_this_browser_keeps(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=%221%22")
    fields = "document.querySelectorAll('#detail .notebook input, #detail .notebook textarea')"
    browser.js(f"{fields}[0].value = 'to check, odd'; {fields}[0].dispatchEvent(new Event('change'))")
    browser.js(f"{fields}[1].value = '=HYPERLINK(1)'; {fields}[1].dispatchEvent(new Event('change'))")
    browser.open(page, "#noted=tag:odd")
    assert browser.js(IDS) == ["1"]
    browser.js(
        "window.texts = []; window.Blob = new Proxy(Blob, {construct: (B, [p, o]) => (texts.push(p[0]), new B(p, o))})"
    )
    for name in ("csv", "json", "notes"):
        browser.click(f"#{name}")
    csv_text, json_text, notes = browser.js("texts")
    (row,) = csv.DictReader(io.StringIO(csv_text))
    assert (row["image"], row["one: caption"], row["tags"]) == ("1", "sofa dog", "to check, odd")
    assert row["note"] == "'=HYPERLINK(1)"
    assert json.loads(json_text)[0]["one: errors"] == "object_near_miss object_missed"
    assert json.loads(notes) == {'"1"': {"tags": ["to check", "odd"], "note": "=HYPERLINK(1)"}}
    browser.js("localStorage.clear()")


def test_a_permalink_opens_its_image(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=42&system=1")
    assert browser.js("document.querySelector('#detail h3').textContent") == "Image 42"
    assert browser.js("document.getElementById('system').value") == "1"
    browser.open(page, "#image=4711")
    assert browser.js(STATUS) == "There is no image 4711 in this report."


def test_the_integer_1_and_the_string_1_have_permalinks_of_their_own(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=1")
    assert browser.js("document.querySelector('#detail .system .said').textContent") == "red_car dog"
    browser.open(page, "#image=%221%22")
    assert browser.js("document.querySelector('#detail .system .said').textContent") == "sofa dog"
    assert browser.js("document.querySelector('#detail h3').textContent") == "Image 1"
    assert browser.js("document.querySelector('#list a[aria-current]').hash").startswith("#image=%221%22")


def test_a_synonym_comes_with_its_definition_and_a_near_miss_with_its_distance(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=%221%22")
    text = browser.js("document.getElementById('detail').textContent")
    assert "object almost right; references have (animal); narrower, WordNet distance 2" in text
    assert "synonym, WordNet sofa.n.01: an upholstered seat for more than one person: (couch)" in text


def test_scores_are_filtered_by_range(browser: Browser) -> None:
    all_scores = browser.js(SCORES)
    low = sorted(all_scores)[len(all_scores) // 2]
    browser.click("#low")
    browser.type(str(low))
    browser.until(f"{STATUS} !== '122 of 122 images'")
    assert min(browser.js(SCORES)) >= low
    assert f"low={low}" in browser.js("location.hash")
    browser.js("document.querySelector('#controls button[type=reset]').click()")
    browser.until(f"{STATUS} === '122 of 122 images'")


def test_a_split_page_reads_its_images_from_the_folder_beside_it(
    chromium: Browser, tmp_path: Path, word_facts: Any
) -> None:
    report = build_report(systems(), ReportOptions(resampling=Resampling(20)), pipeline=word_facts)
    folder = tmp_path / "it's 100% <split>_files"
    folder.mkdir()
    for name, text in to_parts(report).items():
        (folder / name).write_text(text, encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text(to_html(report, parts=folder.name), encoding="utf-8")
    chromium.errors.clear()
    chromium.open(page, "#image=119")
    assert chromium.js("document.querySelector('#detail h3').textContent") == "Image 119"
    chromium.js("document.querySelector('#list a').click()")
    chromium.until("document.querySelector('#detail h3').textContent !== 'Image 119'")
    assert chromium.errors == []
    (folder / "chunk1.js").unlink()
    chromium.open(page)
    chromium.js("location.hash = '#image=119'")
    chromium.until(f"{STATUS}.includes('chunk1.js can')")


def test_captions_are_text_and_nothing_else(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=nasty")
    assert browser.js("document.querySelector('#detail .system .said').textContent") == NASTY
    assert browser.js("window.hacked === undefined && !document.querySelector('#detail img')")
    assert "<i>two</i>" in browser.js("document.querySelector('#scores').parentElement.textContent")
    assert "شارع" in browser.js("document.body.innerText")


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, page: Path) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=380, height=700, deviceScaleFactor=1, mobile=True)
    try:
        browser.open(page, "#image=nasty")
        assert browser.js("document.documentElement.scrollWidth") <= 380
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_controls_and_pictures_have_names(browser: Browser, page: Path) -> None:
    browser.open(page, "#image=3")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = {"button", "link", "combobox", "searchbox", "image", "table"}
    unnamed = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in named - {"table"} and not node["name"]["value"]
    ]
    assert unnamed == []


@pytest.mark.model
def test_words_are_marked_by_verdict_and_listed_by_object(chromium: Browser, tmp_path: Path) -> None:
    """Captions stay text; what hovering shows stands in a table, too, for paper."""
    references = ("A brown dog lies on a red couch.", "A dog sleeps on the red couch.", "A dog rests on a red sofa.")
    wrong = "🐶 A giraffe <img src=x onerror=window.hacked=1> on a blue couch"
    items = tuple(Item(n, wrong if n < 3 else "A dog on a red couch", references) for n in range(5))
    other = tuple(Item(n, "A dog on a red couch", references) for n in range(5))
    options = ReportOptions(metrics=("spice-g",), resampling=Resampling(20), human=False)
    report = build_report([System("<b>one</b>", kept(items)), System("two", kept(other))], options)
    page = tmp_path / "verdicts.html"
    page.write_text(to_html(report), encoding="utf-8")
    chromium.errors.clear()
    chromium.open(page, "#image=1")
    judged = "#detail .judged"
    assert chromium.js(f"document.querySelector({judged!r}).textContent") == wrong
    marks = chromium.js(
        f"[...document.querySelectorAll({judged + ' mark'!r})].map(m => [m.textContent, m.className, m.title])"
    )
    (giraffe,) = [mark for mark in marks if mark[0] == "giraffe"]
    assert giraffe[1] == "contradicted"
    verdicts = report.images[1].candidates[0].graded.explanation.verdicts  # type: ignore[union-attr]
    (found,) = [word for word in verdicts.words if word.word == "giraffe"]
    said = f"{round(100 * found.probability)} %"
    assert giraffe[2] == f"contradicted: wrong with probability {said}; references have dog"
    assert ["couch", "supported"] in [mark[:2] for mark in marks]
    rows = chromium.js(
        "[...document.querySelectorAll('#detail .verdicts tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert [row[:3] for row in rows if row[0] == "giraffe"] == [["giraffe", "contradicted", said]]
    meaning = report.images[1].candidates[0].graded.explanation.meaning  # type: ignore[union-attr]
    shown = chromium.js("document.querySelector('#detail .meaning').textContent")
    assert shown.startswith(f"Meaning of the whole: {meaning.value:.3f}, a sum over words.")
    share = dict(meaning.candidate)["couch"]
    assert f"couch +{share:.3f}" in shown
    tables = chromium.js(
        "[...document.querySelectorAll('table.wrong')].map(t => [t.caption.textContent.trim(),"
        " [...t.rows].slice(1).map(r => [...r.cells].map(c => c.textContent.trim()))])"
    )
    assert [caption.partition(":")[0] for caption, _ in tables] == ["<b>one</b>"]
    assert ["giraffe", "3", "3", "100 %", "dog", "0, 1, 2"] in tables[0][1]
    assert ["couch, blue", "3", "3", "100 %", "red", "0, 1, 2"] in tables[0][1]
    assert "two: every word is supported" in chromium.js("document.getElementById('unsupported').textContent")
    chromium.js("document.getElementById('unsupported').open = true")
    chromium.click("table.wrong a[href='#image=2']")
    chromium.until("document.querySelector('#detail h3').textContent === 'Image 2'")
    assert chromium.js("window.hacked === undefined && !document.querySelector('#detail img')")
    assert chromium.errors == []


@pytest.mark.model
def test_a_description_is_shown_by_sentence_and_by_object(chromium: Browser, tmp_path: Path) -> None:
    reference = "A brown dog lies on a red bed. There is a ball on the floor."
    item = Item(1, "A brown dog lies on a bed. A zebra <img src=x onerror=window.hacked=1> wears a hat.", (reference,))
    options = ReportOptions(resampling=Resampling(20), human=False)
    page = tmp_path / "description.html"
    report = build_report([System("one", kept((item,)))], options, pipeline="scene")
    page.write_text(to_html(report), encoding="utf-8")
    chromium.errors.clear()
    chromium.open(page, "#image=1")
    chromium.until("document.querySelectorAll('.described').length === 4")
    tables = chromium.js(
        "[...document.querySelectorAll('.described')].map(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)))"
    )
    by_sentence, by_object, _, covered = tables
    assert [row[0] for row in by_sentence] == [item.candidate[:26], item.candidate[27:]]
    assert by_sentence[0][1:] == ["4 of 4", "–"]
    assert "(zebra)" in by_sentence[1][2]
    assert ["dog", "brown"] in [row[:2] for row in by_object]
    assert ["bed", "red"] in [row[:2] for row in covered]
    assert chromium.js("window.hacked === undefined && !document.querySelector('#detail img')")
    assert chromium.errors == []


@pytest.mark.model
def test_differences_of_a_description_are_counted_by_aspect(chromium: Browser, tmp_path: Path) -> None:
    reference = "A brown dog lies on a red bed. There is a ball on the floor."
    item = Item(1, "A brown dog lies on a blue bed. A zebra wears a hat.", (reference,))
    options = ReportOptions(resampling=Resampling(20), human=False)
    page = tmp_path / "aspects.html"
    page.write_text(to_html(build_report([System("one", kept((item,)))], options, pipeline="scene")), encoding="utf-8")
    chromium.open(page, "#image=1")
    chromium.until("document.querySelectorAll('.aspects').length === 1")
    rows = chromium.js(
        "[...document.querySelectorAll('.aspects tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert ["color", "1", "0", "1"] in rows
    assert next(row for row in rows if row[0] == "object")[1:3] == ["0", "2"]
    assert "color confused; references have (bed, red)" in chromium.js(
        "document.querySelector('.described').textContent"
    )
    assert chromium.errors == []
