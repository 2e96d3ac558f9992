"""Captions to scene graphs: dependency parses, rules, WordNet concepts. A name is loaded when it is first asked for."""

from spicegraph_parser.runtime import exports

__all__, __dir__, __getattr__ = exports(__name__, __file__)
