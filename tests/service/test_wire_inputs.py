"""What the wire and the clients take for captions: what the library takes; a string is no list of its letters."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer import Item
from spicegraph_service.client import AsyncClient, Client, item, values_of
from spicegraph_service.client.evaluation import upload_messages
from spicegraph_service.client.inputs import captions, items

Row = namedtuple("Row", "image_id caption refs")
EXPECTED = scores_pb2.Item(id="7", candidate="a dog", references=["a dog", "the dog"])
TEXTS = ["a dog", "the dog"]


@pytest.mark.parametrize(
    "given",
    [
        EXPECTED,
        Item(7, "a dog", tuple(TEXTS)),
        (7, "a dog", TEXTS),
        [7, "a dog", tuple(TEXTS)],
        (np.int64(7), np.str_("a dog"), np.array(TEXTS)),
        {"image_id": 7, "caption": "a dog", "references": TEXTS},
        {"id": "7", "candidate": "a dog", "refs": iter(TEXTS)},
        Row(7, "a dog", TEXTS),
        SimpleNamespace(id=7, candidate="a dog", references=TEXTS),
    ],
    ids=lambda given: type(given).__name__,
)
def test_clients_read_what_the_library_reads(given: object) -> None:
    assert list(items([given])) == [EXPECTED]


def test_clients_read_tables_and_pairs() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": [7], "candidate": ["a dog"], "references": [TEXTS]})
    assert list(items(table)) == [EXPECTED]
    assert [each.id for each in items([("a dog", TEXTS), ("a cat", TEXTS)])] == ["0", "1"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, "dog", "dog"), r"items\[0\]\.references: expected a list of strings, got the string 'dog'"),
        ((1, None, ["dog"]), r"items\[0\]\.candidate: expected a string, got None"),
        ((1, float("nan"), ["dog"]), r"items\[0\]\.candidate: expected a string, got the float nan"),
        ((1, "dog", None), r"items\[0\]\.references: expected a list of strings, got None"),
        ((1, "dog", {"dog"}), r"items\[0\]\.references: expected a list of strings, got the set"),
        ((1, "dog", ["dog", 3]), r"items\[0\]\.references\[1\]: expected a string, got the int 3"),
        ((None, "dog", ["dog"]), r"items\[0\]\.id: expected a string or an integer, got None"),
        ((True, "dog", ["dog"]), r"items\[0\]\.id: expected a string or an integer, got the bool True"),
        ({"id": 1, "text": "dog"}, r"items\[0\]: has no 'candidate' among its keys: id, text"),
        ("dog", r"items\[0\]: expected an item, or \(id, candidate, references\), got the string 'dog'"),
    ],
)
def test_clients_refuse_the_rest_before_they_send(given: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        list(items([given]))
    with Client("localhost:1") as client, pytest.raises(TypeError, match=message):
        client.score([given])  # no server is asked


@pytest.mark.parametrize("given", ["dog", None, {"1": "dog"}, 7, EXPECTED])
def test_items_are_a_list(given: object) -> None:
    with pytest.raises(TypeError, match="items: expected a list of items, got"):
        list(items(given))


def test_a_string_is_no_list_of_captions() -> None:
    with pytest.raises(TypeError, match="references: expected a list of strings, got the string 'dog'"):
        item(1, "dog", "dog")
    with (
        pytest.raises(TypeError, match="captions: expected a list of strings, got the string 'dog'"),
        Client("x:1") as c,
    ):
        c.parse("dog")
    with pytest.raises(TypeError, match=r"entries\['img'\]: expected a list of strings, got the string 'a dog'"):
        list(upload_messages({"img": "a dog"}, "", 0, 0))  # type: ignore[arg-type]
    assert captions(np.array(["a", "b"]), "captions") == ["a", "b"]
    assert item(np.int64(7), "a dog", tuple(TEXTS)) == EXPECTED


async def _asynchronous(given: object) -> None:
    client = AsyncClient("localhost:1")
    try:
        await client.score([given])
    finally:
        await client.close()


def test_the_asynchronous_client_refuses_the_same() -> None:

    with pytest.raises(TypeError, match=r"items\[0\]\.references: expected a list of strings"):
        asyncio.run(_asynchronous((1, "dog", "dog")))


def test_undefined_scores_are_none() -> None:
    scores = [scores_pb2.Score(name="SPICE", value=0.5), scores_pb2.Score(name="SPICE_Color")]
    assert values_of(scores) == {"SPICE": 0.5, "SPICE_Color": None}
