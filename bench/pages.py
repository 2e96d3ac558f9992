"""How fast pages are in Chromium: a report of many images on two systems, and the viewer on many items.

The report is opened from disk; it is usable when its script is done. The viewer reads while it is looked at: the times
of filters are those when everything has been read. Typing is measured in the page, from the key to the list drawn.
Usage: python bench/pages.py [--images N] [--items N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Browser  # noqa: E402 (found by the line above)

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES = ROOT / "examples" / "coco"
COMMAND = [sys.executable, "-m", "spicegraph_service"]
ROUNDS = 5
# From the key to the frame after the list has changed; the pause of the page's script after a key is in it.
TYPED = """(async (text) => {
  const field = document.querySelector('input[name=q]'), list = document.getElementById('items');
  const begin = performance.now();
  field.value = text;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  await new Promise((done) => {
    new MutationObserver((_, seen) => { seen.disconnect(); done(); }).observe(list, { childList: true });
  });
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - begin;
})"""
USABLE = """new MutationObserver(() => { window.usable ??= performance.now(); })
  .observe(document, { attributeFilter: ['data-ready'], subtree: true })"""
FILTERED = """((kind) => {
  const begin = performance.now();
  const field = document.getElementById('word');
  field.value = kind;
  field.dispatchEvent(new Event('input'));
  document.body.offsetHeight;
  return performance.now() - begin;
})"""


def copies(folder: Path, images: int) -> list[Path]:
    """Write the example systems over and over, with ids of their own and their references in the file."""
    references: dict[int, list[str]] = {}
    for row in json.loads((EXAMPLES / "captions_without_first.json").read_text())["annotations"]:
        references.setdefault(row["image_id"], []).append(row["caption"])
    paths = []
    for name in ("human", "retrieval"):
        rows = json.loads((EXAMPLES / f"{name}.json").read_text())
        lines = [
            {
                "image_id": f"{copy}-{row['image_id']}",
                "candidate": row["caption"],
                "references": references[row["image_id"]],
            }
            for copy in range(-(-images // len(rows)))
            for row in rows
        ][:images]
        paths.append(folder / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    return paths


def shown(name: str, times_ms: Iterable[float]) -> None:
    ordered = sorted(times_ms)
    print(
        f"{name:38} median {statistics.median(ordered):7.0f} ms   best {ordered[0]:7.0f}   worst {ordered[-1]:7.0f}",
        flush=True,
    )


def processor_ms(browser: Browser) -> float:
    """Return what all of Chromium's processes have taken, so that a busy machine does not count."""
    tree, found = [browser.pid], 0.0
    for pid in tree:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            tree += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except FileNotFoundError:
            continue
        found += (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
    return found


def report(browser: Browser, folder: Path, images: int) -> None:
    path = folder / "report.html"
    files = [str(one) for one in copies(folder, images)]
    metrics = "spice,bleu,rouge,cider"
    subprocess.run(
        [*COMMAND, "report", *files, "--metrics", metrics, "--draws", "10", "-q", "-o", str(path)], check=True
    )
    print(f"report, {images:,} images of two systems: {path.stat().st_size / 1e6:.2f} MB")
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=USABLE)
    usable, filtered, spent = [], [], []
    for _ in range(ROUNDS):
        before = processor_ms(browser)
        browser.open(path)
        spent.append(processor_ms(browser) - before)
        usable.append(browser.js("window.usable"))
        filtered.append(browser.js(f"{FILTERED}('animal.n.01')"))
    shown("opened, until usable", usable)
    shown("the same, processor time of Chromium", spent)
    shown("filter by a synset, until laid out", filtered)


def rows(items: int, seed: int) -> Iterable[dict[str, Any]]:
    chance = random.Random(seed)
    captions = [row["caption"] for row in json.loads((EXAMPLES / "captions.json").read_text())["annotations"]]
    for number in range(items):
        caption = f"{chance.choice(captions)} {chance.choice(captions)}"
        yield {"image_id": number, "caption": caption, "scores": {"SPICE": chance.random(), "Bleu_4": chance.random()}}


def view(browser: Browser, folder: Path, items: int) -> None:
    files = [folder / f"{name}.results.jsonl" for name in "ab"]
    for seed, path in enumerate(files):
        with path.open("w") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows(items, seed))
    begin = time.monotonic()
    viewer = subprocess.Popen([*COMMAND, "view", *map(str, files), "--no-browser"], stderr=subprocess.PIPE, text=True)
    try:
        assert viewer.stderr is not None
        address = next(found[0] for line in viewer.stderr if (found := re.search(r"http://\S+/", line)))
        print(f"view, {items:,} items of two systems: an address after {time.monotonic() - begin:.2f} s")
        begin = time.monotonic()
        browser.visit(address)
        browser.until("document.querySelectorAll('#items tbody tr').length > 0")
        print(f"{'first list':38} {1000 * (time.monotonic() - begin):14.0f} ms, while files are read")
        while browser.js("document.querySelector('[data-reading]') !== null"):
            time.sleep(0.5)
            browser.visit(address)
        lists = []
        for _ in range(ROUNDS):
            begin = time.monotonic()
            browser.visit(f"{address}?score=SPICE&low=0.2&order=ahead")
            lists.append(1000 * (time.monotonic() - begin))
        shown("a list in a new order", lists)
        for text in ("a red dog", "zebra", "elephants in the", "1999"):
            typed = []
            for _ in range(ROUNDS):
                browser.js(f"{TYPED}('')")
                typed.append(browser.js(f"{TYPED}({text!r})"))
            shown(f"typed {text!r}, until drawn", typed)
    finally:
        viewer.terminate()
        viewer.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=5_000, help="0: no report")
    parser.add_argument("--items", type=int, default=200_000, help="0: no viewer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = Browser(folder / "chromium")
        try:
            if options.images:
                report(browser, folder, options.images)
            if options.items:
                view(browser, folder, options.items)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
