"""The example challenges are made by their one command."""

from __future__ import annotations

import os
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

ROOT = Path(__file__).parents[2]


@pytest.mark.model
def test_the_coco_challenge_is_made_by_one_command(sqlite_arena: Arena) -> None:
    arena = sqlite_arena
    token, server = arena.organiser(), arena.start()
    for name in ("val2014", "test2014_c5", "test2014_c40"):
        shutil.copyfile(ROOT / "examples" / "coco" / "captions.json", arena.folder / f"captions_{name}.json")
    done = subprocess.run(
        [
            "bash",
            str(ROOT / "examples" / "challenges" / "coco" / "create.sh"),
            str(arena.folder),
            "coco",
            "--total",
            "7",
        ],
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SPICEGRAPH_SERVER": server.address,
            "SPICEGRAPH_TOKEN": token,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with ChallengeClient(server.address, token) as client:
        challenge = client.get_challenge("coco").challenge
    settings = challenge.settings
    assert challenge.ready
    assert [(split.name, [one.name for one in split.reference_sets]) for split in settings.splits] == [
        ("val2014", ["c5"]),
        ("test2014", ["c40", "c5"]),
    ]
    assert set(settings.metrics) == {"bleu", "meteor", "rouge", "cider", "spice"}
    assert (settings.primary_score, settings.spice_text) == ("CIDEr", scores_pb2.SPICE_TEXT_COCO)
    assert (settings.daily_limit, settings.total_limit, settings.public_board) == (4, 7, True)
    assert [(split.phase_daily_limit, split.phase_total_limit) for split in settings.splits] == [(0, 0), (2, 5)]
