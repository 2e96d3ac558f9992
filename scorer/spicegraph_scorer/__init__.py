"""Scores of image captions: SPICE with its categories and evidence, and the COCO n-gram metrics."""

from spicegraph_parser.runtime import exports

__all__, __dir__, __getattr__ = exports(__name__, __file__)
