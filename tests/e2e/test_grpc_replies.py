"""Replies to the Python client: read as results of the library are, with its warnings, and refused in one line."""

from __future__ import annotations

import pickle

import pytest

from spicegraph import Client, ServiceError, score

pytestmark = pytest.mark.model


def test_warnings_of_the_library_come_with_the_reply(client: Client) -> None:
    alone = client.score([(1, "a dog", ["a dog"])], metrics=["cider", "bleu"])
    assert alone["CIDEr"] is None
    assert alone.corpus.warnings == ("CIDEr: undefined for a single item",)
    copies = client.score([(n, f"a dog with {n} balls", [f"a dog with {n} balls"]) for n in range(5)])
    assert "5 of 5 candidates equal one of their own references" in copies.corpus.warnings[0]
    (note,) = client.score([(1, "ein Hund auf der Wiese", ["a dog"])], metrics=["rouge"]).corpus.warnings
    assert note.startswith("items: 1 of 1 candidate does not seem to be English")
    assert not client.score([(1, "a dog on a meadow", ["a dog"])], metrics=["rouge"]).corpus.warnings


def test_a_reply_reads_like_a_result(client: Client) -> None:
    items = [(1, "A red dog.", ["A red dog.", "A dog."]), (2, "a cat", ["a dog"])]
    reply, result = client.score(items, metrics=["spice", "bleu"]), score(items, ["spice", "bleu"])
    assert (len(reply), reply["SPICE"], reply.items[0].scores["SPICE"]) == (2, result["SPICE"], 1.0)
    assert reply.corpus["SPICE_Size"] is None
    assert reply.items[1]["SPICE_Color"] is None
    assert repr(reply).removeprefix("Reply") == repr(result).removeprefix("Result")
    assert [row["scores"]["SPICE"] for row in reply.to_dict()["items"]] == [1.0, 0.0]
    assert reply.to_dict()["signature"].keys() == {"spice", "bleu"}
    assert reply.to_frame().reset_index(drop=True).equals(result.to_frame().reset_index(drop=True))
    with pytest.raises(KeyError, match="there is no score 'CIDEr' here; the scores are SPICE, SPICE_"):
        reply["CIDEr"]


def test_an_error_is_one_line(client: Client) -> None:
    with pytest.raises(ServiceError) as caught:
        client.score([(1, "a dog", []), (1, "", ["a dog"])])
    error = pickle.loads(pickle.dumps(caught.value))
    assert [field for field, _ in error.fields] == ["items[0].references", "items[1].id"]
    assert error.reason == "INVALID_FIELDS"
    assert error.request_id
    assert str(error).startswith("INVALID_ARGUMENT: items[0].references: ")
    assert str(error).endswith(f"(and 1 more) (request {error.request_id})")
    with Client("127.0.0.1:1", timeout_s=0.5) as nowhere, pytest.raises(ServiceError) as caught:
        nowhere.server_info()
    assert "\n" not in str(caught.value)
    assert (caught.value.fields, caught.value.reason, caught.value.request_id) == ((), "", "")
