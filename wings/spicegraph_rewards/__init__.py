"""Rewards for training, and what guards them; a wing. A name is loaded when it is first asked for.

:class:`RewardModel` rewards captions of images whose references are known; :mod:`spicegraph_rewards.trainers` has the
call shapes of training libraries, ``servicer`` and ``dialects`` serve rewards over gRPC and by URL, and ``client`` asks
for them. ``fluency`` is the detector of broken captions, with the metrics ``fluency`` and ``spider-fl``.
"""

from spicegraph_parser.runtime import exports

__all__, __dir__, __getattr__ = exports(__name__, __file__)
