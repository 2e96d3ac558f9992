"""What ``score`` writes an item at a time is what writing everything at once would give."""

import csv
import io
import json

import msgspec
import pytest

from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer import Item, score
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import METRICS
from spicegraph_scorer.metrics.spice.metric import jar_output
from spicegraph_service.output import results
from spicegraph_service.output.results import RESULT_FORMATS, ResultFormat, parquet_bytes
from spicegraph_service.output.terminal import write_text


class Words:
    """Facts without a parser: every word is an object."""

    signature = "words"

    def facts(self, texts):
        return (tuple(Fact((word,), "objects", ()) for word in text.split()) for text in texts)


ITEMS = [
    Item('a "quoted"\nid', "dog cat", ("dog [] cat", "{}")),
    Item("b,c", "red bus", ("red bus stop",)),
    Item("d", "!", ("tree",)),
]
RESULTS = {
    "all items": score(ITEMS, ("spice", "spice-exact", "bleu", "cider"), pipeline=Words()),
    "one item": score(ITEMS[:1], ("spice", "rouge"), pipeline=Words()),
    "intervals": score(ITEMS, ("spice", "bleu"), pipeline=Words(), confidence=Resampling(draws=20)),
    "explained": score(
        ITEMS[1:], ("spice", *(name for name in METRICS if name == "spice-g")), pipeline=Words(), explain=True
    ),
}
EACH = pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)


def text(result, form):
    return "".join(RESULT_FORMATS[form](result))


def pretty(value):
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


@EACH
def test_json_is_that_of_the_whole_value(result):
    assert text(result, ResultFormat.JSON) == pretty(result.to_dict())
    assert text(result, ResultFormat.SPICE) == pretty(jar_output(result))


@EACH
def test_rows_are_the_items(result):
    rows = result.to_dict()["items"]
    assert list(result.iter_rows()) == result.item_rows() == rows
    assert list(map(json.loads, text(result, ResultFormat.JSONL).splitlines())) == json.loads(json.dumps(rows))
    table = list(csv.DictReader(io.StringIO(text(result, ResultFormat.CSV), newline="")))
    assert [row["image_id"] for row in table] == [item.id for item in result.items]
    assert [float(row["SPICE_categories_All_f"]) for row in table] == [
        row["scores"]["SPICE_categories"]["All"]["f"] for row in rows
    ]


@EACH
def test_a_table_of_columns_does_not_depend_on_how_many_rows_are_turned_at_a_time(result, monkeypatch):
    whole = parquet_bytes(result)
    monkeypatch.setattr(results, "_ROWS", 2)
    assert parquet_bytes(result) == whole


def test_a_file_is_not_touched_where_a_piece_can_not_be_made(tmp_path):
    """Pieces may be written by then: they are gone, and what stood there before is still there."""
    target = tmp_path / "scores.json"
    target.write_text("before")

    def pieces():
        yield "a" * 1_000_000
        raise RuntimeError("no second piece")

    with pytest.raises(RuntimeError, match="no second piece"):
        write_text(pieces(), str(target))
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]
