"""Documents that spaCy has parsed, in place of captions: their texts are scored, and their parses count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError
from spicegraph_parser.fronts.documents import doc_signature, lacking, read_doc
from spicegraph_parser.fronts.spacy import is_doc
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_parser.spice.extraction import extract
from spicegraph_scorer.core.facts import FactSource, FunctionSource
from spicegraph_scorer.core.items import CheckedItems, Item
from spicegraph_scorer.readers.checks import Fault, input_error, refuse_faults, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spacy.tokens import Doc

    from spicegraph_parser.spice.rules import Fact


@dataclass(frozen=True, slots=True)
class Documents:
    """The spaCy documents that a caller passed as captions, by text."""

    known: dict[str, Doc] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def texts(self, given: Any) -> Any:
        """Return items or captions, in any form in which they are given, with texts in place of documents."""
        if "spacy.tokens" not in sys.modules or isinstance(given, CheckedItems):
            return given
        return map(self._text, given) if isinstance(given, Iterator) else self._text(given)

    def _text(self, value: Any) -> Any:
        if is_doc(value):
            first = self.known.setdefault(value.text, value)
            if first is not value and _parse(first) != _parse(value):
                self.faults.append(Fault(f"document {shown(value.text)}", "", "has another parse than an earlier one"))
            return value.text
        if isinstance(value, Item):
            return replace(value, candidate=self._text(value.candidate), references=self._text(value.references))
        if type(value) is dict:
            return {key: self._text(each) for key, each in value.items()}
        return type(value)(map(self._text, value)) if type(value) in {list, tuple} else value

    def source(self, pipeline: str | FactSource, items: Iterable[Item]) -> str | FactSource:
        """Return the fact source: parses of documents, and the pipeline for other captions."""
        if not self.known:
            return pipeline
        if self.faults:
            raise input_error("documents", self.faults)
        signature = "+".join(sorted(set(map(doc_signature, self.known.values()))))
        language = self._language()
        if all(text in self.known for item in items for text in (item.candidate, *item.references)):
            return FunctionSource(signature, partial(_facts, self.known, None, language), language)
        others = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        return FunctionSource(
            f"{signature}+{others.signature}", partial(_facts, self.known, others, language), language
        )

    def _language(self) -> str | None:
        """Return the code of the documents' language, ``None`` where they have none; they share one."""
        languages = sorted({doc.lang_ for doc in self.known.values()} - {"", "xx"})
        if len(languages) > 1:
            raise InputError(f"documents: are in {' and '.join(languages)}; documents of one language can be scored")
        return languages[0] if languages else None


_TOKENIZED = "is what SPICE reads of a document with spice_text='coco', and not parsed; give spice_text='written'"


def _parse(doc: Doc) -> bytes:
    return doc.to_array(["ORTH", "TAG", "LEMMA", "HEAD", "DEP"]).tobytes()  # numbers of strings, in any vocabulary


def _facts(
    known: Mapping[str, Doc], others: FactSource | None, language: str | None, texts: Iterable[str]
) -> Iterator[tuple[Fact, ...]]:
    wanted = list(texts)
    faults = [
        Fault(f"document {shown(text)}", "", f"its pipeline lacks {' and '.join(parts)}")
        for text in wanted
        if text in known and (parts := lacking(known[text]))
    ]
    rest = [text for text in wanted if text not in known]
    if others is None:
        faults += [Fault(f"caption {shown(text)}", "", _TOKENIZED) for text in rest]
    else:
        spoken = getattr(others, "language", None) or language
        if language is not None and spoken != language:
            why = f"is no document, and {others.signature} reads {spoken}; the documents are in {language}"
            faults += [Fault(f"caption {shown(text)}", "", why) for text in rest]
    refuse_faults("documents", faults)
    parsed = iter(()) if others is None else others.facts(rest)
    return (extract(read_doc(known[text])).every_fact if text in known else next(parsed) for text in wanted)
