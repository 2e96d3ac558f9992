"""Draw the pictures of the documentation again: pages of the example captions, as Chromium shows them.

Run it after a page has changed, in an environment with the package and Pillow::

    python tools/draw_pictures.py
"""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from PIL import Image  # noqa: E402

from browser import Browser  # noqa: E402 (found by the line above)

ASSETS = ROOT / "docs" / "assets"
EXAMPLES = ROOT / "examples" / "coco"
IMAGE = "304706"
COLOURS = 128
COMMAND = [sys.executable, "-m", "spicegraph_service"]


def shot(browser: Browser, name: str, *, most: int, of: str = "") -> None:
    """Write what the page shows from its top, or an element of it, at most so many pixels high."""
    left, top, width, height = (0, 0, browser.js("document.documentElement.clientWidth"), most)
    if of:
        box = "(r => [r.left - 10, r.top + scrollY - 10, r.width + 20, r.height + 20])"
        left, top, width, height = browser.js(f"{box}(document.querySelector({of!r}).getBoundingClientRect())")
    clip = {"x": left, "y": top, "width": width, "height": min(height, most), "scale": 1}
    drawn = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    path = ASSETS / f"{name}.png"
    with Image.open(io.BytesIO(base64.b64decode(drawn["data"]))) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        systems = [str(EXAMPLES / f"{name}.json") for name in ("human", "retrieval")]
        references = ["--references", str(EXAMPLES / "captions_without_first.json")]
        subprocess.run([*COMMAND, "report", *systems, *references, "-q", "-o", str(report)], check=True)
        browser = Browser(Path(folder) / "chromium")
        try:
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.look(width=1385, dark=False)
            browser.open(report)
            shot(browser, "report", most=660)
            browser.look(width=1285, dark=False)
            browser.open(report, f"#image={IMAGE}")
            shot(browser, "image", most=1035, of="#detail")
            demo = subprocess.Popen([*COMMAND, "demo", "--no-browser"], stderr=subprocess.PIPE, text=True)
            try:
                assert demo.stderr is not None
                address = next(found[0] for line in demo.stderr if (found := re.search(r"http://\S+/", line)))
                browser.look(width=1285, dark=False)
                browser.visit(address)
                shot(browser, "demo", most=900, of="main")
            finally:
                demo.terminate()
                demo.wait()
        finally:
            browser.close()


if __name__ == "__main__":
    main()
