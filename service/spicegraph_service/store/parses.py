"""A parse as every store and cache keeps it: the facts and the words' places, as MessagePack."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from spicegraph_parser.rules import Fact  # noqa: TC001 (msgspec reads the annotation)

if TYPE_CHECKING:
    from spicegraph_parser.extract import ParsedCaption

_DECODED_PARSES = 20_000  # parses that a process keeps decoded: the references of some 4,000 images


class StoredParse(NamedTuple):
    """A parse as the store keeps it: the caption's facts, and for each of its words the place in the text.

    The facts of loose words stand behind the others.
    """

    facts: tuple[Fact, ...]
    spans: tuple[tuple[int, int], ...]


def stored_parse(caption: ParsedCaption) -> StoredParse:
    """Return what the store keeps of a parsed caption."""
    return StoredParse(caption.every_fact, tuple([span for parse in caption.sentences for span in parse.spans]))


_encoder = msgspec.msgpack.Encoder()
_parses = msgspec.msgpack.Decoder(StoredParse)


def encode_parse(parse: StoredParse) -> bytes:
    """Return the bytes that the store keeps."""
    return _encoder.encode(parse)


def unpack_parse(data: bytes) -> StoredParse:
    """Return a stored parse.

    Raises:
        msgspec.DecodeError: the bytes are not a parse (a store that somebody else wrote to).
    """
    return _parses.decode(data)


@lru_cache(maxsize=_DECODED_PARSES)
def decode_parse(data: bytes) -> StoredParse:
    """Return a stored parse as :func:`unpack_parse` does, and remember it: a server meets references again."""
    return unpack_parse(data)
