"""The tagged words of a caption as stores and caches keep them, as MessagePack."""

from __future__ import annotations

import msgspec

from spicegraph_scorer.studies.agreement.words import Tagged

_encoder = msgspec.msgpack.Encoder()
_words = msgspec.msgpack.Decoder(list[Tagged])


def encode_words(words: frozenset[Tagged]) -> bytes:
    """Return the bytes that the store keeps; equal words give equal bytes."""
    return _encoder.encode(sorted(words))


def decode_words(data: bytes) -> frozenset[Tagged]:
    """Return stored words.

    Raises:
        msgspec.DecodeError: the bytes are something else (a store that somebody else wrote to).
    """
    return frozenset(_words.decode(data))
