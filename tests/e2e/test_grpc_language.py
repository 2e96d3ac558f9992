"""The language of a request: it must be one that is known, and the one that the server's pipeline reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_service.client import item

if TYPE_CHECKING:
    from spicegraph_service.client import Client

pytestmark = pytest.mark.model
ITEMS = [item("1", "a brown dog", ["the brown dog"])]


def test_english_is_what_the_server_reads(client: Client) -> None:
    """It changes nothing to say so."""
    reply = client.score(ITEMS, language="en")
    assert reply.items == client.score(ITEMS).items


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"language": "tlh"}, "language: 'tlh' is not known; known are cs, de, en"),
        ({"reference_language": "tlh"}, "reference_language: 'tlh' is not known"),
        ({"language": "fr"}, "language fr: the pipeline en_caption"),
        ({"language": "fr", "metrics": ["spice-g"]}, "spice-g: is made for English, not for fr"),
        ({"reference_language": "fr"}, "reference_language fr: references in another language than candidates are"),
    ],
)
def test_other_languages_are_refused_with_the_reason(client: Client, options: dict[str, str], reason: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.score(ITEMS, **options)  # type: ignore[arg-type]
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert reason in (caught.value.details() or "")
