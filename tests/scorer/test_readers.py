"""Files in, items out; and every way in which a file can be wrong, with the words that name it."""

from __future__ import annotations

import json
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError, LimitError, SpicegraphError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.readers import check_items, read_items
from spicegraph_scorer.readers.records import read_lines
from spicegraph_scorer.readers.source import ReadLimits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JAR = [{"image_id": 1, "test": "a dog", "refs": ["a brown dog", "one dog"]}]
RESULTS = [{"image_id": 2, "caption": "a cat"}, {"image_id": 1, "caption": "a dog"}]
ANNOTATIONS = {
    "images": [{"id": 1, "file_name": "one.jpg"}, {"id": 2, "file_name": "two.jpg"}],
    "annotations": [
        {"id": 10, "image_id": 1, "caption": "a brown dog"},
        {"id": 11, "image_id": 2, "caption": "the cat"},
        {"id": 12, "image_id": 1, "caption": "one dog"},
    ],
}
DOG = Item(1, "a dog", ("a brown dog", "one dog"))
CAT = Item(2, "a cat", ("the cat",))

Write = "Callable[[str, object], str]"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, object], str]:
    """Write a file: text and bytes as they are, other values as JSON; return its path."""

    def write(name: str, content: object) -> str:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def lines(*objects: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in objects)


@pytest.mark.parametrize(
    ("content", "form", "expected"),
    [
        (JAR, "SPICE input", (DOG,)),
        (lines({"image_id": 1, "candidate": "a dog", "references": ["a brown dog", "one dog"]}), "JSON Lines", (DOG,)),
        (lines({"id": 1, "caption": "a dog", "refs": ["a brown dog", "one dog"]}), "JSON Lines", (DOG,)),
        ("\n" + lines({"id": 1, "test": "a dog", "refs": ["a brown dog", "one dog"]}) + "\n", "JSON Lines", (DOG,)),
        (b"\xef\xbb\xbf" + json.dumps(JAR).encode(), "SPICE input", (DOG,)),
        (json.dumps(JAR, indent=4), "SPICE input", (DOG,)),
        (
            [{"image_id": "x", "test": "🐶 один", "refs": ["a\ndog"]}],
            "SPICE input",
            (Item("x", "🐶 один", ("a\ndog",)),),
        ),
    ],
)
def test_formats_are_found_in_the_content(
    write: Callable[[str, object], str], content: object, form: str, expected: tuple[Item, ...]
) -> None:
    dataset = read_items(write("no.extension", content))
    assert (dataset.format, dataset.items) == (form, expected)


def test_coco_results_take_their_references_from_the_annotations_in_their_order(
    write: Callable[[str, object], str],
) -> None:
    dataset = read_items(write("r.json", RESULTS), references=write("a.json", ANNOTATIONS))
    assert dataset.format == "COCO results"
    assert dataset.items == (CAT, DOG)
    assert dataset.left_out == 0


def test_a_number_and_the_same_number_as_text_are_one_image_which_is_said(write: Callable[[str, object], str]) -> None:
    dataset = read_items(
        write("r.json", results(("1", "a dog"), (2, "a cat"))), references=write("a.json", ANNOTATIONS)
    )
    assert dataset.items == (DOG, CAT)
    (note,) = dataset.notes
    assert "1 ids are strings here and numbers in the references: taken as equal" in note


def test_equal_records_are_read_once_which_is_said(write: Callable[[str, object], str]) -> None:
    dataset = read_items(write("in.json", JAR + JAR))
    assert dataset.items == (DOG,)
    assert "1 records stand twice: one of each is read" in dataset.notes[0]


def test_annotations_need_no_list_of_images(write: Callable[[str, object], str]) -> None:
    annotations = write("a.json", {"annotations": ANNOTATIONS["annotations"]})
    assert read_items(write("r.json", RESULTS), references=annotations).items == (CAT, DOG)


def test_partial_leaves_out_images_without_a_result(write: Callable[[str, object], str]) -> None:
    dataset = read_items(write("r.json", RESULTS[:1]), references=write("a.json", ANNOTATIONS), partial=True)
    assert dataset.items == (CAT,)
    assert dataset.left_out == 1


def zipped(path: Path, **members: bytes | str) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return str(path)


def test_a_zip_is_read_without_looking_at_what_macos_adds(tmp_path: Path) -> None:
    members = {"results/in.json": json.dumps(JAR), "__MACOSX/results/._in.json": "x", "results/.DS_Store": "y"}
    dataset = read_items(zipped(tmp_path / "in.zip", **members))
    assert dataset.items == (DOG,)
    assert dataset.format == "SPICE input (zip)"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(JAR).encode())))
    assert read_items("-").items == (DOG,)


def jar(**changes: object) -> list[dict[str, object]]:
    return [{**JAR[0], **changes}]


# One row a fault: the file's content, then what the message must say.
BAD_FILES: dict[str, tuple[object, str]] = {
    "not JSON": ("hello", "is not JSON"),
    "cut off": ('[{"image_id": 1', "is not JSON"),
    "empty file": ("", "is empty"),
    "only spaces": (" \n ", "is empty"),
    "not UTF-8": (b'[{"image_id": 1, "test": "\xff"}]', "is not UTF-8"),
    "nested too deeply": ("[" * 200_000, "is JSON nested too deeply"),
    "a number": ("17", "is not JSON, Parquet or a table with known columns"),
    "empty list": ("[]", "there is nothing to score"),
    "list of strings": (["a dog"], "item 1: is 'a dog', expected an object"),
    "unknown keys": ([{"img": 1, "words": "x"}], "a list of objects with the keys 'img', 'words'; looked for an id"),
    "annotations as input": (
        ANNOTATIONS,
        "is a COCO annotations file, which holds references; give it with --references",
    ),
    "pretty annotations of Karpathy": (
        json.dumps({"images": [{"cocoid": 1, "split": "test", "sentences": [{"raw": "a dog"}]}]}),
        "is Karpathy's COCO file, which holds references; give it with --references",
    ),
    "no keys": ("{}", "an object without keys; looked for an id"),
    "no keys in a list": ([{}], "a list of objects; looked for an id"),
    "unknown keys in a line": (lines({"img": 1}), "an object with the keys 'img'; looked for an id"),
    "a pretty object": (json.dumps({"a": 1}, indent=1), "an object with the keys 'a'; looked for an id"),
    "pretty annotations": (json.dumps(ANNOTATIONS, indent=1), "is a COCO annotations file, which holds references"),
    "a spread item": (json.dumps({"id": 1, "caption": "a"}, indent=1), "contains no references (JSON Lines)"),
    "a broken object": ('{\n"a": 1', "is not JSON"),
    "a bad line": (lines({"id": 1, "candidate": "a", "refs": ["b"]}) + "oops\n", "line 2: is not JSON"),
    "a list as line": (lines({"id": 1, "candidate": "a", "refs": ["b"]}, [1]), "line 2: is [1], expected an object"),
    "bzip2": (b"BZh91AY", "is compressed with bzip2; give it unpacked, or as zip, gzip or zstandard"),
    "damaged gzip": (b"\x1f\x8b\x08\x00", "is a damaged gzip file"),
    "damaged zstandard": (b"(\xb5/\xfd and no more", "is a damaged zstandard file"),
    "UTF-16": ("id,candidate,reference\n1,a,b\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
    "damaged zip": (b"PK\x03\x04 and no more", "is a damaged or unreadable zip"),
    "no id": ([{"test": "a dog", "refs": ["b"]}], "item 1, image_id: is missing"),
    "id is null": (jar(image_id=None), "item 1, image_id: is null, expected an integer or a string"),
    "id is a truth value": (jar(image_id=True), "image_id: is true or false, expected an integer or a string"),
    "id is a fraction": (jar(image_id=1.5), "image_id: is a number, expected an integer or a string"),
    "id is a list": (jar(image_id=[1]), "image_id: is a list, expected"),
    "id is empty": (jar(image_id=" "), "image_id: is empty"),
    "id is huge": (jar(image_id=10**30), "image_id: has more than 18 digits"),
    "id twice": (JAR + jar(test="a cat"), "item 2 (image_id 1), image_id: is also the id of item 1"),
    "no candidate": ([*JAR, {"image_id": 2, "refs": ["b"]}], "item 2 (image_id 2), test: is missing"),
    "no candidates": ([{"image_id": 1, "refs": ["b"]}], "holds references (id: image_id, references: refs), and no"),
    "empty candidate": (jar(test=""), "item 1 (image_id 1), test: is empty"),
    "blank candidate": (jar(test=" \t\n"), "item 1 (image_id 1), test: is empty"),
    "candidate is null": (jar(test=None), "item 1 (image_id 1), test: is null, expected a string"),
    "candidate is a list": (jar(test=["a dog"]), "test: is a list, expected a string"),
    "candidate is a number": (jar(test=7), "test: is a number, expected a string"),
    "candidate is the id": (jar(test="1"), "test: is the image's own id or file name, not a caption"),
    "candidate is a file name": (jar(test="COCO_val2014_000000000042.jpg"), "test: is a file name, not a caption"),
    "NUL in candidate": (jar(test="a \0 dog"), "test: holds a NUL character"),
    "huge candidate": (jar(test="dog " * 30_000), "test: is longer than 100,000 characters"),
    "no references": (
        [{"image_id": 1, "test": "a dog"}],
        "contains no references (SPICE input): give them as refs of every item, or with --references FILE",
    ),
    "references empty": (jar(refs=[]), "item 1 (image_id 1), refs: contains no reference"),
    "references a string": (jar(refs="a dog"), "refs: is a string, expected a list of strings"),
    "reference empty": (jar(refs=["a dog", ""]), "item 1 (image_id 1), refs[1]: is empty"),
    "reference is null": (jar(refs=["a dog", None]), "refs[1]: is null, expected a string"),
    "NUL in reference": (jar(refs=["\0"]), "refs[0]: holds a NUL character"),
    "results without annotations": (RESULTS, "contains no references (COCO results): give them with --references FILE"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_file(write: Callable[[str, object], str], content: object, message: str) -> None:
    path = write("in.json", content)
    with pytest.raises(InputError) as caught:
        read_items(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(path)


def results(*pairs: tuple[object, object]) -> list[dict[str, object]]:
    return [{"image_id": image_id, "caption": caption} for image_id, caption in pairs]


def annotated(**changes: object) -> dict[str, object]:
    return {**ANNOTATIONS, **changes}


BAD_PAIRS: dict[str, tuple[object, object, str]] = {
    "unknown image": (
        [*RESULTS, *results((3, "a bird"))],
        ANNOTATIONS,
        "item 3 (image_id 3), image_id: is not in the references",
    ),
    "two ids of an image": (
        results(("1", "a dog"), (1, "a bird"), (2, "a cat")),
        ANNOTATIONS,
        "item 2 (image_id 1), image_id: is also the id of item 1",
    ),
    "image without result": (RESULTS[1:], ANNOTATIONS, "image_id 2: is in "),
    "hint for a subset": (RESULTS[1:], ANNOTATIONS, "say so: --partial"),
    "candidate is its file name": (
        results((1, "one.jpg"), (2, "a cat")),
        ANNOTATIONS,
        "caption: is the image's own id or file name",
    ),
    "references twice": (JAR, ANNOTATIONS, "refs: stands in the file although --references gives the references"),
    "image without caption": (
        RESULTS,
        annotated(annotations=ANNOTATIONS["annotations"][:1]),
        "(image_id 2), image_id: has no reference caption",
    ),
    "no annotations": (RESULTS, {"images": []}, "an object with the keys 'images'; looked for an id"),
    "results as references": (RESULTS, RESULTS, "is COCO results, which hold candidates"),
    "annotation is no object": (RESULTS, annotated(annotations=["x"]), "annotation 1: is 'x', expected an object"),
    "annotation without caption": (
        RESULTS,
        annotated(annotations=[{"image_id": 1}]),
        "annotation 1, caption: is missing",
    ),
    "annotation with empty caption": (
        RESULTS,
        annotated(annotations=[{"image_id": 1, "caption": ""}]),
        "annotation 1 (image_id 1), caption: is empty",
    ),
    "annotation of unlisted image": (
        RESULTS,
        annotated(annotations=[{"image_id": 9, "caption": "x"}]),
        'is not among the "images"',
    ),
    "image twice": (
        RESULTS,
        annotated(images=[{"id": 1}, {"id": 1}]),
        "image 2 (id 1), id: is the id of an earlier image",
    ),
    "image without id": (RESULTS, annotated(images=[{}]), 'image 1: is not an object with an "id"'),
    "images no list": (RESULTS, annotated(images=7), "images: is not a list"),
    "nothing annotated": (RESULTS, {"annotations": []}, "annotations: contains no caption"),
}


@pytest.mark.parametrize(("candidates", "references", "message"), BAD_PAIRS.values(), ids=BAD_PAIRS.keys())
def test_bad_pair_of_files(
    write: Callable[[str, object], str], candidates: object, references: object, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_items(write("r.json", candidates), references=write("a.json", references))
    assert message in str(caught.value)


def test_every_fault_is_listed_in_one_error(write: Callable[[str, object], str]) -> None:
    path = write("r.json", [*results((1, ""), (1, "a dog"), (7, "a bird"), (None, None)), "x"])
    with pytest.raises(InputError) as caught:
        read_items(path, references=write("a.json", ANNOTATIONS))
    message = str(caught.value)
    assert f"{path}: 7 faults" in message
    for part in (
        "item 5: is 'x'",
        "item 1 (image_id 1), caption: is empty",
        "item 2 (image_id 1), image_id: is also the id of item 1",
        "item 3 (image_id 7), image_id: is not in the references",
        "item 4, image_id: is null",
        "item 4, caption: is null",
        "image_id 2: is in ",
    ):
        assert part in message


def test_the_first_fifty_faults_are_shown_and_all_are_counted(write: Callable[[str, object], str]) -> None:
    with pytest.raises(InputError) as caught:
        read_items(write("in.json", [{"image_id": n, "test": "", "refs": ["a"]} for n in range(1, 121)]))
    message = str(caught.value).splitlines()
    assert "120 faults" in message[0]
    assert message[50].startswith("  item 50 ")
    assert message[-1] == "  ... and 70 more"


def test_messages_hold_no_characters_that_steer_a_terminal(write: Callable[[str, object], str]) -> None:
    with pytest.raises(InputError) as caught:
        read_items(write("in.json", jar(image_id="\x1b[2J\u202e", test="")))
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


@pytest.mark.parametrize("path", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"no such file|can't be read"):
        read_items(str(tmp_path / path))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["../in.json"], "its path leads out of the zip"),
        (["a/../../in.json"], "its path leads out of the zip"),
        (["..\\in.json"], "its path leads out of the zip"),
        (["/etc/passwd"], "its path leads out of the zip"),
        (["C:\\in.json"], "its path leads out of the zip"),
        (["a.json", "b.json"], "a zip must hold one file, this one holds 2"),
        ([], "a zip must hold one file, this one holds 0"),
        (["in.zip"], "is not JSON"),
    ],
)
def test_bad_zip(tmp_path: Path, names: list[str], message: str) -> None:
    inner = zipped(tmp_path / "inner.zip", x="y") if names == ["in.zip"] else ""
    content = (tmp_path / "inner.zip").read_bytes() if inner else json.dumps(JAR)
    with pytest.raises(InputError) as caught:
        read_items(zipped(tmp_path / "in.zip", **dict.fromkeys(names, content)))
    assert message in str(caught.value)


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("in.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="is a link"):
        read_items(str(tmp_path / "in.zip"))


def test_a_zip_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb.zip", **{"in.json": b" " * 30_000_000})
    with pytest.raises(LimitError, match="times its size"):
        read_items(path)


def test_a_zip_bomb_is_refused_by_its_size(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb.zip", **{"in.json": json.dumps(JAR)})
    with pytest.raises(LimitError, match="the limit is 20"):
        read_items(path, limits=ReadLimits(content=20))


def test_a_zip_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "liar.zip"
    content = json.dumps(JAR * 1).encode()
    zipped(path, **{"in.json": content})
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 5)  # the uncompressed size in the table of contents
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"damaged or unreadable zip|is not JSON"):
        read_items(str(path))


def test_too_many_files_in_a_zip(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="holds 101 files"):
        read_items(zipped(tmp_path / "in.zip", **{f"{n}.json": "1" for n in range(101)}))


def test_a_line_of_100_mb_is_refused_without_being_held(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "long.jsonl"
    path.write_bytes(lines({"id": 1, "candidate": "a", "refs": ["b"]}).encode())
    with path.open("ab") as stream:
        stream.write(b'{"id": 2, "candidate": "')
        for _ in range(100):
            stream.write(b"a" * 1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(LimitError, match="line 2: is longer than 10,000,000 bytes"):
            read_items(str(path))
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_a_file_over_the_limit_is_refused(write: Callable[[str, object], str]) -> None:
    with pytest.raises(LimitError, match="is larger than 50 bytes"):
        read_items(write("in.json", JAR * 10), limits=ReadLimits(content=50))
    with pytest.raises(LimitError, match="is larger than 50 bytes"):
        read_items(write("in.jsonl", lines(*JAR * 10)), limits=ReadLimits(content=50))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_our_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "in"
    path.write_bytes(content)
    with pytest.raises(SpicegraphError):  # 200 random bytes are never a sound file
        read_items(str(path))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["image_id", "test", "refs"]), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(["image_id", "test", "refs", "caption"]), JSON_VALUES), max_size=3))
def test_any_json_gives_sound_items_or_our_error(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("any") / "in.json"
    path.write_text(json.dumps(value), encoding="utf-8", errors="surrogatepass")
    try:
        items = read_items(str(path)).items
    except SpicegraphError:
        return
    assert check_items(items) == items


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "there are no items"),
        ([DOG, DOG], "item 2 (image_id 1), id: is also the id of item 1"),
        ([Item(1, "", ("a",))], "item 1 (image_id 1), candidate: is empty"),
        ([Item(1, "a", ())], "item 1 (image_id 1), references: contains no reference"),
        ([Item(1, "a", "b")], "references: is a string, expected a list of strings"),
        ([Item(1, "a", ("b", "\ud800"))], "references[1]: holds half of a surrogate pair"),
        ([Item(1.5, "a", ("b",))], "id: is a number, expected an integer or a string"),
    ],
)
def test_items_from_a_program_are_checked_too(items: list[Item], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_items(items)
    assert message in str(caught.value)


def test_lines_of_text_keep_their_numbers(write: Callable[[str, object], str]) -> None:
    assert read_lines(write("c.txt", "a dog\r\n\none.jpg\nlast")) == ["a dog", "", "one.jpg", "last"]


def test_bad_lines_of_text_are_all_named(write: Callable[[str, object], str]) -> None:
    with pytest.raises(InputError) as caught:
        read_lines(write("c.txt", b"a\0b\nfine\n\xff\n" + b"x" * 100_001))
    message = str(caught.value)
    assert "3 faults" in message
    assert "line 1: holds a NUL character" in message
    assert "line 3: is not UTF-8" in message
    assert "line 4: is longer than 100,000 characters" in message
