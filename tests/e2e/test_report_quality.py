"""Reports as a reader meets them: numbers that are the scorer's, no markup from texts, no network, no barriers, no wait."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_scorer import score
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.checks import check_items
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.data import Provenance
from spicegraph_service.report.images import Pictures
from spicegraph_service.report.render import to_html

if TYPE_CHECKING:
    from collections.abc import Callable


Browser = Any  # the class of conftest.py
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COCO = Path(__file__).parents[2] / "examples" / "coco"
METRICS = ("spice", "bleu", "rouge", "cider")
PIXEL = bytes.fromhex("47494638396101000100800000ff000000000021f90400000000002c00000000010001000002024401003b")


def example(name: str) -> tuple[Item, ...]:
    return tuple(read_items(str(COCO / f"{name}.json"), references=str(COCO / "captions_without_first.json")).items)


@pytest.fixture(scope="module")
def chromium(start_browser: Callable[..., Browser]) -> Browser:
    return start_browser(width=1400)


@pytest.fixture(scope="module")
def systems() -> list[System]:
    return [System(name, example(name)) for name in ("human", "retrieval")]


@pytest.fixture(scope="module")
def page(systems: list[System], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "pictures").mkdir()
    for item in systems[0].items:
        (folder / "pictures" / f"{item.id}.gif").write_bytes(PIXEL)
    shown = Pictures(str(folder / "pictures"), page=folder)
    options = ReportOptions(metrics=METRICS, images=shown, resampling=Resampling(1000))
    path = folder / "report.html"
    path.write_text(to_html(build_report(systems, options)), encoding="utf-8")
    return path


@pytest.mark.model
def test_every_number_of_an_image_is_the_scorer_s(chromium: Browser, page: Path, systems: list[System]) -> None:
    """Precision, recall and F1 of each category, and every other metric, of all 200 images of both systems."""
    results = [json.loads(json.dumps(list(map(dict, _rows(system))))) for system in systems]
    chromium.open(page)
    collected = chromium.js(
        """(async () => {
          const found = [];
          const heading = () => document.querySelector('#detail h3')?.textContent;
          for (const option of spicegraphTestIds) {
            location.hash = `#image=${option}`;
            while (heading() !== `Image ${option}`) await new Promise((r) => setTimeout(r, 1));
            found.push([...document.querySelectorAll('#detail .system')].map((s) => [
              [...s.querySelectorAll('.sums tr')].map((r) => [r.dataset.category, ...[...r.cells].slice(1).map((c) => c.textContent)]),
              Object.fromEntries([...s.querySelectorAll('.metrics dt')].map((t) => [t.textContent, t.nextSibling.querySelector('b').textContent]))]));
          }
          return found;
        })()""".replace("spicegraphTestIds", json.dumps([str(item.id) for item in systems[0].items]))
    )
    assert len(collected) == 200
    compared = 0
    for place, views in enumerate(collected):
        for rows, (table, others) in zip(results, views, strict=True):
            scores = rows[place]["scores"]
            shown = {name: cells for name, *cells in table}
            for name, found in scores["SPICE_categories"].items():
                if name not in shown:
                    assert not found["tp"] + found["fp"] + found["fn"]
                    continue
                said, there = found["tp"] + found["fp"], found["tp"] + found["fn"]
                p, r, f = (f"{key} {_written(found[k])}" for key, k in (("P", "pr"), ("R", "re"), ("F", "f")))
                hit = f"{found['tp']} of {there} found" if there or name == "All" else "none in references"
                are = "is" if found["tp"] == 1 else "are"
                right = f"{found['tp']} of {said} said {are} right" if said else "none said"
                assert shown[name] == [f"{right}: {p}", f"{hit}: {r}", f]
                compared += 1
            assert others == {name: _written(scores[name]) for name in others}
            assert set(others) == {"Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L", "CIDEr"}
    assert compared > 1000


def _rows(system: System) -> Any:
    return score(system.items, METRICS).to_dict()["items"]


def _written(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@pytest.mark.model
def test_the_first_screen_has_the_difference_and_three_telling_images_follow_the_table(
    chromium: Browser, page: Path
) -> None:
    chromium.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)
    chromium.open(page)
    visible = "(e => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= 900)"
    assert chromium.js(f"{visible}(document.querySelector('.lead'))")
    assert chromium.js("document.querySelector('.lead').textContent").startswith(
        "human is better than retrieval: SPICE 0.2"
    )
    assert chromium.js(f"{visible}(document.querySelector('.first svg.plot'))")
    cards = chromium.js(f"[...document.querySelectorAll('.telling .card')].map({visible})")
    assert len(cards) == 3
    assert chromium.js("[...document.querySelectorAll('.telling img')].every(i => i.complete && i.naturalWidth === 1)")
    assert chromium.js("[...document.querySelectorAll('.telling img')].map(i => i.getAttribute('src'))")[0].startswith(
        "pictures/"
    )


@pytest.mark.model
def test_a_phone_gets_a_third_of_what_it_was(chromium: Browser, page: Path) -> None:
    chromium.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    try:
        chromium.open(page)
        assert chromium.js("document.documentElement.scrollWidth") <= 390
        assert (
            chromium.js("document.documentElement.scrollHeight") <= 6_800
        )  # of 19,000, and the table of systems by category
        wide = chromium.js(
            "[...document.querySelectorAll('table')].filter(t => t.offsetWidth > t.parentElement.clientWidth + 1"
            " && !t.closest('.scroll')).length"
        )
        assert wide == 0
    finally:
        chromium.call("Emulation.clearDeviceMetricsOverride")


VECTORS = (
    "<script>fired('{0}')</script>",
    "<img src=x onerror=\"fired('{0}')\">",
    '"><svg onload="fired(\'{0}\')">',
    "' onmouseover='fired(\"{0}\")' x='",
    "</script><script>fired('{0}')</script>",
    "javascript:fired('{0}')",
    "{{{{ fired('{0}') }}}}${{fired('{0}')}}",
    "<iframe srcdoc=\"<script>parent.fired('{0}')</script>\"></iframe><a href=\"javascript:fired('{0}')\">x</a>",
)
PLACES = ("caption", "reference", "id", "name", "title")


def test_40_probes_fire_nowhere(chromium: Browser, tmp_path: Path, word_facts: Any) -> None:
    """Each of eight vectors in captions, references, ids, systems' names, and titles and file names."""
    probe = {place: [vector.format(f"{place} {n}") for n, vector in enumerate(VECTORS)] for place in PLACES}
    rows = list(zip(probe["id"], probe["caption"], probe["reference"], strict=True))
    items = tuple(Item(name, caption, (reference, "dog")) for name, caption, reference in rows)
    built = build_report(
        [System(name, check_items(items, control_tokens="keep")) for name in probe["name"]],
        ReportOptions(metrics=("spice", "rouge"), resampling=Resampling(10), human=False),
        pipeline=word_facts,
    )
    for number, title in enumerate(probe["title"]):
        made = Provenance(
            "2026-01-01T00:00:00+00:00", f"spicegraph report {title}", ({"name": title, "sha256": "0" * 64},)
        )
        path = tmp_path / f"{number}.html"
        path.write_text(to_html(replace(built, title=title, made=made)), encoding="utf-8")
        chromium.errors.clear()
        chromium.open(path)
        chromium.js("window.seen = []; window.fired = (name) => seen.push(name)")
        for _ in items if number == 0 else items[:1]:
            chromium.js("document.querySelector('#list li:not(.done) a').click()")
            chromium.js("document.querySelector('#list li:not(.done)').classList.add('done')")
            chromium.until("!document.getElementById('detail').hidden")
        chromium.js(
            "for (const e of document.querySelectorAll('*')) e.dispatchEvent(new Event('mouseover', {bubbles: true}))"
        )
        assert chromium.js("window.seen") == []
        assert chromium.js("document.querySelectorAll('iframe, img[src=x], a[href^=javascript]').length") == 0
        assert chromium.errors == []
        assert title in chromium.js("document.body.innerText")


@pytest.mark.model
def test_a_page_asks_for_nothing_from_elsewhere(chromium: Browser, page: Path) -> None:
    chromium.asked.clear()
    chromium.open(page)
    chromium.js("location.hash = document.querySelector('.telling a').hash")
    chromium.until("!document.getElementById('detail').hidden")
    chromium.js("new Promise(r => setTimeout(r, 300))")
    assert chromium.asked
    assert all(url.startswith((page.parent.as_uri(), "about:", "data:")) for url in chromium.asked), chromium.asked


@pytest.mark.model
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False)])
def test_axe_finds_no_serious_fault(chromium: Browser, page: Path, axe: str, *, width: int, dark: bool) -> None:
    chromium.look(width=width, dark=dark)
    try:
        chromium.errors.clear()
        chromium.asked.clear()
        chromium.open(page, "#image=304706")
        chromium.check(axe, page.parent.as_uri())
    finally:
        chromium.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        chromium.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.model
def test_5000_images_of_two_systems_are_8_mb_and_ready_at_once(chromium: Browser, tmp_path: Path) -> None:
    """The example captions 25 times over, with the metrics of the COCO toolkit that need no extra."""
    many = [
        System(
            name,
            tuple(
                Item(f"{copy}-{item.id}", item.candidate, item.references)
                for copy in range(25)
                for item in example(name)
            ),
        )
        for name in ("human", "retrieval")
    ]
    path = tmp_path / "many.html"
    options = ReportOptions(metrics=METRICS, resampling=Resampling(10), human=False)
    path.write_text(to_html(build_report(many, options)), encoding="utf-8")
    assert len(many[0].items) == 5000
    assert path.stat().st_size <= 8e6
    times = []
    for _ in range(3):
        begin = time.monotonic()
        chromium.open(path)
        times.append(time.monotonic() - begin)
    assert min(times) < 3
    begin = time.monotonic()
    chromium.js(
        "document.getElementById('word').value = 'animal.n.01'; document.getElementById('word').dispatchEvent(new Event('input'))"
    )
    assert time.monotonic() - begin < 2
    assert "of 5000 images" in chromium.js("document.getElementById('status').textContent")
