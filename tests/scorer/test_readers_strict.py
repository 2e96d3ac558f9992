"""Files that were read as something else: each is read right, or refused with the option that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer import score
from spicegraph_scorer.readers import parse_columns, read_items
from spicegraph_scorer.readers.phrases import phrase_notes
from spicegraph_scorer.readers.printed import parse_printed
from spicegraph_scorer.readers.read import read_captions, read_references

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = Path(__file__).parents[1] / "cases" / "reading"


@pytest.mark.parametrize(
    ("name", "references", "wanted"),
    [
        ("strlist.jsonl", None, [1.0, 1.0]),
        ("lmms_samples_coco_cap.jsonl", None, [0.780, 0.924, 0.859]),
        ("M_COCO_VAL.json", None, [0.780, 0.924, 0.936]),
        ("M_COCO_VAL.tsv", None, [0.780, 0.924, 0.936]),
        ("np.csv", None, [0.780, 0.924, 0.859]),
        ("np.json", None, [0.780, 0.924, 0.859]),
        ("p6.csv", "p6r.csv", [0.716, 0.785, 0.557, 0.622, 0.785, 0.293]),
        ("oc_c.tsv", "oc_r.tsv", [0.716, 0.785, 0.557, 0.622, 0.785, 0.293]),
        ("git_pred.tsv", "test.caption.tsv", [1.0, 1.0]),
        ("swift.jsonl", None, [1.0, 1.0]),
    ],
)
def test_lists_in_texts_and_tables_without_names_are_read(
    name: str, references: str | None, wanted: list[float]
) -> None:
    beside = str(CASES / references) if references else None
    items = read_items(str(CASES / name), references=beside)
    found = [scores["ROUGE_L"] for scores in score(items, "rouge").iter_scores()]
    assert found == pytest.approx(wanted, abs=6e-4)


@pytest.mark.parametrize(
    "text",
    [
        '["a dog", "the dog\'s bed"]',
        "['a dog', \"the dog's bed\"]",
        "['a dog' \"the dog's bed\"]",
        "['a dog'\n \"the dog's bed\"]",
        "('a dog', \"the dog's bed\")",
        "array(['a dog', \"the dog's bed\"], dtype=object)",
    ],
)
def test_lists_as_programs_print_them(text: str) -> None:
    assert parse_printed(text) == ["a dog", "the dog's bed"]


@pytest.mark.parametrize("text", ["[music] a dog", "( man , ride , horse )", "(left) a man", "array", "['a' ... 'b']"])
def test_texts_that_print_no_list_stay(text: str) -> None:
    assert parse_printed(text) is text


def test_boxes_and_tokens_are_refused_and_stripped() -> None:
    for name in ("boxes.jsonl", "glamm.jsonl"):
        with pytest.raises(InputError, match="control-tokens strip"):
            read_items(str(CASES / name))
    clean = [item.candidate for item in read_items(str(CASES / "boxes_clean.jsonl"))]
    for name in ("boxes.jsonl", "glamm.jsonl"):
        assert [item.candidate for item in read_items(str(CASES / name), control_tokens="strip")] == clean


def test_failures_are_marks_faults_or_warnings(write: Callable[[object], str]) -> None:
    lines = (CASES / "failures.jsonl").read_text(encoding="utf-8").splitlines()
    with pytest.raises(InputError, match="a printed list, not one caption"):
        read_items(write(lines[6]))
    warned = "\n".join(phrase_notes("x", read_items(write("\n".join(lines[:2])), control_tokens="keep").items))
    assert "2 of 2 candidates say that a program failed" in warned
    for line in lines[2:6]:
        with pytest.raises(InputError, match="what models leave behind"):
            read_items(write(line))
        (item,) = read_items(write(line), control_tokens="strip")
        assert (item.candidate,) == item.references


def test_entities_are_decoded_with_a_note(write: Callable[[object], str]) -> None:
    path = write([{"id": 1, "candidate": "the dog&apos;s bed", "references": ["the dog's bed"]}])
    read = read_items(path)
    assert [item.candidate for item in read] == ["the dog's bed"]


@pytest.mark.parametrize("name", ["flat.jsonl", "v2s.csv"])
def test_parts_of_videos_are_no_alternatives(name: str) -> None:
    with pytest.raises(InputError, match="spicegraph dense"):
        read_references(str(CASES / name))


def test_captions_of_foil_that_are_false_are_left_out(write: Callable[[object], str]) -> None:
    path = write([{"image_id": 1, "caption": "A dog on a sofa."}])
    read = read_items(path, references=str(CASES / "foil.json"))
    assert [item.references for item in read] == [("A dog on a sofa.",)]
    assert "1 caption left out (1 foil)" in read.notes[0]


def test_parse_reads_captions_with_their_ids() -> None:
    wanted = ([1, 2, 1], ["a dog", "a cat", "a dog"])
    assert read_captions(str(CASES / "ddup0.json")) == wanted
    assert read_captions(str(CASES / "pretty.json")) == wanted
    assert read_captions(str(CASES / "tok.txt")) == (["1.jpg", "1.jpg"], ["A dog runs.", "A brown dog."])


@pytest.mark.parametrize(
    "text",
    [
        "a dog\n{'image_id': 1}\n",
        "a dog\n12,a cat\n",
        "a dog\nimg\ta cat\n",
        '"a dog","the dog"\n"a cat","the cat"\n',
        "x|a dog|the dog\ny|a cat|the cat\n",
        "caption\na dog\na cat\n",
        "name\tfoo\n1.jpg\ta dog runs\n",
    ],
)
def test_what_looks_like_records_is_no_plain_text_unless_users_insist(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="--delimiter none"):
        read_captions(str(path))
    assert read_captions(str(path), columns=parse_columns(None, delimiter="none"))[1] == text.splitlines()


def test_a_name_that_is_not_there_is_refused_in_every_format(write: Callable[[object], str]) -> None:
    rows = [{"image_id": 1, "caption": "a dog"}]
    beside = write({"annotations": [{"image_id": 1, "caption": "a dog"}]})
    for field in ("id", "candidate"):
        with pytest.raises(InputError, match="has no column 'typo'"):
            read_items(write(rows), references=beside, columns=parse_columns(f"{field}=typo"))


def test_one_order_of_names_in_every_format(write: Callable[[object], str]) -> None:
    row = {"image_id": 1, "caption": "a dog", "prediction": "a cat"}
    lines = '{"image_id": 1, "caption": "a dog", "prediction": "a cat"}\n' * 1
    table = "image_id,caption,prediction\n1,a dog,a cat\n"
    for content in ([row], lines, table):
        assert [(item.candidate, item.references) for item in read_items(write(content))] == [("a cat", ("a dog",))]
