"""Where facts come from besides a pipeline: graphs as text, and parses that another parser made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_parser.extract import extract
from spicegraph_parser.graph_text import graph_fault, is_graph_text, read_graph_text
from spicegraph_parser.parse import read_conllu
from spicegraph_parser.ud2 import Scheme, ud1_lines
from spicegraph_scorer.readers.checks import Fault, input_error, label, shown
from spicegraph_scorer.readers.records import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item

__all__ = ["GivenParses", "GraphTexts", "check_graphs", "read_parses"]

_DIGEST_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class GraphTexts:
    """Facts of captions and of graphs as text, ``( man , ride , horse )``, side by side.

    Whether a text is a graph, the text alone decides; the others go to ``source``, also those that only look like
    one, which :func:`check_graphs` finds.
    """

    source: FactSource

    @property
    def signature(self) -> str:
        """The source's signature, with ``+graphs``."""
        return f"{self.source.signature}+graphs"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each text, in order."""
        wanted = list(texts)
        parsed = self.source.facts([text for text in wanted if not is_graph_text(text)])
        return (read_graph_text(text) if is_graph_text(text) else next(parsed) for text in wanted)


def check_graphs(items: Iterable[Item], *, source: str) -> None:
    """Refuse items with a text that looks like a graph but is not one, which would be parsed as a caption.

    Raises:
        InputError: the message names every such item, its field, and what is wrong with the text.

    Example:
        >>> from spicegraph_scorer.core.items import Item
        >>> check_graphs([Item(7, "( dog", ("a dog",))], source="in.jsonl")
        Traceback (most recent call last):
        spicegraph_parser.errors.InputError: in.jsonl: item 1 (image_id 7), candidate: has a '(' without its ')'
    """
    faults = [
        Fault(label(f"item {number}", item.id), field, reason)
        for number, item in enumerate(items, start=1)
        for field, text in _texts(item)
        if (reason := graph_fault(text))
    ]
    if faults:
        raise input_error(source, faults)


def _texts(item: Item) -> Iterator[tuple[str, str]]:
    """Yield the texts of an item under the names of their fields."""
    yield "candidate", item.candidate
    for place, text in enumerate(item.references):
        yield f"references[{place}]", text


@dataclass(frozen=True, slots=True)
class GivenParses:
    """Facts of captions that were parsed before, by any parser: looked up by the caption's text."""

    parses: Mapping[str, tuple[Fact, ...]]
    signature: str

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption, in order.

        Raises:
            InputError: captions have no parse; the message lists them.
        """
        wanted = [_key(text) for text in texts]
        missing = [text for text in dict.fromkeys(wanted) if text not in self.parses]
        if missing:
            raise input_error("parses", [Fault(f"caption {shown(text)}", "", "has no parse") for text in missing])
        return (self.parses[text] for text in wanted)


def read_parses(path: str, *, scheme: Scheme = Scheme.AUTO) -> GivenParses:
    """Read parses in CoNLL-U, Universal Dependencies v1 or v2, whose ``# text`` lines are the captions.

    A caption of several sentences begins with ``# newdoc``; then every caption of the file must.

    Raises:
        InputError: the file is missing or no CoNLL-U, or gives a caption two different parses.
        LimitError: it is too large.
    """
    lines = read_lines(path)
    parses: dict[str, tuple[Fact, ...]] = {}
    for caption in read_conllu(ud1_lines(lines, scheme=scheme), source=path):
        facts = extract(caption).every_fact
        if parses.setdefault(_key(caption.text), facts) != facts:
            raise InputError(f"{path}: the caption {shown(caption.text)} has two different parses")
    if not parses:
        raise InputError(f"{path}: contains no parse")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return GivenParses(parses, f"parses-{digest}")


def _key(text: str) -> str:
    """Return a caption with single spaces, as a CoNLL-U comment holds it."""
    return " ".join(text.split())
