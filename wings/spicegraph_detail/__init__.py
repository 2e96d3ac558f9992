"""Descriptions of many sentences: how much of one holds, and how much of its references it says; a wing.

``claims`` and ``metric`` are the metric ``detail``, ``capture`` is CAPTURE, ``differences`` finds what both sides do
not agree on, ``servicer`` and ``dialects`` serve them over gRPC and by URL, and ``client`` asks for them. A name is
loaded when it is first asked for.
"""

from spicegraph_parser.runtime import exports

__all__, __dir__, __getattr__ = exports(__name__, __file__)
