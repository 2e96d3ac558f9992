"""One property for all forms of files: items that are written in any of them are read as the same items."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_scorer import Item
from spicegraph_scorer.readers import read_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Items: TypeAlias = "Sequence[Item]"
Files: TypeAlias = "tuple[object, object]"  # what has the candidates, or all, and what has the references, or None

# Captions of any characters that one may have; edges are no spaces, which tables and lines do not keep.
TEXTS: Final = (
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20)
    .map(lambda text: f"a {text} runs")
    .filter(lambda text: "|" not in text)  # a table's header of words, if all lines had it
)
WORDS: Final = st.from_regex(r"(?:img|v_|a/b-)[a-z_]{0,6}[0-9]{1,3}", fullmatch=True)
REFERENCES: Final = st.lists(TEXTS, min_size=1, max_size=3).map(tuple)


def items_with(ids: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Item]]:
    return st.lists(st.builds(Item, ids, TEXTS, REFERENCES), min_size=2, max_size=5, unique_by=lambda item: item.id)


ITEMS: Final = items_with(st.integers(0, 10**9)) | items_with(WORDS)


def rows(items: Items, candidate: str = "candidate", image: str = "id", references: str = "references") -> list[Any]:
    return [{image: i.id, candidate: i.candidate, references: list(i.references)} for i in items]


def results(items: Items, image: str = "image_id", caption: str = "caption") -> list[Any]:
    return [{image: item.id, caption: item.candidate} for item in items]


def lines(values: Sequence[object]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def table(items: Items, delimiter: str) -> str:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(("id", "candidate", "references"))
    writer.writerows((item.id, item.candidate, json.dumps(item.references)) for item in items)
    return file.getvalue()


def numbered(items: Items) -> str:
    width = max(len(item.references) for item in items)
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(("id", "candidate", *(f"reference_{n}" for n in range(width))))
    writer.writerows(
        (item.id, item.candidate, *item.references, *[""] * (width - len(item.references))) for item in items
    )
    return file.getvalue()


def coco(items: Items) -> object:
    texts = [(item.id, text) for item in items for text in item.references]
    return {
        "images": [{"id": item.id} for item in items],
        "annotations": [{"id": n, "image_id": i, "caption": text} for n, (i, text) in enumerate(texts)],
    }


def karpathy(items: Items) -> object:
    images = [(f"{item.id}.jpg", [{"raw": text} for text in item.references]) for item in items]
    return {"images": [{"filename": n, "split": "test", "sentences": s} for n, s in images], "dataset": "x"}


def tokens(items: Items) -> str:
    return "".join(f"{i.id}#{n}\t{text}\n" for i in items for n, text in enumerate(i.references))


def arrow(items: Items) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows(items)), file)
    return file.getvalue()


def zipped(items: Items) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("items.jsonl", lines(rows(items)))
    return file.getvalue()


FORMS: Final[dict[str, Callable[[Items], Files]]] = {
    "JSON Lines": lambda items: (lines(rows(items)), None),
    "JSON Lines of Windows": lambda items: (lines(rows(items)).replace("\n", "\r\n"), None),
    "JSON Lines with a mark": lambda items: (b"\xef\xbb\xbf" + lines(rows(items)).encode(), None),
    "JSON list": lambda items: (rows(items), None),
    "indented JSON": lambda items: (json.dumps(rows(items), indent=2, ensure_ascii=False), None),
    "prediction and answers": lambda items: (lines(rows(items, "prediction", "question_id", "answers")), None),
    "SPICE input": lambda items: (rows(items, "test", "image_id", "refs"), None),
    "within an object": lambda items: ({"info": {"year": 1}, "results": rows(items)}, None),
    "lists side by side": lambda items: (
        {
            "id": [item.id for item in items],
            "predictions": [item.candidate for item in items],
            "references": [item.references for item in items],
        },
        None,
    ),
    "table as JSON": lambda items: (
        {"columns": ["id", "candidate", "references"], "data": [[i.id, i.candidate, i.references] for i in items]},
        None,
    ),
    "CSV": lambda items: (table(items, ","), None),
    "TSV": lambda items: (table(items, "\t"), None),
    "CSV with semicolons": lambda items: (table(items, ";"), None),
    "a column for each reference": lambda items: (numbered(items), None),
    "Parquet": lambda items: (arrow(items), None),
    "zip": lambda items: (zipped(items), None),
    "gzip": lambda items: (gzip.compress(lines(rows(items)).encode()), None),
    "COCO": lambda items: (results(items), coco(items)),
    "by id": lambda items: ({i.id: i.candidate for i in items}, {i.id: i.references for i in items}),
    "the toolkit's": lambda items: (
        {i.id: [{"caption": i.candidate}] for i in items},
        {i.id: [{"caption": text} for text in i.references] for i in items},
    ),
    "Karpathy's form": lambda items: (
        [{"image_id": f"{i.id}.jpg", "caption": i.candidate} for i in items],
        karpathy(items),
    ),
    "Flickr tokens": lambda items: (results(items), tokens(items)),
    "ids before tabs": lambda items: ("".join(f"{i.id}\t{i.candidate}\n" for i in items), lines(rows(items, "x"))),
    "plain text": lambda items: (
        "".join(f"{item.candidate}\n" for item in items),
        "".join(f"{item.references[0]}\n" for item in items),
    ),
}


@pytest.mark.parametrize("name", FORMS)
@given(items=ITEMS)
def test_items_come_back_from_every_form(name: str, items: list[Item]) -> None:
    if name == "Parquet":
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, content in enumerate(filter(lambda each: each is not None, FORMS[name](items))):
            path = Path(folder, f"file{number}")
            data = content if isinstance(content, str | bytes) else json.dumps(content)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
            paths.append(str(path))
        found = read_items(paths[0], references=paths[1:] or None, control_tokens="keep").items
    expected = [(str(item.id), item.candidate, item.references) for item in items]
    if name == "plain text":
        expected = [(str(n), item.candidate, item.references[:1]) for n, item in enumerate(items, start=1)]
    read = [(str(item.id).removesuffix(".jpg"), item.candidate, item.references) for item in found]
    assert read == expected
