"""SPICE 1.0 itself, in Java: fetched and run, for comparison. Our own code has nothing of it."""

from __future__ import annotations

import hashlib
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
NASHORN = (
    "org.openjdk.nashorn:nashorn-core:15.4",
    *(f"org.ow2.asm:asm{part}:7.3.1" for part in ("", "-analysis", "-commons", "-tree", "-util")),
)
THREADS = 2


def missing() -> str:
    """Say what this needs and is not there, or nothing."""
    return ", ".join(
        name for name, program in {"Java": "java", "Maven": "mvn"}.items() if shutil.which(program) is None
    )


def fetch(folder: Path) -> None:
    """Put the program of the pycocoevalcap wheel and CoreNLP from Maven Central (370 MB) into a folder, once.

    The program computes its summary in JavaScript, which Java has had no engine for since version 15; Nashorn is one.
    """
    library = folder / "lib"
    done = folder / "complete-with-nashorn"
    if done.exists():
        return
    with as_file(files("pycocoevalcap.spice")) as wheel:
        shutil.copytree(wheel / "lib", library, dirs_exist_ok=True)
        shutil.copy(wheel / "spice-1.0.jar", folder)
    for artifact in (CORENLP, f"{CORENLP}:jar:models", *NASHORN):
        arguments = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={library}"]
        print("running", *arguments, flush=True)
        subprocess.run(arguments, check=True)
    done.touch()


def scores(folder: Path, items: list[Item]) -> list[float]:
    """Return the program's F1 of every item; what it gave for the same items before is kept in the folder."""
    content = json.dumps([{"image_id": item.id, "test": item.candidate, "refs": item.references} for item in items])
    stem = folder / hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    source, output = stem.with_suffix(".in.json"), stem.with_suffix(".out.json")
    if not output.exists():
        source.write_text(content)
        part = output.with_suffix(".part")
        _run(folder, [str(source.resolve()), "-threads", str(THREADS), "-out", str(part.resolve())])
        part.rename(output)
    by_id = {row["image_id"]: row["scores"]["All"]["f"] for row in json.loads(output.read_text())}
    return [by_id[item.id] for item in items]


def seconds(folder: Path, items: list[Item]) -> float:
    """Return how long one run of the program takes."""
    rows = [{"image_id": item.id, "test": item.candidate, "refs": item.references} for item in items]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as source:
        json.dump(rows, source)
        source.flush()
        start = time.perf_counter()
        _run(folder, [source.name, "-threads", str(THREADS)])
        return time.perf_counter() - start


def _run(folder: Path, options: list[str]) -> None:
    """Run the program; where a score is missing, raise an error with all that it wrote."""
    # Not with -jar: that ignores -cp, and with it Nashorn.
    arguments = ["java", "-Xmx6g", "-cp", "spice-1.0.jar:lib/*", "edu.anu.spice.SpiceScorer", *options]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or "SPICE metric" not in done.stdout + done.stderr:
        raise SystemExit(f"{' '.join(arguments)} gave no score:\n{done.stdout}{done.stderr}")


def captions_a_second(folder: Path, images: int) -> float:
    """Return what the program parses and scores a second without its start-up: two runs of different size."""
    small, large = items_of(images // 10), items_of(images)
    more = len(distinct(large)) - len(distinct(small))
    return more / (seconds(folder, large) - seconds(folder, small))
