"""Scene graphs as people draw them, of captions of any length: the graph style ``scene``.

SPICE's own graphs (the style ``spice``) come from dependency rules. These come from a network that was trained on
graphs drawn by people, sentence by sentence, and from rules over the sentences of a description.
"""

from spicegraph_parser.scenes.parser import SCENE, SCENE_VERSION, SCENE_WEIGHTS, SceneParser
from spicegraph_parser.scenes.visible import CERTAINTY, Standing

__all__ = ["CERTAINTY", "SCENE", "SCENE_VERSION", "SCENE_WEIGHTS", "SceneParser", "Standing"]
