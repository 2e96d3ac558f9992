"""gzip and zstandard, as input and as output, and the endings of outputs."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest
import zstandard

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers import read_items, read_references
from spicegraph_scorer.readers.source import ReadLimits
from spicegraph_service.cli import main
from wings import needs_graded

ITEMS = "".join(
    json.dumps({"id": i, "candidate": f"a dog {i}", "references": ["a brown dog", "one dog"]}) + "\n" for i in range(50)
).encode()
ANNOTATIONS = json.dumps(
    {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a brown dog"}]}
).encode()
PACK = {"gz": gzip.compress, "zst": zstandard.compress}
NAMES = {"gz": "gzip", "zst": "zstandard"}


@pytest.mark.parametrize("ending", PACK)
def test_what_is_packed_reads_like_what_is_not(ending, tmp_path, monkeypatch):
    (tmp_path / "plain.jsonl").write_bytes(ITEMS)
    (tmp_path / f"packed.jsonl.{ending}").write_bytes(PACK[ending](ITEMS[:1000]) + PACK[ending](ITEMS[1000:]))
    (tmp_path / f"references.json.{ending}").write_bytes(PACK[ending](ANNOTATIONS))
    plain, packed = (read_items(str(tmp_path / name)) for name in ("plain.jsonl", f"packed.jsonl.{ending}"))
    assert packed.items == plain.items
    assert packed.format == f"JSON Lines ({NAMES[ending]})"
    assert read_references(str(tmp_path / f"references.json.{ending}")) == {1: ("a brown dog",)}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PACK[ending](ITEMS))))
    assert read_items("-").items == plain.items


@pytest.mark.model
@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize(
    "command",
    [
        ("idf",),
        pytest.param(("vectors", "build", "--dimensions", "2", "--fewest", "1", "--name", "own"), marks=needs_graded),
    ],
)
def test_commands_on_references_read_packed_ones_alike(command, ending, tmp_path):
    texts = ("a brown dog runs", "a dog on the grass", "a red sofa", "a cat on a sofa", "two men ride horses")
    captions = [{"id": n, "image_id": n // 2, "caption": text} for n, text in enumerate((*texts, *reversed(texts)))]
    content = json.dumps({"images": [{"id": n} for n in range(5)], "annotations": captions}).encode()
    written = []
    for name, data in {"plain.json": content, f"packed.json.{ending}": PACK[ending](content)}.items():
        (tmp_path / name).write_bytes(data)
        output = tmp_path / f"{name}.npz"
        assert main([*command, str(tmp_path / name), "-o", str(output)]) == 0
        written.append(output.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("ending", PACK)
def test_a_file_that_ends_too_early_is_one_clear_error(ending, tmp_path):
    path = tmp_path / "cut"
    path.write_bytes(PACK[ending](ITEMS)[:-7])
    with pytest.raises(InputError, match=f"cut: is a damaged {NAMES[ending]} file"):
        read_items(str(path))


@pytest.mark.parametrize("ending", PACK)
def test_what_unpacks_without_end_is_refused(ending, tmp_path):
    path = tmp_path / "bomb"
    path.write_bytes(PACK[ending](b"[" + b" " * 30_000_000))
    with pytest.raises(LimitError, match="unpacks to more than 200 times its size"):
        read_items(str(path))
    path.write_bytes(PACK[ending](ITEMS))
    with pytest.raises(LimitError, match="unpacks to more than 100 bytes"):
        read_items(str(path), limits=ReadLimits(content=100))


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.zst").write_bytes(zstandard.compress(ITEMS))
    (tmp_path / "a.jsonl").write_bytes(ITEMS)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for arguments in (["a.zst"], ["a.jsonl", "-o", str(tmp_path / "out.json.zst")]):
        assert main(["score", str(tmp_path / arguments[0]), *arguments[1:], "--metrics", "bleu"]) == 2
        assert "pip install 'spicegraph[zstd]'" in capsys.readouterr().err


@pytest.mark.parametrize("ending", PACK)
def test_outputs_are_packed_by_their_ending(ending, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(ITEMS)
    unpack = {"gz": gzip.decompress, "zst": zstandard.decompress}[ending]
    for form in ("json", "jsonl", "csv"):
        written = []
        for name in (f"out.{form}", f"first.{form}.{ending}", f"second.{form}.{ending}"):
            arguments = ["score", str(tmp_path / "a.jsonl"), "--metrics", "bleu", "-o", str(tmp_path / name)]
            assert main(arguments) == 0
            written.append((tmp_path / name).read_bytes())
        plain, first, second = written
        assert first == second
        with (
            zstandard.ZstdDecompressor().stream_reader(first)
            if ending == "zst"
            else io.BytesIO(unpack(first)) as stream
        ):
            assert stream.read() == plain
        assert len(first) < len(plain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "a.jsonl", "-o", "out.jsn"), "out.jsn: this command can't write .jsn; it can write .json, .jsonl"),
        (("score", "a.jsonl", "-o", "out.xyz.gz"), "can't write .xyz"),
        (("score", "a.jsonl", "-o", "out.parquet.gz"), "Parquet is compressed already"),
        (("report", "a.jsonl", "-o", "out.txt"), "can't write .txt; it can write .json, .md"),
        (("compare", "a.jsonl", "a.jsonl", "-o", "out.jsn"), "can't write .jsn"),
    ],
)
def test_an_unknown_ending_is_refused_before_work(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(ITEMS)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_any_name_can_have_a_format_that_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(ITEMS)
    for name, options in (("out.txt", ()), ("out", ()), ("out.jsn", ("--format", "json"))):
        assert main(["score", "a.jsonl", "--metrics", "bleu", "-o", name, *options]) == 0
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "out").read_text()
    assert json.loads((tmp_path / "out.jsn").read_text())["corpus"]
