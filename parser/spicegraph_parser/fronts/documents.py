"""What a document of spaCy has gone through, and the caption that it is: what the component and ``score`` read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spicegraph_parser.errors import DataError
from spicegraph_parser.fronts.schemes import Scheme
from spicegraph_parser.fronts.spacy import caption_of

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from spicegraph_parser.spice.parse import Caption

COMPONENT: Final = "scene_graph"
KEPT: Final = "spicegraph_scene_graph"  # the key in user data of what :class:`Kept` describes


class Kept(NamedTuple):
    """The component's record of a document, a list; ``facts`` need an unchanged number of ``tokens``."""

    tokens: int
    facts: list[list[Any]]
    scheme: str
    pipeline: str


def kept_of(doc: Doc) -> Kept | None:
    """Return the component's record of a document, if it has one."""
    return Kept(*doc.user_data[KEPT]) if KEPT in doc.user_data else None


def read_doc(doc: Doc) -> Caption:
    """Return a parsed document as the caption that SPICE's rules read.

    Raises:
        DataError: it lacks tags, lemmas or dependencies, or their labels are of no scheme that is known.
        InputError: its language has no table.
    """
    kept = kept_of(doc)
    return caption_of(checked(doc), scheme=Scheme(kept.scheme) if kept else Scheme.AUTO)


def checked(doc: Doc) -> Doc:
    """Return a document; a DataError names the parts of a pipeline that it has not gone through."""
    if missing := lacking(doc):
        what = f"the document {doc.text[:60]!r} has no scene graph"
        raise DataError(f"{what}: its pipeline lacks {' and '.join(missing)} (before {COMPONENT!r})")
    return doc


def lacking(doc: Doc) -> list[str]:
    """Return which parts of a pipeline a document has not gone through, though its scene graph needs them."""
    parts = {"a tagger": ("TAG", "POS"), "a lemmatizer": ("LEMMA",), "a parser": ("DEP",)}
    return [part for part, attributes in parts.items() if len(doc) and not any(map(doc.has_annotation, attributes))]


def doc_signature(doc: Doc) -> str:
    """Return the signature of the pipeline that parsed a document, as far as the document knows it."""
    kept = kept_of(doc)
    return kept.pipeline if kept else f"{doc.lang_ or 'unknown'}-documents"
