"""The pipelines that this wing registers in ``spicegraph.pipelines``."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from spicegraph_parser.pipelines import (
    SCENE,
    CaptionPipeline,
    FrontEnd,
    RuleFrontEnd,
    files_digest,
    load_pipeline,
    load_runtime,
)
from spicegraph_scenes import SCENE_VERSION, SCENE_WEIGHTS
from spicegraph_scenes.discourse import LONG, resolve_across
from spicegraph_scenes.parser import SceneParser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_parser.spice.parse import Caption


def load_scenes(name: str) -> CaptionPipeline:
    """Load the scene parser, on the runtime of its name's ending."""
    signature = _signature() + name.removeprefix(SCENE)
    return CaptionPipeline(SceneParser(SCENE_WEIGHTS, *load_runtime(name)), signature, card=SCENE_WEIGHTS / "README.md")


@cache
def _signature() -> str:
    return f"{SCENE}-{SCENE_VERSION}-{files_digest(SCENE_WEIGHTS)}"


def load_long(name: str) -> CaptionPipeline:
    """Load the pipeline before the ending, with pronouns resolved across sentences."""
    within = load_pipeline(name.removesuffix(LONG))
    across = RuleFrontEnd(partial(_parse_across, within.front_end))
    return CaptionPipeline(across, within.signature + LONG, language=within.language)


def _parse_across(front_end: FrontEnd, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
    return map(resolve_across, front_end.parse(texts, batch_size=batch_size))
