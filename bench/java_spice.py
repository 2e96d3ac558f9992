"""SPICE 1.0 itself, in Java: fetched and run, for comparison. Our own code has nothing of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from val2014 import distinct, items_of

if TYPE_CHECKING:
    from pathlib import Path

    from spicegraph_scorer.core.items import Item

CORENLP = "edu.stanford.nlp:stanford-corenlp:3.6.0"
THREADS = 2


def missing() -> str:
    """Say what this needs and is not there, or nothing."""
    return ", ".join(
        name for name, program in {"Java": "java", "Maven": "mvn"}.items() if shutil.which(program) is None
    )


def fetch(folder: Path) -> None:
    """Put the program of the pycocoevalcap wheel and CoreNLP from Maven Central (370 MB) into a folder, once."""
    library = folder / "lib"
    if (folder / "complete").exists():
        return
    with as_file(files("pycocoevalcap.spice")) as wheel:
        shutil.copytree(wheel / "lib", library, dirs_exist_ok=True)
        shutil.copy(wheel / "spice-1.0.jar", folder)
    for artifact in (CORENLP, f"{CORENLP}:jar:models"):
        arguments = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={library}"]
        print("running", *arguments, flush=True)
        subprocess.run(arguments, check=True)
    (folder / "complete").touch()


def seconds(folder: Path, items: list[Item]) -> float:
    """Return how long one run of the program takes."""
    rows = [{"image_id": item.id, "test": item.candidate, "refs": item.references} for item in items]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as source:
        json.dump(rows, source)
        source.flush()
        arguments = ["java", "-Xmx6g", "-jar", "spice-1.0.jar", source.name, "-threads", str(THREADS)]
        start = time.perf_counter()
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - start
    if "SPICE metric" not in done.stdout + done.stderr:  # it always ends with 0
        raise SystemExit(f"{' '.join(arguments)} gave no score:\n{done.stdout}{done.stderr}")
    return wall


def captions_a_second(folder: Path, images: int) -> float:
    """Return what the program parses and scores a second without its start-up: two runs of different size."""
    small, large = items_of(images // 10), items_of(images)
    more = len(distinct(large)) - len(distinct(small))
    return more / (seconds(folder, large) - seconds(folder, small))
