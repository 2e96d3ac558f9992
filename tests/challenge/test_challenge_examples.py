"""The example challenges are made by their one command, and the commands of the pages do what these say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.client import ChallengeClient

if TYPE_CHECKING:
    from arenas import Arena
    from servers import RunningServer

ROOT = Path(__file__).parents[2]
CAPTIONS = ROOT / "examples" / "coco" / "captions.json"
RETRIEVAL = CAPTIONS.with_name("retrieval.json")


@pytest.mark.model
def test_the_coco_challenge_is_made_by_one_command(sqlite_arena: Arena) -> None:
    arena = sqlite_arena
    token, server = arena.organiser(), arena.start()
    for name in ("val2014", "test2014_c5", "test2014_c40"):
        shutil.copyfile(CAPTIONS, arena.folder / f"captions_{name}.json")
    create = ROOT / "examples" / "challenges" / "coco" / "create.sh"
    run(f"bash {create} {arena.folder} coco --total 7", arena.folder, server, token)
    with ChallengeClient(server.address, token) as client:
        challenge = client.get_challenge("coco").challenge
    settings = challenge.settings
    assert challenge.ready
    assert [(split.name, [each.name for each in split.reference_sets]) for split in settings.splits] == [
        ("val2014", ["c5"]),
        ("test2014", ["c40", "c5"]),
    ]
    assert set(settings.metrics) == {"bleu", "meteor", "rouge", "cider", "spice"}
    assert (settings.primary_score, settings.spice_text) == ("CIDEr", scores_pb2.SPICE_TEXT_COCO)
    assert (settings.daily_limit, settings.total_limit, settings.public_board) == (4, 7, True)
    assert [(split.phase_daily_limit, split.phase_total_limit) for split in settings.splits] == [(0, 0), (2, 5)]


@pytest.mark.model
def test_the_commands_of_the_pages_run_as_they_are_written(sqlite_arena: Arena) -> None:
    """Those for organisers and participants, in their order, with files of the names that they have there."""
    arena = sqlite_arena
    token, server = arena.organiser(), arena.start()
    annotations, results = (json.loads(path.read_text()) for path in (CAPTIONS, RETRIEVAL))
    for name in ("captions_val2014", "captions_test2014_c5", "captions_test2014_c40"):
        shutil.copyfile(CAPTIONS, arena.folder / f"{name}.json")
    shutil.copyfile(RETRIEVAL, arena.folder / "captions_val2014_mymodel_results.json")
    images = annotations["images"] = annotations["images"][:30]
    for number, image in enumerate(images):
        image["domain"] = ("in-domain", "near-domain", "out-domain")[number % 3]
    keys = {image["id"] for image in images}
    annotations["annotations"] = [row for row in annotations["annotations"] if row["image_id"] in keys]
    for name in ("nocaps_val_4500_captions", "nocaps_test_captions"):
        arena.write(f"{name}.json", annotations)
    arena.write("results.json", [row for row in results if row["image_id"] in keys])
    organisers, participants = (block("wings/CHALLENGES.md", words) for words in ("create coco", "submit coco"))
    nocaps = block("docs/how-to/move-from-evalai.md", "create nocaps")
    told = run(organisers, arena.folder, server, token)
    rocket = told.split()[-1]
    told = run(participants, arena.folder, server, rocket)
    assert "SUCCEEDED" in told
    assert "val2014, c5, by SPICE_Color" in told
    assert len(json.loads((arena.folder / "image_info.json").read_text())["images"]) == 200
    told = run(nocaps, arena.folder, server, token)
    assert "domains of val, c10: in-domain, near-domain, out-domain" in told
    assert "val, c10, near-domain: 10 images" in told


def block(page: str, words: str) -> str:
    """Return the block of a page that holds these words: without what says where the server is, with an open challenge."""
    texts = re.findall(r"^```sh\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    text: str = next(text for text in texts if f"spicegraph challenge {words} " in text)
    text = text.replace("--opens 2030", "--opens 2020").replace("--closes 2030", "--closes 2999")
    return re.sub(r"^export .*\n", "", text, flags=re.MULTILINE)


def run(commands: str, folder: Path, server: RunningServer, token: str) -> str:
    """Run commands on a server; return what they print."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=folder,
        env=os.environ | {"PATH": path, "SPICEGRAPH_SERVER": server.address, "SPICEGRAPH_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
