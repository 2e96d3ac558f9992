"""Tools that ask a real server: the last step of ``make demo``, and the trial of the image's steps without a container."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = [pytest.mark.model, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def tool(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_last_step_of_the_demo_compares_every_digit(tmp_path: Path) -> None:
    """It names the one score that was changed by the last digit: all others, of the corpus and of images, are equal."""
    results, references, scores = (tmp_path / f"{name}.json" for name in ("results", "references", "scores"))
    captions = json.loads((ROOT / "examples" / "coco" / "retrieval.json").read_text())[:12]
    described = json.loads((ROOT / "examples" / "coco" / "captions.json").read_text())
    images = {caption["image_id"] for caption in captions}
    described["annotations"] = [one for one in described["annotations"] if one["image_id"] in images]
    described["images"] = [one for one in described.get("images", ()) if one["id"] in images]
    results.write_text(json.dumps(captions))
    references.write_text(json.dumps(described))
    given = [str(results), "--references", str(references)]
    assert main(["score", *given, "--metrics", "coco", "-q", "-o", str(scores)]) == 0
    stored = json.loads(scores.read_text())
    changed = stored["items"][3]
    changed["scores"]["ROUGE_L"] += 1e-15
    scores.write_text(json.dumps(stored))
    command = [sys.executable, str(ROOT / "tools" / "ask_server.py"), str(results), str(references), str(scores)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr.endswith(f"error: 1 scores differ from {scores}: ROUGE_L of {changed['image_id']}\n")
    assert "12 items in " in done.stdout
    assert done.returncode == 1


def test_the_image_copies_what_there_is_and_its_server_serves(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it runs to install itself needs a package index: the server is that of this environment."""
    trial = tool("try_image")
    steps = trial.steps()
    assert [name for name, _ in steps].count("RUN") == 3
    copied = [rest.split()[0] for name, rest in steps if name == "COPY" and not rest.startswith("--from")]
    assert all((ROOT / source).exists() for source in copied)
    places = {"/opt/spicegraph": sys.prefix, "/var/lib/spicegraph": str(tmp_path)}
    assert trial.serve(*trial.served(places)) == 0
    assert "{'SPICE': " in capfd.readouterr().out
    assert (tmp_path / "server.db").is_file()
