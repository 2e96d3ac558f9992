"""gzip and zstandard in what organisers and participants of a challenge send."""

from __future__ import annotations

import gzip
import json
import sys

import pytest
import zstandard

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.sandbox.tasks import WORK, Prepare, Prepared
from spicegraph_challenge.sandbox.validation import read_submission, split_images

ANNOTATIONS = json.dumps(
    {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a brown dog"}]}
).encode()
PACK = {"gz": gzip.compress, "zst": zstandard.compress}
NAMES = {"gz": "gzip", "zst": "zstandard"}


@pytest.mark.parametrize("ending", PACK)
def test_challenge_references_may_be_packed(ending, tmp_path):
    replies = []
    for name, data in {"plain": ANNOTATIONS, "packed": PACK[ending](ANNOTATIONS)}.items():
        (tmp_path / name).write_bytes(data)
        replies.append(WORK[Prepare](Prepare(str(tmp_path / name), str(tmp_path / f"{name}.set"))))
    assert replies == [Prepared(image_count=1, caption_count=1)] * 2
    assert (tmp_path / "packed.set").read_bytes() == (tmp_path / "plain.set").read_bytes()


def test_without_the_extra_packed_references_are_a_fault(tmp_path, monkeypatch):
    (tmp_path / "packed").write_bytes(zstandard.compress(ANNOTATIONS))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    prepared = WORK[Prepare](Prepare(str(tmp_path / "packed"), str(tmp_path / "set")))
    assert prepared.faults == (
        "reading zstandard files (.zst) needs zstandard, which is not installed: pip install 'spicegraph[zstd]'",
    )


@pytest.mark.parametrize("ending", PACK)
def test_a_packed_submission_is_refused_with_what_to_send(ending, tmp_path):
    path = tmp_path / f"captions_val_x_results.json.{ending}"
    path.write_bytes(PACK[ending](b'[{"image_id": 1, "caption": "a dog"}]'))
    _, faults = read_submission(str(path), path.name, "val", {"val": split_images([])}, pb.ChallengeSettings())
    assert [fault.reason for fault in faults] == [f"is compressed with {NAMES[ending]}; send JSON or a zip"]
