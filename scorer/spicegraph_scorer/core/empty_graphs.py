"""Captions that have words but no graph, which SPICE scores 0 whatever they say: how many, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import Item, ItemId

_EXAMPLES: Final = 3
_SHOWN: Final = 60
_SCENES: Final = "scene-"  # How the signature of the parser begins for which there is no other to try.
REMEDY: Final = (
    "scene graphs find more in such captions: --graph-style scene "
    '(in Python pipeline="scene", of a server GRAPH_STYLE_SCENE)'
)


def is_of_scenes(pipeline: str) -> bool:
    """Say whether graphs come from the scene parser, by the pipeline's signature."""
    return pipeline.startswith(_SCENES)


@dataclass(frozen=True, slots=True)
class EmptyGraphs:
    """Items whose candidate, or whose references all, have words but an empty graph."""

    items: int = 0  # of all
    candidates: int = 0
    references: int = 0
    examples: tuple[tuple[ItemId, str], ...] = ()  # ids and candidates of the first three
    scenes: bool = False  # they are what the scene parser gives

    @classmethod
    def of(cls, items: Sequence[Item], found: Iterable[tuple[bool, bool]], pipeline: str) -> EmptyGraphs:
        """Count the items; ``found`` says of each whether its candidate and its references have an empty graph."""
        candidates: list[Item] = []
        references = 0
        for item, (candidate, of_references) in zip(items, found, strict=True):
            references += of_references
            if candidate and item.candidate.strip():
                candidates.append(item)
        examples = tuple((item.id, item.candidate) for item in candidates[:_EXAMPLES])
        return cls(len(items), len(candidates), references, examples, is_of_scenes(pipeline))

    @classmethod
    def first(
        cls, items: Sequence[Item], parts: Iterable[tuple[Iterable[tuple[bool, bool]], Mapping[str, str]]]
    ) -> EmptyGraphs:
        """Return those of the first metric that finds any; a part is what it found, and its signature."""
        every = (cls.of(items, found, signature.get("pipeline", "")) for found, signature in parts)
        return next(filter(None, every), cls())

    def __bool__(self) -> bool:
        return bool(self.candidates or self.references)

    def notes(self) -> Iterator[str]:
        """Yield warnings for users about empty graphs."""
        remedy = "" if self.scenes else f"; {REMEDY}"
        if self.candidates:
            shown = "; ".join(f"{_shown(text)} (image_id {_shown(image)})" for image, text in self.examples)
            such = f", such as {shown}" if shown else ""
            have = "has" if self.candidates == 1 else "have"
            of_all = f"{self.candidates:,} of {counted(self.items, 'candidate')}"
            yield f"{of_all} {have} an empty graph, which SPICE scores 0{such}{remedy}"
        if self.references:
            of_all = f"{self.references:,} of {counted(self.items, 'item')}"
            yield f"the references of {of_all} have an empty graph: SPICE is 0 there{remedy}"

    def to_dict(self) -> dict[str, int | list[dict[str, ItemId]]]:
        """Return JSON values."""
        examples: list[dict[str, ItemId]] = [{"image_id": image, "caption": text} for image, text in self.examples]
        return {"candidates": self.candidates, "references": self.references, "examples": examples}


def _shown(value: object) -> str:
    cut = value[:_SHOWN] if isinstance(value, str) else value
    return ascii(cut) + ("..." if cut != value else "")
