"""Runs promptfoo itself, with its provider `echo`, on stored captions and the assertion of spicegraph.

    npm install --prefix FOLDER promptfoo@0.120.27 --omit=optional
    python tools/run_promptfoo.py FOLDER

The package and what it needs take 370 MB, too much for every run of the tests. No key is
needed, nor, once it is installed, a network. Fails if a named score, a score or a verdict is not what `score` gives.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from spicegraph_scorer import Item, score

THRESHOLD = 0.3
EXAMPLES = Path(__file__).parents[1] / "examples" / "coco"
ADAPTER = Path(__file__).parents[1] / "examples" / "hosts" / "spicegraph_promptfoo.py"
IMAGES = 20


def items() -> list[Item]:
    """Return captions of the example with their references, and an empty one."""
    references: dict[int, list[str]] = {}
    for row in json.loads((EXAMPLES / "captions.json").read_text())["annotations"]:
        references.setdefault(row["image_id"], []).append(row["caption"])
    rows = json.loads((EXAMPLES / "retrieval.json").read_text())[:IMAGES]
    found = [Item(row["image_id"], row["caption"], tuple(references[row["image_id"]])) for row in rows]
    return [*found, Item(0, "", found[0].references)]


def config(some: list[Item]) -> dict[str, object]:
    """Return promptfoo's configuration, as the documentation of the adapter has it."""
    assertion = {
        "type": "python",
        "value": "file://spicegraph_promptfoo.py",
        "config": {"metrics": "spice,rouge", "threshold": THRESHOLD},
    }
    return {
        "prompts": ["{{caption}}"],
        "providers": ["echo"],
        "defaultTest": {"options": {"disableVarExpansion": True}, "assert": [assertion]},
        "tests": [{"vars": {"caption": item.candidate, "references": list(item.references)}} for item in some],
    }


def main() -> None:
    program = Path(sys.argv[1]).resolve() / "node_modules" / ".bin" / "promptfoo"
    some = items()
    expected = score(some, ("spice", "rouge"), empty="zero").item_scores()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copy(ADAPTER, folder)
        (folder / "promptfooconfig.json").write_text(json.dumps(config(some)))
        settings = {"TELEMETRY": "1", "UPDATE": "1", "REMOTE_GENERATION": "1"}
        environment = os.environ | {f"PROMPTFOO_DISABLE_{name}": value for name, value in settings.items()}
        environment |= {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_PYTHON": sys.executable}
        command = [program, "eval", "-c", "promptfooconfig.json", "--no-cache", "--no-progress-bar", "-o", "out.json"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if not (folder / "out.json").exists():
            raise SystemExit(f"promptfoo wrote nothing:\n{done.stdout}{done.stderr}")
        rows = json.loads((folder / "out.json").read_text())["results"]["results"]
    rows.sort(key=lambda row: row["testIdx"])
    for item, row, values in zip(some, rows, expected, strict=True):
        named = row["namedScores"]
        ours = (values["SPICE"], values["ROUGE_L"])
        if not row.get("gradingResult") or (named["spice"], named["rouge_l"]) != ours:
            raise SystemExit(f"image {item.id}: promptfoo has {named}, score has {ours}: {row.get('error')}")
        if row["success"] != (values["SPICE"] >= THRESHOLD):
            raise SystemExit(f"image {item.id}: SPICE {ours[0]}, passed: {row['success']}")
    passed = sum(row["success"] for row in rows)
    print(f"{len(rows)} captions: every score as by spicegraph; {passed} passed, {len(rows) - passed} failed")


if __name__ == "__main__":
    main()
