"""The files that people have: each shape with the right items, all shapes through JSON Lines, and files of no shape."""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import DataError, InputError, LimitError, SpicegraphError
from spicegraph_scorer import SHAPES, Item, Shape, read
from spicegraph_scorer.readers import parse_columns, read_items
from spicegraph_scorer.readers.fields import Wanted
from spicegraph_scorer.readers.references import Annotations, read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits
from spicegraph_scorer.readers.tables import _IDS

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "files"
DOG = ("A dog runs on the grass.", "A brown dog is running.")
MEN = ("Two men ride bikes.", "Men are riding bicycles down a road.")
CANDIDATES = ("A brown dog runs.", "Two people ride bikes on a road.")
GRAPHS = ("( dog ) , ( dog , is , brown ) , ( dog , run on , grass )", ("( dog ) , ( grass ) , ( dog , is , brown )",))
RESULTS = {
    "gts.json": "res.json",
    "audio_coco.json": "res_audio_coco.json",
    "msrvtt.json": "res_video_predictions.json",
    "Flickr8k.token.txt": "res_jpg.json",
    "flickr30k_results.csv": "res_jpg.json",
    "karpathy_flickr30k.json": "res_jpg.json",
    "audiocaps.csv": "res_audiocaps.json",
    "textcaps.json": "res_textcaps.json",
    "vatex.json": "res_vatex.json",
    "coco.json": "res_coco.json",
    "vizwiz.json": "res_coco.json",
    "karpathy_coco.json": "res_coco.json",
}  # The results that belong to files of references.


ALONE = {
    "COCO results",
    "captions by id",
    "the toolkit's dictionaries",
    "Flickr tokens",
    "conversations",
    "OpenCLIP table",
}


def references_of(path: str, **wanted: str) -> Annotations:
    return read_reference_files([path], limits=DEFAULT_LIMITS, wanted=Wanted("references", **wanted))


def message_of(path: str, references: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_items(path, references=references)
    return str(caught.value)


def items_of(shape: Shape, write: Callable[[object], str]) -> tuple[Item, ...]:
    """Return the items of a shape's case; the other side is a file of JSON Lines with the same ids."""
    path = str(CASES / shape.case)
    if shape.side == "references" or shape.case in {*RESULTS, "tvc.jsonl", "sharegpt4v.json"}:
        images = [image for image, texts in references_of(path).captions.items() if texts]
        known = references_of(path).captions
        images = [image for image in images if set(known[image][0].split()) & {"dog", "men"}]
        candidates = dict(zip(images, CANDIDATES, strict=False))
        lines = "".join(json.dumps({"id": i, "caption": text}) + "\n" for i, text in candidates.items())
        return read_items(write(lines), references=path, partial=len(known) > len(images)).items
    try:
        return read_items(path).items
    except InputError:
        message = message_of(path, write('{"id": "?", "references": ["x"]}'))
        ids = re.findall(r"image_id ([^)]+)\)", message)
        images = list(dict.fromkeys(json.loads(each.replace("'", '"')) for each in ids))[:2]
        rows = ({"id": i, "references": texts} for i, texts in zip(images, (DOG, MEN), strict=False))
        return read_items(path, references=write("".join(json.dumps(row) + "\n" for row in rows))).items


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_is_read_right(shape: Shape, write: Callable[[object], str]) -> None:
    first, *others = items_of(shape, write)
    texts = [re.sub(r"\s+", " ", " ".join(item.references)) for item in (first, *others)]
    if shape.name == "SPICE output":
        assert (first.candidate, first.references) == GRAPHS
        return
    if shape.candidate == "conversations":
        assert (first.candidate, first.references) == (CANDIDATES[0], DOG[:1])
        return
    assert texts == [" ".join(DOG), " ".join(MEN)]
    assert [item.candidate for item in (first, *others)] == list(CANDIDATES)
    assert len(first.references) == (1 if shape.joined and shape.side == "references" else 2)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_has_a_case_that_shows_its_name_and_a_line_in_the_documentation(shape: Shape) -> None:
    assert shape.whose
    path = str(CASES / shape.case)
    if shape.side == "references" or shape.case == "tvc.jsonl":
        said = references_of(path).format
    elif shape.side == "candidates" or shape.name in ALONE:
        said = message_of(path)
    else:
        said = read_items(path).format
    assert shape.name in said
    assert shape.name in (ROOT / "docs" / "inputs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_written_as_json_lines_and_read_again_gives_the_same_items(
    shape: Shape, write: Callable[[object], str]
) -> None:
    items = items_of(shape, write)
    lines = "".join(
        json.dumps({"id": item.id, "candidate": item.candidate, "references": item.references}) + "\n" for item in items
    )
    assert read_items(write(lines)).items == items


@pytest.mark.parametrize(("references", "results"), RESULTS.items())
def test_pairs_of_files_as_they_circulate(references: str, results: str) -> None:
    items = read_items(str(CASES / results), references=str(CASES / references)).items
    assert [(item.candidate, item.references) for item in items] == list(zip(CANDIDATES, (DOG, MEN), strict=True))


def test_captions_that_the_data_set_leaves_out_are_left_out_which_is_said() -> None:
    dataset = read_items(str(CASES / "res_coco.json"), references=str(CASES / "vizwiz.json"))
    assert [note.partition(": ")[2] for note in dataset.notes] == [
        "2 captions left out (1 is_precanned, 1 is_rejected)"
    ]
    reports = CASES / "reports"
    (item,) = read_items(str(reports / "vzp.json"), references=str(reports / "vzr.json")).items
    assert item.references == ("A can of soup on a table.",)


def test_domains_are_tags() -> None:
    dataset = read_items(str(CASES / "res_coco.json"), references=str(CASES / "nocaps.json"))
    assert dataset.tags == ("in-domain", "out-domain")


def test_the_split_is_that_of_the_ids_or_the_one_that_is_named() -> None:
    path = str(CASES / "karpathy_coco.json")
    dataset = read_items(str(CASES / "res_coco.json"), references=path)
    assert len(dataset.items) == 2
    assert "the references of the split test are read" in dataset.notes[0]
    assert len(read_items(str(CASES / "res_coco.json"), references=path, split="test").items) == 2
    with pytest.raises(InputError, match="there is no such split; it has restval, test"):
        read_items(str(CASES / "res_coco.json"), references=path, split="val")
    with pytest.raises(InputError, match="is of the split test, not restval"):
        read_items(str(CASES / "res_coco.json"), references=path, split="restval")
    with pytest.raises(InputError, match="the references have no splits"):
        read_items(str(CASES / "res_coco.json"), references=str(CASES / "coco.json"), split="test")


def test_ids_of_several_splits_are_one_question(write: Callable[[object], str]) -> None:
    images = [
        {"cocoid": n, "split": "test" if n < 60 else "val", "filename": f"{n}.jpg", "sentences": [{"raw": "A dog."}]}
        for n in range(120)
    ]
    karpathy = write({"images": images, "dataset": "coco"})
    results = write([{"image_id": n, "caption": "a cat"} for n in (1, 2, 3, 70)])
    with pytest.raises(InputError, match=re.escape("has ids of several splits: test (3), val (1); which is meant?")):
        read_items(results, references=karpathy)


def test_another_language_is_read_where_it_is_named(write: Callable[[object], str]) -> None:
    assert references_of(str(CASES / "xm3600.jsonl"), language="de").captions == {
        "k1": ("Ein Satz.",),
        "k2": ("Ein Satz.",),
    }
    assert references_of(str(CASES / "vatex.json"), language="zh").captions == {"v1": ("-",), "v2": ("-",)}
    assert references_of(str(CASES / "msvd.csv"), language="de").captions == {
        "v1_33_46": ("Ein Satz.",),
        "v2_33_46": ("Ein Satz.",),
    }
    assert references_of(str(CASES / "msvd.csv")).notes[0].endswith("2 captions left out (2 German)")
    with pytest.raises(InputError, match="no caption is in the wanted language; there are English, German"):
        references_of(str(CASES / "msvd.csv"), language="fr")


@pytest.mark.parametrize("separator", ["\t", ",", "|", ", ", " | ", "#0\t", "#3 "])
@pytest.mark.parametrize("names", [("img1", "img2"), ("1.jpg", "2.jpg"), ("17", "18")])
def test_lines_that_begin_with_ids_are_no_plain_text(
    separator: str, names: tuple[str, str], write: Callable[[object], str]
) -> None:
    lines = [f"{name}{separator}{text}" for name, text in zip(names, ("a dog runs", "a red car"), strict=True)]
    others = [f"{name}{separator}{text}" for name, text in zip(names, ("the dog runs", "the red car"), strict=True)]
    items = read_items(write("\n".join(lines)), references=write("\n".join(reversed(others)) + "\n")).items
    expected = [(str(name), text) for name, text in zip(names, ("a dog runs", "a red car"), strict=True)]
    assert [(str(item.id), item.candidate) for item in items] == expected
    assert [item.references for item in items] == [("the dog runs",), ("the red car",)]


def test_numbered_lines_are_a_question_which_an_option_answers(write: Callable[[object], str]) -> None:
    lines, references = write("1 dog\n2 cats\n"), write("a dog\ntwo cats\n")
    with pytest.raises(InputError, match="every line begins with another number: are these ids"):
        read_items(lines, references=references)
    items = read_items(lines, references=references, columns=parse_columns(None, delimiter="none")).items
    assert [item.candidate for item in items] == ["1 dog", "2 cats"]


def test_columns_of_a_table_without_a_header_have_numbers(write: Callable[[object], str]) -> None:
    table = write("a dog;x;the dog;7\na cat;y;the cat;8\n")
    columns = parse_columns("id=4,candidate=1,references=3", delimiter=";")
    assert read_items(table, columns=columns).items == (Item(7, "a dog", ("the dog",)), Item(8, "a cat", ("the cat",)))


def test_whole_numbers_as_pandas_writes_them_are_numbers(write: Callable[[object], str]) -> None:
    references = write("image_id,caption\n9.0,a dog\n10.0,a cat\n")
    results = write('{"image_id": 9, "caption": "x y"}\n{"image_id": 10.0, "caption": "y z"}\n')
    assert [item.id for item in read_items(results, references=references).items] == [9, 10]
    named = write('{"image_id": "9.0", "caption": "x y"}\n{"image_id": "COCO_000010.jpg", "caption": "y z"}\n')
    assert [item.id for item in read_items(named, references=references, ids="number").items] == [9, 10]


@pytest.mark.parametrize(
    ("theirs", "ours", "option"),
    [
        (["COCO_val2014_000000000009.png", "COCO_val2014_000000000010.png"], [9, 10], "--ids number"),
        (["a/x.jpg", "b/y.jpg"], ["x", "y"], "--ids stem"),
        (["007", "008"], [7, 8], "--ids number"),
    ],
)
def test_ids_that_would_meet_by_an_option_name_it(
    theirs: list[object], ours: list[object], option: str, write: Callable[[object], str]
) -> None:
    results = write([{"image_id": image, "caption": "a dog"} for image in theirs])
    references = write("".join(json.dumps({"id": image, "references": ["a cat"]}) + "\n" for image in ours))
    if theirs != ["007", "008"]:
        with pytest.raises(InputError, match=option):
            read_items(results, references=references)
    assert [item.id for item in read_items(results, references=references, ids=option.split()[1]).items] == ours


def test_file_names_of_the_references_meet_by_themselves_which_is_said() -> None:
    dataset = read_items(str(CASES / "res_jpg.json"), references=str(CASES / "coco.json"))
    assert [item.id for item in dataset.items] == [1, 2]
    assert dataset.notes[0].endswith("the ids are what the references have as file_name")


def test_results_for_another_set_are_told_with_numbers(write: Callable[[object], str]) -> None:
    results = write([{"image_id": n, "caption": "a dog"} for n in range(5000)])
    images = [{"id": n, "file_name": f"{n:012}.jpg"} for n in range(3900, 5100)]
    captions = [{"image_id": n, "caption": "a cat"} for n in range(3900, 5100)]
    path = Path(write({"images": images, "annotations": captions})).rename(
        Path(results).with_name("captions_val2017.json")
    )
    with pytest.raises(InputError) as caught:
        read_items(results, references=str(path))
    assert "3,900 of 5,000 ids are not in the references, which are of val2017" in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_an_image_in_several_files_of_references_is_one_image_which_is_said(write: Callable[[object], str]) -> None:
    first, second = write({"1": ["a dog"]}), write([{"id": "1", "captions": ["the dog"]}])
    dataset = read_items(write([{"image_id": 1, "caption": "dogs"}]), references=[first, second])
    assert dataset.items == (Item(1, "dogs", ("a dog", "the dog")),)
    assert "1 image with references in several of" in dataset.notes[0]


def test_padded_references_can_be_dropped(write: Callable[[object], str]) -> None:
    results = write({"1": "a dog"})
    references = write({"1": ["the dog", "", " "]})
    with pytest.raises(InputError, match=re.escape("captions[1]: is empty")):
        read_items(results, references=references)
    dataset = read_items(results, references=references, drop_empty_references=True)
    assert dataset.items == (Item(1, "a dog", ("the dog",)),)
    assert dataset.notes[0].endswith("2 empty references dropped")
    both = write([{"image_id": 1, "test": "a dog", "refs": ["the dog", ""]}])
    assert read_items(both, drop_empty_references=True).items == dataset.items


def test_a_program_reads_items_and_is_warned() -> None:
    with pytest.warns(UserWarning, match="2 captions left out"):
        items = read(str(CASES / "res_coco.json"), references=str(CASES / "vizwiz.json"))
    assert [item.candidate for item in items] == list(CANDIDATES)


def test_a_data_set_on_disk_is_read(tmp_path: Path, write: Callable[[object], str]) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    for split, images in (("train", ["9.jpg"]), ("test", ["1.jpg", "2.jpg"])):
        (tmp_path / "set" / split).mkdir(parents=True)
        table = pa.table(
            {"filename": images, "caption": [list(DOG), list(MEN)][: len(images)], "image": [b"x"] * len(images)}
        )
        sink = str(tmp_path / "set" / split / "data-00000-of-00001.arrow")
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    dataset = read_items(str(CASES / "res_jpg.json"), references=str(tmp_path / "set"))
    assert [item.references for item in dataset.items] == [DOG, MEN]
    assert dataset.references.startswith("Hugging Face data set")
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema) as file:
        file.write_table(table)
    assert len(read_items(str(CASES / "res_jpg.json"), references=write(stream.getvalue())).items) == 2


FAULTS: dict[str, tuple[str, str]] = {
    "nan.json": (
        "res_coco.json",
        "NaN is no value of JSON: write null, or leave the entry out, line 1, column 29, item 1",
    ),
    "pyrepr.json": (
        "",
        "single quotes or words of Python, as print writes them: write the file with json.dumps, line 1, column 3",
    ),
    "trail.json": ("", "a comma before the end of a list or an object, line 1, column 44"),
    "surr.json": ("", "\\ud83d is half of a surrogate pair, which is not a character, line 1, column 33, item 1"),
    "latin.json": ("", "in line 1, column 35: byte 0xe9, '\\xe9' in Latin-1"),
    "broken.csv": (
        "",
        "row 3: has 1 column, expected 4: a caption of the row before that goes on in the next line must",
    ),
    "comma.csv": ("", "row 2: has 5 columns, expected 4: is there a comma outside of quotes?"),
    "e1.json": ("", "e1.json: annotation 1 (image_id 2), caption: is empty"),
    "dupkey.json": ("", "has the key '1' twice"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_file_says_what_it_is(name: str) -> None:
    path = str(CASES / "reports" / name)
    with pytest.raises(InputError) as caught:
        references_of(path)
    assert FAULTS[name][1] in str(caught.value)


def test_a_caption_over_two_lines_in_quotes_is_one_caption() -> None:
    captions = references_of(str(CASES / "reports" / "quoted.csv")).captions
    assert captions["abc"] == ("an engine chugs with muffled\nspeech in the background",)


def coco(entry: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "info": {"description": "COCO 2017"},
        "images": [{"id": 1, "file_name": "1.jpg"}],
        "annotations": [entry],
        **more,
    }


WHOLE = {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted(CASES.glob("*.json"))
    if path.name != "res_video.json"
}
OTHERS: dict[str, object] = {
    "instances": coco({"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": []}),
    "detections": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}],
    "keypoints": [{"image_id": 1, "category_id": 1, "keypoints": [0, 0, 1], "score": 0.5}],
    "panoptic": coco({"image_id": 1, "file_name": "1.png", "segments_info": []}),
    "a table of nothing known": "time,place,kind\n1,2,x\n3,4,y\n",
    "VQA annotations": {"annotations": [{"question_id": 1, "image_id": 1, "question_type": "is", "answers": [{"answer": "yes"}]}]},
    "VQA questions": {"questions": [{"question_id": 1, "image_id": 1, "question": "Is it?"}]},
    "RefCOCO": [{"ref_id": 1, "image_id": 1, "ann_id": 2, "sentences": [{"raw": "the left one"}]}],
    "SQuAD": {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": []}]}]},
    "notebook": {"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": ["x"], "outputs": []}]},
    "package": {"name": "x", "version": "1.0", "dependencies": {"a": "1"}, "scripts": {"test": "x"}},
    "GeoJSON": {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {}, "properties": {}}]},
    "model config": {"architectures": ["X"], "hidden_size": 768, "model_type": "blip"},
    "tokenizer": {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}}, "added_tokens": [{"id": 0, "special": True}]},
    "scores": {"signature": {}, "corpus": {"SPICE": 0.5}, "items": [{"image_id": 1, "scores": {"SPICE": 0.5}}]},
    "scene graphs": [{"image_id": 1, "objects": [{"object_id": 1, "names": ["man"]}], "relationships": []}],
    "numbers": [[1, 2], [3, 4]],
    "strings": ["a dog", "a cat"],
    "a number": 7,
    "a text": "a dog",
    "true": True,
    "nested lists": [[[["a"]]]],
    "empty object": {},
    "empty list": [],
    "empty entries": [{}, {}],
    "nulls": [None, None],
    "tokens": [{"image_id": 1, "caption": [12, 45, 7]}],
    "token ids": {"1": [12, 45], "2": [3]},
    "vectors": {"1": [0.5, 0.25], "2": [0.1, 0.2]},
    "paths": [{"path": {"a": {"b": 1}}}],
    "truth values": {"1": True, "2": False},
    "only ids": [{"image_id": 1}, {"image_id": 2}],
    "only captions in words": [{"image_id": 1, "caption": {"words": 3}}],
    "two lists": {"first": [{"id": 1, "caption": "a"}], "second": [{"id": 1, "caption": "b"}]},
    "uneven lists": {"image_id": [1, 2], "caption": ["a"], "references": [["b"], ["c"]]},
    "failed batch": '{"custom_id": "1", "response": {"status_code": 400, "body": {"error": {"message": "no"}}}}\n',
    "HTML": "<!DOCTYPE html><html></html>",
    "LFS": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    "UTF-16": "image_id,caption\n1,a dog\n".encode("utf-16"),
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00",
    "pickle": b"\x80\x04\x95\x00\x00",
    "Latin-1": b'{"1": "caf\xe9"}',
    "objects one behind another": '{"id": 1}{"id": 2}',
    "several objects over lines": '{\n"id": 1\n}\n{\n"id": 2\n}\n',
    "Infinity": '{"1": Infinity}',
    "half a pair": '{"1": "\\udc00"}',
    "Python": "{'1': 'a dog'}",
    "words of Python": '{"1": None}',
    "a comma too many": '{"1": "a dog",}',
    "no comma": '{"1": "a dog" "2": "a cat"}',
    "a key twice deep": '[{"image_id": 1, "image_id": 2, "caption": "a"}]',
    **{f"{name}, cut off": text[: len(text) * 2 // 3] for name, text in WHOLE.items()},
}  # fmt: skip


def test_there_are_sixty_files_of_no_shape() -> None:
    assert len(OTHERS) >= 60


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("side", ["alone", "candidates", "references"])
def test_a_file_of_no_shape_is_one_message(name: str, side: str, write: Callable[[object], str]) -> None:
    path, other = write(OTHERS[name]), write('{"id": 1, "caption": "a dog"}\n{"id": 2, "caption": "a cat"}\n')
    asked = {"alone": (path, None), "candidates": (path, other), "references": (other, path)}[side]
    with pytest.raises(SpicegraphError) as caught:
        read_items(asked[0], references=asked[1])
    message = str(caught.value)
    assert message.startswith(path) or side == "references"
    assert len(message.splitlines()) <= 12
    for key in ("images", "annotations", "info", "results", "data"):
        assert f"image_id '{key}'" not in message


def test_a_file_of_another_task_is_named(write: Callable[[object], str]) -> None:
    for name, words in {
        "instances": "holds boxes of objects (COCO instances or detections), not captions",
        "RefCOCO": "holds referring expressions",
        "VQA annotations": "holds annotations of visual question answering",
        "notebook": "holds a Jupyter notebook",
        "scores": "holds scores, as spicegraph score writes them",
    }.items():
        with pytest.raises(InputError, match=re.escape(words)):
            references_of(write(OTHERS[name]))
    with pytest.raises(InputError) as caught:
        references_of(
            write({"videos": [{"video_id": "v1", "split": "test"}], "sentences": [{"video_id": "v1", "text_id": 1}]})
        )
    assert (
        "an object with the keys 'videos', 'sentences'; an entry of 'videos' has the keys 'video_id', 'split'"
        in str(caught.value)
    )
    assert "nearest is" in str(caught.value)


MIXED = """\
{"image_id": 1, "language": "fr", "caption": "Un chien court.", "references": ["Un chien."]}
{"image_id": 1, "language": "en", "caption": "A dog runs.", "references": ["A dog."]}
{"image_id": 2, "language": "English", "caption": "A cat.", "references": ["A cat sleeps."]}
"""


def test_a_column_says_which_captions_are_in_a_language(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text(MIXED)
    english, french = read_items(str(path)), read_items(str(path), caption_language="fr")
    assert [item.candidate for item in english] == ["A dog runs.", "A cat."]
    assert [item.candidate for item in french] == ["Un chien court."]
    assert english.notes == (f"{path}: 1 caption left out (1 fr)",)
    with pytest.raises(InputError, match=r"no caption is in the wanted language; there are fr, en, English"):
        read_items(str(path), caption_language="es")


def test_excel_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "results.xlsx", "w") as workbook:
        workbook.writestr("[Content_Types].xml", "<Types/>")
        workbook.writestr("xl/workbook.xml", "<workbook/>")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DataError, match=r"Excel files need pandas and openpyxl: pip install pandas openpyxl"):
        read_items(str(tmp_path / "results.xlsx"))


SAME = ("img1", "a dog runs"), ("img2", "two men ride")


@pytest.mark.parametrize(
    "lines",
    [
        "img1 a dog runs\nimg2 two men ride",
        "img1: a dog runs\nimg2: two men ride",
        'img1,"a dog runs"\nimg2,"two men ride"',
        "img1\ta dog runs\nimg2\ttwo men ride",
        "# made by hand\nimg1,a dog runs\nimg2,two men ride",
        "\nimg1\t0\ta dog runs\nimg2\t1\ttwo men ride",
    ],
)
def test_ids_in_front_of_captions_are_never_words_of_them(lines: str, write: Callable[[object], str]) -> None:
    references = write([{"id": "img2", "captions": ["the men"]}, {"id": "img1", "captions": ["the dog"]}])
    items = read_items(write(lines), references=references).items
    assert tuple((item.id, item.candidate) for item in items) == SAME
    assert [item.references for item in items] == [("the dog",), ("the men",)]


@pytest.mark.parametrize("lines", ["2nd base is free\n3rd base is taken", "10-year-old boys play\n3D print of a cat"])
def test_words_with_digits_are_words(lines: str, write: Callable[[object], str]) -> None:
    items = read_items(write(lines), references=write("a base\na cat")).items
    assert [item.candidate for item in items] == lines.splitlines()


def test_a_line_separator_within_a_line_is_no_end_of_it(write: Callable[[object], str]) -> None:
    items = read_items(write("i1\ta dog\u2028runs\ni2\ttwo men"), references=write("i1\ta dog\ni2\tmen")).items
    assert [item.candidate for item in items] == ["a dog\u2028runs", "two men"]


QUESTIONS: dict[str, tuple[object, str]] = {
    "words before a comma": ("apple,a dog runs\npear,two men ride\n", "every line begins with another word and a sep"),
    "two columns of texts": (
        "i1\ta dog runs\tthe dog runs\ni2\ttwo men\ttwo men ride\n",
        "has no header, and texts in the columns 2, 3: say which are which, such as --columns id=1,references=2+3",
    ),
    "an open quote": (
        'image_id\tcaption\n1\t"a dog\n2\ttwo men\n3\ta car"\n',
        "row 2: has a quote that is not closed: the next rows are in its cell",
    ),
    "an open quote, commas": (
        'image_id,n,caption\n1.jpg,1,"a dog\n2.jpg,1,two men\n3.jpg,1,a car"\n',
        "row 2: has a quote that is not closed",
    ),
    "ends of lines of old": ("image_id,caption\r1,a dog\r2,two men\r", "lines that end with a carriage return alone"),
    "text with such ends": ("a dog\rtwo men\r", "lines that end with a carriage return alone"),
    "UTF-16 without a mark": ('[{"image_id": 1, "caption": "a dog"}]'.encode("utf-16-le"), "is UTF-16"),
    "UTF-16 of the other kind": ('[{"image_id": 1, "caption": "a dog"}]'.encode("utf-16-be"), "is UTF-16"),
    "lists in a list": ([[1, "a dog"], [2, "a cat"]], "item 1: is [1, 'a dog'], expected an object"),
    "a number that is not exact": ('[{"image_id": 9007199254740993.0, "caption": "a"}]', "image_id: is a number"),
    "YAML": ("- image_id: 1\n  caption: a dog\n", "is YAML, which is not read"),
    "XML": ('<?xml version="1.0"?><a/>', "is XML, which is not read"),
    "subtitles": ("WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n", "is a file of subtitles"),
    "Python on lines": ("{'id': 1, 'caption': 'a'}\n{'id': 2, 'caption': 'b'}\n", "line 2: is not JSON (single quotes or"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_could_be_read_wrong_is_one_clear_message(name: str, write: Callable[[object], str]) -> None:
    content, words = QUESTIONS[name]
    assert words in message_of(write(content), write('{"id": 1, "caption": "a dog"}\n{"id": 2, "caption": "a cat"}\n'))


@pytest.mark.parametrize("above", ["\n", "# written by a program\n", "sep=,\n"])
def test_lines_above_a_header_are_none(above: str, write: Callable[[object], str]) -> None:
    table = write(f"{above}image_id,caption,references\n7,a dog,the dog\n")
    assert read_items(table).items == (Item(7, "a dog", ("the dog",)),)


@pytest.mark.parametrize("form", [*_IDS, *(shape.lines for shape in SHAPES if shape.lines)])
@pytest.mark.parametrize("part", ["1", "#1", "a-1", "a.", "#a"])
def test_long_lines_take_no_time_in_the_square(form: str, part: str) -> None:
    assert re.fullmatch(form, part * 1_000_000) is None  # 10 ms; a form that tries every pair of places takes days


def test_what_datasets_leaves_in_a_folder_is_no_part_of_the_data(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    table = pa.table({"id": ["1", "2"], "caption": ["a dog", "a cat"], "references": [["the dog"], ["the cat"]]})
    for name in ("data-00000-of-00001.arrow", "cache-0123456789abcdef.arrow", "tmpabc.arrow"):
        with pa.ipc.new_stream(str(tmp_path / name), table.schema) as stream:
            stream.write_table(table)
    assert [item.candidate for item in read_items(str(tmp_path)).items] == ["a dog", "a cat"]


class Sheet:
    def __init__(self, *rows: dict[str, object]) -> None:
        self.rows = rows

    def to_dict(self, kind: str) -> list[dict[str, object]]:
        assert kind == "records"
        return [*self.rows]


def test_rows_in_several_sheets_are_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "results.xlsx", "w") as workbook:
        workbook.writestr("xl/workbook.xml", "<workbook/>")
    row = {"id": 1.0, "candidate": "a dog", "references": "the dog", "note": float("nan")}
    sheets = {"first": Sheet(row), "empty": Sheet()}
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(read_excel=lambda *_, **__: sheets))
    assert read_items(str(tmp_path / "results.xlsx")).items == (Item(1, "a dog", ("the dog",)),)
    sheets["second"] = Sheet(row)
    with pytest.raises(InputError, match=r"has rows in several sheets \('first', 'second'\), expected one"):
        read_items(str(tmp_path / "results.xlsx"))


def inspect_log(path: Path, samples: list[object], **more: str) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("_journal/start.json", "{}")
        for number, sample in enumerate(samples, start=1):
            log.writestr(
                f"samples/{number}_epoch_1.json", sample if isinstance(sample, str) else json.dumps(sample, indent=2)
            )
        for name in ("header", "summaries", "reductions"):
            log.writestr(f"{name}.json", "{}")
        for name, text in more.items():
            log.writestr(name, text)
    return str(path)


def test_a_packed_log_of_inspect_has_the_samples_of_an_open_one(tmp_path: Path) -> None:
    samples = json.loads((CASES / "inspect.json").read_text(encoding="utf-8"))["samples"]
    for sample in samples:
        sample |= {"events": ["x" * 100_000], "messages": [{"role": "assistant", "content": "not this"}]}
    dataset = read_items(inspect_log(tmp_path / "log.eval", samples))
    assert dataset.items == read_items(str(CASES / "inspect.json")).items
    assert dataset.format == "Inspect samples (zip)"
    many = [{**samples[0], "id": number} for number in range(300)]  # more files than another zip may hold
    assert len(read_items(inspect_log(tmp_path / "many.eval", many)).items) == 300


def test_a_wrong_sample_of_inspect_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"samples/1_epoch_1\.json: is not a sample of Inspect"):
        read_items(inspect_log(tmp_path / "log.eval", ["[1"]))
    with pytest.raises(LimitError, match="unpacks to more than 1,000 bytes"):
        read_items(inspect_log(tmp_path / "long.eval", [{"id": "x" * 900}] * 2), limits=ReadLimits(content=1000))


@pytest.mark.parametrize("other", ["pred_class", "gen_categories", "predicted_tags", "hyp_emotion"])
def test_what_a_model_says_besides_captions_is_no_caption(other: str, write: Callable[[object], str]) -> None:
    results = write("".join(json.dumps({"id": n, "caption": f"dog {n}", other: "animal"}) + "\n" for n in (1, 2)))
    items = read_items(results, references=write({"1": ["a dog"], "2": ["the dog"]})).items
    assert [item.candidate for item in items] == ["dog 1", "dog 2"]
