"""Graded scores and what is built on them: SPICE-G, descriptions, differences and rewards; a wing.

``spice_g`` is the metric SPICE-G, and ``chair`` CHAIR. ``detail`` has the scores of descriptions, CAPTURE and the
differences from references; ``rewards`` has rewards for training, with the functions that training libraries call
(:mod:`spicegraph_graded.rewards.trainers`); ``fluency`` is the detector of broken captions, with the metrics
``fluency`` and ``spider-fl``. A name is loaded when it is first used.
"""

from spicegraph_parser.runtime import exports

__all__, __dir__, __getattr__ = exports(__name__, __file__)
