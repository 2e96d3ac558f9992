"""Scene graphs as people draw them, of captions of any length: the graph style ``scene``.

SPICE's own graphs (the style ``spice``) come from dependency rules. These come from a network that was trained on
graphs drawn by people, sentence by sentence, and from rules over the sentences of a description.
"""

from pathlib import Path
from typing import Final

__all__ = ["SCENE_VERSION", "SCENE_WEIGHTS"]

SCENE_VERSION: Final = "1.24.0"
SCENE_WEIGHTS: Final = Path(__file__).with_name("weights")  # The folder of the bundled network.
