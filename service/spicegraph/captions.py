"""From one caption or many to their scene graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from spicegraph_parser.fronts.spacy import is_doc
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, parse_captions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spacy.tokens import Doc

    from spicegraph_parser.pipelines import CaptionPipeline
    from spicegraph_parser.spice.extraction import ParsedCaption


@overload
def parse(  # type: ignore[overload-overlap]  # a string is an iterable of strings, too
    captions: str | Doc, pipeline: CaptionPipeline | str = ...
) -> ParsedCaption: ...


@overload
def parse(captions: Iterable[str | Doc], pipeline: CaptionPipeline | str = ...) -> Iterator[ParsedCaption]: ...


def parse(
    captions: str | Doc | Iterable[str | Doc], pipeline: CaptionPipeline | str = DEFAULT_PIPELINE
) -> ParsedCaption | Iterator[ParsedCaption]:
    """Parse a caption, or several, to tuples and scene graphs.

    Args:
        captions: one caption, whose parse is returned; or any number of them, whose parses come one after the other.
            Documents that spaCy has parsed are read as they are.
        pipeline: what parses, by name (``en_caption``, ``scene``, any spaCy pipeline), or what ``load_pipeline`` gave.

    Raises:
        InputError: a caption is not a string.
        LimitError: a caption is too long.
        DataError: the pipeline is not installed, or a document is not parsed.

    Example:
        >>> parse("A brown dog.").tuples
        (('dog', 'brown'), ('dog',))
        >>> [len(caption.tuples) for caption in parse(["A brown dog.", "A cat."])]
        [2, 1]
    """
    if isinstance(captions, str) or is_doc(captions):
        return next(parse_captions([captions], pipeline))
    return parse_captions(captions, pipeline)
