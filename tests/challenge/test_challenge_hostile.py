"""Files that mean harm, and files that are only wrong: refused with a reason, in bounded memory and time."""

from __future__ import annotations

import io
import json
import stat
import struct
import time
import zipfile
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.challenge.v1.challenge_pb2_grpc import ChallengeServiceStub
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.sandbox.files import Image
from spicegraph_challenge.sandbox.validation import method_of, read_submission, split_images

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from arenas import Arena
    from servers import RunningServer

pytestmark = pytest.mark.slow

NAME = "captions_val_x_results.json"
LOOSE = pb.ChallengeSettings(equal_percent=100)
SPLITS = {
    "val": split_images([[Image(key, f"image_{key}.jpg", 5) for key in range(3)], [Image(7, "image_7.jpg", 0)]]),
    "test": split_images([[Image("a", "a.jpg", 1)]]),
}
SOUND = [{"image_id": key, "caption": f"a dog {key}"} for key in range(3)]
COCO_VAL_IMAGES = 40_504


def zipped(members: dict[str, bytes], *, change: Callable[[zipfile.ZipInfo], None] | None = None) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if change is not None:
                change(info)
            archive.writestr(info, data)
    return stream.getvalue()


def link(info: zipfile.ZipInfo) -> None:
    info.external_attr = (stat.S_IFLNK | 0o777) << 16


def encrypted(data: bytes) -> bytes:
    """Set the flag of encryption in the table of contents."""
    place = data.index(b"PK\x01\x02") + 8
    return data[:place] + struct.pack("<H", 1) + data[place + 2 :]


def lying(data: bytes) -> bytes:
    """Say in the table of contents that the member is smaller than it is."""
    place = data.index(b"PK\x01\x02") + 24
    return data[:place] + struct.pack("<I", 10) + data[place + 4 :]


SOUND_BYTES = json.dumps(SOUND).encode()
REFUSED = {
    "nothing": (b" ", "is not JSON"),
    "an object": (b"{}", "is not a list"),
    "a page": (b"<html>", "is not JSON"),
    "invalid UTF-8": (b'[{"image_id": 1, "caption": "\xff"}]', "is not UTF-8"),
    "UTF-16": (json.dumps(SOUND).encode("utf-16"), "is not UTF-8"),
    "deep nesting": (b"[" * 9_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 4_000, "nested too deeply"),
    "very deep nesting": (b"[" * 1_000_000, "values"),
    "many values": (b"[" + b"0," * 500_000 + b"0]", "values"),
    "not a number": (b'[{"image_id": NaN, "caption": "a"}]', "NaN"),
    "a long number": (b"[" + b"9" * 10_000 + b"]", "is not JSON"),
    "too large": (b" " * (2 << 20), "is larger than"),
    "gzip": (b"\x1f\x8b123456", "gzip"),
    "a damaged zip": (b"PK\x03\x04 nothing follows", "damaged zip"),
    "an empty zip": (zipped({}), "without a file"),
    "a zip of folders": (zipped({"folder/": b""}), "without a file"),
    "a zip bomb": (zipped({NAME: b" " * (100 << 20)}), "unpacks to"),
    "a small bomb": (zipped({NAME: b" " * ((1 << 20) + 2_000)}), "unpacks to"),
    "path traversal": (zipped({f"../{NAME}": SOUND_BYTES}), "leads out of the zip"),
    "an absolute path": (zipped({f"/etc/{NAME}": SOUND_BYTES}), "leads out of the zip"),
    "a drive": (zipped({f"C:{NAME}": SOUND_BYTES}), "leads out of the zip"),
    "backslashes": (zipped({f"..\\{NAME}": SOUND_BYTES}), "leads out of the zip"),
    "a link": (zipped({NAME: b"/etc/passwd"}, change=link), "is a link"),
    "an encrypted member": (encrypted(zipped({NAME: SOUND_BYTES})), "is encrypted"),
    "a lying zip": (lying(zipped({NAME: SOUND_BYTES})), "is damaged"),
    "many members": (zipped({f"{n}.json": b"" for n in range(101)}), "101 files"),
    "another name": (zipped({"results.json": SOUND_BYTES}), "names no split"),
    "no method": (zipped({"captions_val__results.json": SOUND_BYTES}), "names no split"),
    "a split twice": (zipped({NAME: SOUND_BYTES, "captions_val_y_results.json": SOUND_BYTES}), "several files"),
    "a zip in a zip": (zipped({NAME: zipped({NAME: SOUND_BYTES})}), "is not"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_hostile_file_is_refused_with_its_reason(kind: str, tmp_path: Path) -> None:
    content, reason = REFUSED[kind]
    path = tmp_path / "file"
    path.write_bytes(content)
    _, faults = read_submission(str(path), NAME, "", SPLITS, LOOSE)
    assert len(faults) == 1
    assert reason in faults[0].reason


WRONG = {
    "empty caption": ({"image_id": 7, "caption": " "}, "caption", "is empty"),
    "no caption": ({"image_id": 7}, "caption", "is missing"),
    "list": ({"image_id": 7, "caption": ["a dog"]}, "caption", "expected a string"),
    "file name": ({"image_id": 7, "caption": "image_7.jpg"}, "caption", "own id or file name"),
    "other file name": ({"image_id": 7, "caption": "other.jpg"}, "caption", "is a file name"),
    "long caption": ({"image_id": 7, "caption": "a man " * 334}, "caption", "has 2,004 characters, the limit is 2,000"),
    "surrogate": ({"image_id": 7, "caption": "\ud800"}, "caption", "surrogate"),
    "no id": ({"caption": "a dog"}, "image_id", "is missing"),
    "unknown id": ({"image_id": 99, "caption": "a dog"}, "image_id", "is not an image of this split"),
    "string id": ({"image_id": "1", "caption": "a dog"}, "image_id", "it has 1"),
    "truth": ({"image_id": True, "caption": "a dog"}, "image_id", "expected an integer"),
    "fraction": ({"image_id": 1.0, "caption": "a dog"}, "image_id", "expected an integer"),
    "twice": ({"image_id": 0, "caption": "a dog"}, "image_id", "is also the id of item 1"),
    "no object": (3, "", "expected an object"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_record_is_named(kind: str, tmp_path: Path) -> None:
    record, field, reason = WRONG[kind]
    path = tmp_path / "file"
    path.write_text(json.dumps([*SOUND, record]))
    _, faults = read_submission(str(path), NAME, "", SPLITS, LOOSE)
    assert [fault.field for fault in faults] == [field]
    assert reason in faults[0].reason
    assert faults[0].item.startswith("item 4")
    assert faults[0].file == NAME


def test_files_of_few_captions_are_refused(tmp_path: Path) -> None:
    """Else scores are sums over images that the sender has chosen."""
    images = {"val": split_images([[Image(key, "", 1) for key in range(20)]])}
    path = tmp_path / "file"
    rows = [{"image_id": key, "caption": f"a {('man', 'qqq', 'dog', 'cat')[key % 4]}"} for key in range(20)]
    path.write_text(json.dumps(rows))
    settings = pb.ChallengeSettings(equal_percent=50, different_percent=25)
    _, (fault,) = read_submission(str(path), NAME, "", images, settings)
    assert fault.reason == "4 captions for 20 images are different; at least 25 % of the images must have one"
    rows[0]["caption"] = "another"
    path.write_text(json.dumps(rows))
    assert not read_submission(str(path), NAME, "", images, settings)[1]


def test_files_of_one_caption_are_refused(tmp_path: Path) -> None:
    """Else the few images with another one could be read off the scores. Digits and case make no caption another."""
    images = {"val": split_images([[Image(key, "", 1) for key in range(20)]])}
    path = tmp_path / "file"

    def faults(captions: list[str]) -> list[str]:
        path.write_text(json.dumps([{"image_id": key, "caption": text} for key, text in enumerate(captions)]))
        _, rows = read_submission(str(path), NAME, "", images, pb.ChallengeSettings(equal_percent=50))
        return [row.reason for row in rows]

    others = [
        f"a dog with {word}" for word in ("ears", "legs", "fur", "eyes", "a tail", "teeth", "spots", "a toy", "x")
    ]
    same = [f"{'A' if key % 2 else 'a'} dog, {key}." for key in range(11)]
    assert faults([*same, *others]) == ["11 of 20 images have the caption 'a dog'; at most 50 % may have the same"]
    assert not faults([*same[1:], *others, "a cat"])
    assert faults(["?"] * 11 + others) == [
        "11 of 20 images have captions without letters; at most 50 % may have the same"
    ]


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('[{"image_id": 0, "caption": ""}, {"image_id": 0, "caption": 5, "caption": 6}, 7, {"image_id": 5}]')
    _, faults = read_submission(str(path), NAME, "", SPLITS, LOOSE)
    assert [str(fault.reason) for fault in faults] == [
        "is empty",
        "appears twice in the object",
        "is 7, expected an object",
        "is not an image of this split",
        "is missing",
        "has no result",
        "has no result",
    ]


def test_sound_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with_more = [*SOUND, {"image_id": 7, "caption": "an image without references", "score": 0.5}]
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(with_more).encode())
    submitted = read_submission(str(path), NAME, "", SPLITS, LOOSE)
    results, faults = submitted
    assert not faults
    assert list(results["val"]) == [0, 1, 2, 7]
    assert read_submission(str(path), "anything", "val", SPLITS, LOOSE) == submitted
    assert read_submission(str(path), "anything.json", "", {"val": SPLITS["val"]}, LOOSE) == submitted
    both = {
        f"folder/{NAME}": json.dumps(SOUND).encode(),
        "captions_test_x_results.json": b'[{"image_id":"a","caption":"b"}]',
    }
    path.write_bytes(zipped(both))
    results, faults = read_submission(str(path), "both.zip", "", SPLITS, LOOSE)
    assert not faults
    assert set(results) == {"val", "test"}


def test_names_of_files() -> None:
    splits = ["val", "val-dev", "test"]
    assert method_of("captions_val_my_model_results.json", splits) == ("val", "my_model")
    assert method_of("captions_val-dev_m_results.json", splits) == ("val-dev", "m")
    assert method_of("a/b/captions_test_m_results.json", splits) == ("test", "m")
    for name in ("captions_val__results.json", "captions_train_m_results.json", "results.json", ""):
        assert method_of(name, splits) is None


@pytest.fixture(scope="module")
def hosted(
    tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer], tools: type
) -> Iterator[tuple[Arena, RunningServer, ChallengeClient]]:
    """A server with a challenge of the size of COCO's validation set, and a participant."""
    folder = tmp_path_factory.mktemp("hostile")
    arena = tools.arena(str(folder / "challenges.db"), folder, start_server)
    server = arena.start()
    with ChallengeClient(server.address, arena.organiser()) as organiser:
        organiser.create_challenge(tools.challenge("large", splits={"val": ["c5"]}, metrics=["bleu"]))
        images = {n: [f"a dog {n} on a street"] for n in range(COCO_VAL_IMAGES)}
        organiser.upload_references("large", "val", "c5", arena.write("refs.json", tools.annotations(images)))
        with ChallengeClient(server.address, organiser.create_user("mallory")) as client:
            yield arena, server, client


@pytest.mark.model
def test_every_fault_of_a_large_submission_is_listed(hosted: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    """40,504 captions, with and without faults."""
    arena, _, client = hosted
    sound = [{"image_id": n, "caption": f"a man riding a brown horse, number {n}"} for n in range(COCO_VAL_IMAGES)]
    faulty = [{"image_id": n, "caption": ""} for n in range(1, COCO_VAL_IMAGES)]
    for results, count in ((sound, 0), (faulty, COCO_VAL_IMAGES)):
        path = arena.write(NAME, results)
        sent, _ = client.submit("large", path)
        while (found := client.get_submission(sent.id)).state == pb.SUBMISSION_STATE_VALIDATING:
            time.sleep(0.02)
        if not found.HasField("end_time"):
            client.cancel(sent.id)
        assert found.failure.fault_count == count
        assert len(list(client.faults(sent.id))) == count


@pytest.mark.model
def test_hostile_files_do_the_server_no_harm(hosted: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    arena, server, client = hosted
    before = server.memory_mb()
    contents = {
        "bomb.zip": zipped({NAME: b" " * (200 << 20)}),
        "nested.json": b"[" * (30 << 20),
        "many.json": b"[" + b"{}," * (10 << 20) + b"{}]",
        "empty-lists.json": b"[" + b"[]," * 700_000 + b"[]]",
        "utf8.json": b'[{"image_id": 1, "caption": "\xc3\x28"}]',
        "twice.json": b'[{"image_id": 1, "image_id": 2, "caption": "a dog"}]',
        "traversal.zip": zipped({f"../../{NAME}": SOUND_BYTES}),
        "link.zip": zipped({NAME: b"/etc/passwd"}, change=link),
    }
    for name, content in contents.items():
        path = arena.folder / name
        path.write_bytes(content)
        sent, _ = client.submit("large", path, split="val" if name.endswith("json") else "", file_name=name)
        *_, last = client.watch(sent.id)
        assert last.state == pb.SUBMISSION_STATE_FAILED, name
        assert last.failure.reason in {"INVALID_FILE", "VALIDATION_LIMIT"}, name
        assert last.failure.message
    assert server.process.poll() is None
    assert server.memory_mb() - before < 300


@pytest.mark.model
def test_an_endless_file_is_not_read_to_its_end(hosted: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    """A gigabyte is refused when the limit is reached, whoever sends it and however."""
    arena, server, client = hosted
    before, sent = server.memory_mb(), 0

    def gigabyte() -> Iterator[pb.CreateSubmissionRequest]:
        nonlocal sent
        yield pb.CreateSubmissionRequest(settings=pb.SubmissionSettings(challenge="large", file_name=NAME))
        chunk = pb.CreateSubmissionRequest(chunk=b"[" + b" " * ((1 << 20) - 1))
        for _ in range(1024):
            sent += 1
            yield chunk

    metadata = client._metadata
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        ChallengeServiceStub(channel).CreateSubmission(gigabyte(), metadata=metadata)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "larger than" in caught.value.details()
    assert sent < 200
    assert server.memory_mb() - before < 200
    assert not list((arena.folder / "files" / "incoming").iterdir())


@pytest.mark.model
@pytest.mark.parametrize(
    "settings",
    [
        {"file_name": ""},
        {"file_name": "../../etc/passwd"},
        {"file_name": "a\x1b[2J.json"},
        {"method": "x" * 101},
        {"method": "a\nb"},
        {"description": "x" * 2001},
        {"idempotency_key": "ä"},
        {"split": "nope"},
    ],
)
def test_wrong_settings_are_named(
    settings: dict[str, str], hosted: tuple[Arena, RunningServer, ChallengeClient]
) -> None:
    _, server, client = hosted
    request = pb.SubmissionSettings(challenge="large", file_name=NAME)
    request.MergeFrom(pb.SubmissionSettings(**settings))
    if "file_name" in settings:
        request.file_name = settings["file_name"]
    messages = [pb.CreateSubmissionRequest(settings=request), pb.CreateSubmissionRequest(chunk=b"[]")]
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        ChallengeServiceStub(channel).CreateSubmission(iter(messages), metadata=client._metadata)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert next(iter(settings)) in caught.value.details()


@pytest.mark.model
def test_uploads_without_settings_or_content_are_refused(hosted: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    _, server, client = hosted
    settings = pb.CreateSubmissionRequest(settings=pb.SubmissionSettings(challenge="large", file_name=NAME))
    chunk = pb.CreateSubmissionRequest(chunk=b"[]")
    with grpc.insecure_channel(server.address) as channel:
        submit = ChallengeServiceStub(channel).CreateSubmission
        for messages in ([], [chunk], [settings], [settings, settings], [settings, pb.CreateSubmissionRequest()]):
            with pytest.raises(grpc.RpcError) as caught:
                submit(iter(messages), metadata=client._metadata)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
