"""Requests, checked as a whole: every wrong field is named by its path."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from spicegraph_api.report.v1.report_pb2 import AnalysisSettings
from spicegraph_api.v1 import evaluation_service_pb2, reference_service_pb2, scene_graph_pb2, scores_pb2
from spicegraph_parser.errors import InputError
from spicegraph_parser.languages import find_language
from spicegraph_scorer.core.marks import FoundMarks, may_have_marks
from spicegraph_scorer.metrics import GROUPS, check_names
from spicegraph_scorer.metrics.spice.categories import CategoryDefinition, category_faults
from spicegraph_scorer.readers.marks import ControlTokens, Marks, named
from spicegraph_service.pool.tasks import GraphStyle, RequestData, WorkerInfo
from spicegraph_service.rpc.status import CallError, InvalidError, Violation, invalid, wrong

if TYPE_CHECKING:
    import re
    from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.tokens import SpiceText
    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_service.rpc.limits import Limits

_KINDS = {
    scores_pb2.CATEGORY_KIND_UNSPECIFIED: "object",
    scores_pb2.CATEGORY_KIND_OBJECT: "object",
    scores_pb2.CATEGORY_KIND_ATTRIBUTE: "attribute",
    scores_pb2.CATEGORY_KIND_RELATION: "relation",
}
_SCORES_ALONE = frozenset({scores_pb2.DETAIL_UNSPECIFIED, scores_pb2.DETAIL_SCORES})
_OF_SETS = _SCORES_ALONE | {scores_pb2.DETAIL_CATEGORIES}

_NUL = "\0"
_MAX_PAGE = 1_000
_DEFAULT_PAGE = 100
_DRAWS, _SEED, _MOST_DRAWS = 1_000, 12345, 10_000
T = TypeVar("T")


class Faults:
    """Gathers what is wrong with parts of a request, so that the caller learns of everything at once."""

    def __init__(self) -> None:
        self._found: list[Violation] = []

    @contextmanager
    def of_part(self) -> Iterator[None]:
        """Keep the wrong fields that a check raises; other errors pass."""
        try:
            yield
        except InvalidError as error:
            self._found += error.violations

    def check(self) -> None:
        """Raise an error with all wrong fields, if there are any."""
        _raise(self._found)


async def patiently(
    requests: AsyncIterator[T], *, silence_s: float = 60, reason: str = "UPLOAD_STALLED"
) -> AsyncIterator[T]:
    """Return a stream's messages; ABORTED after ``silence_s`` in which its sender was waited for."""
    while True:
        try:
            async with asyncio.timeout(silence_s):
                request = await anext(requests, None)
        except TimeoutError as error:
            raise CallError(grpc.StatusCode.ABORTED, reason, f"no message came for {silence_s:g} s") from error
        if request is None:
            return
        yield request


def check_items(
    items: Sequence[Any],
    limits: Limits,
    *,
    reference_set: bool,
    empty: Empty,
    seen: set[str],
    first: int = 0,
    control_tokens: ControlTokens = "keep",
    sets: bool = False,
) -> FoundMarks:
    """Check items; ``seen`` holds the ids before them and takes theirs, ``first`` is the index of the first.

    What models leave behind in captions is taken off the items where ``control_tokens`` says so, and returned. With
    ``sets`` every item is a set of captions, without none may be.
    """
    # An item is one of ``Score``, or another one with references and ``candidates``, one of each system.
    violations = list(_count("items", len(items), limits.max_items))
    marks = Marks(control_tokens)
    for index, item in enumerate(items if not violations else (), start=first):
        path = f"items[{index}]"
        violations += _marks(path, item, marks)
        violations += _id(f"{path}.id", item.id, limits)
        if item.id in seen:
            violations.append(Violation(f"{path}.id", f"{item.id!a} is the id of another item"))
        seen.add(item.id)
        if isinstance(item, scores_pb2.Item) and (sets or item.candidates):
            violations += _set(path, item, limits, allowed=sets)
        captions = tested(item)
        for field, text in captions:
            violations += _tested_faults(f"{path}.{field}", text, limits, empty)
        lengths = [len(text) for _, text in captions]
        together = sum(lengths) if isinstance(item, scores_pb2.Item) else max(lengths, default=0)
        violations += _held_against(path, item, limits, reference_set=reference_set, candidate=together)
    _raise(violations)
    return marks.found()


def _tested_faults(field: str, text: str, limits: Limits, empty: Empty) -> Iterator[Violation]:
    yield from caption_faults(field, text, limits)
    if empty == "refuse" and not text.strip():
        yield Violation(field, "is empty")


def _held_against(path: str, item: Any, limits: Limits, *, reference_set: bool, candidate: int) -> Iterator[Violation]:
    """Yield what is wrong with an item's references, or with the entry of a reference set that it names."""
    if not reference_set:
        if item.HasField("reference_id"):
            yield Violation(f"{path}.reference_id", "needs a reference set")
        yield from _references(path, item.references, limits, candidate=candidate)
        return
    if item.references:
        yield Violation(f"{path}.references", "the request names a reference set: items carry none")
    if item.HasField("reference_id"):
        yield from _id(f"{path}.reference_id", item.reference_id, limits)


def tested(item: Any) -> list[tuple[str, str]]:
    """Return the captions of an item that are tested, each with its field: a candidate, or candidates."""
    several = [(f"candidates[{number}]", text) for number, text in enumerate(item.candidates)]
    return [("candidate", item.candidate)] if isinstance(item, scores_pb2.Item) and not several else several


def _set(path: str, item: scores_pb2.Item, limits: Limits, *, allowed: bool) -> Iterator[Violation]:
    if not allowed:
        yield Violation(f"{path}.candidates", "Score and ScoreStream take sets of captions, where all items are sets")
    elif item.candidate:
        yield Violation(f"{path}.candidate", "stands beside candidates: a set has candidates alone")
    yield from _count(f"{path}.candidates", len(item.candidates), limits.max_references)
    if (characters := sum(map(len, item.candidates))) > limits.max_item_characters:
        reason = f"has {characters:,} characters, the limit is {limits.max_item_characters:,}"
        yield Violation(f"{path}.candidates", reason)


def _marks(path: str, item: Any, marks: Marks) -> Iterator[Violation]:
    """Check an item's or entry's captions for model control tokens; strip them if configured."""
    captions = tested(item) if isinstance(item, scores_pb2.Item) else []
    if not may_have_marks("\n".join((*(text for _, text in captions), *item.references))):
        return
    for number, (field, candidate) in enumerate(captions):
        text, names = marks.candidate(candidate)
        if item.candidates:
            item.candidates[number] = text
        elif text != candidate:
            item.candidate = text
        yield from _marked(f"{path}.{field}", names, marks)
    for index, reference in enumerate(item.references):
        item.references[index], names = marks.reference(reference)
        yield from _marked(f"{path}.references[{index}]", names, marks)


def _marked(field: str, names: Sequence[str], marks: Marks) -> Iterator[Violation]:
    if names and marks.rule == "refuse":
        remedy = "CONTROL_TOKENS_STRIP takes it off, CONTROL_TOKENS_KEEP scores it as words"
        yield Violation(field, f"contains what models leave behind: {named(names)}; control_tokens: {remedy}")


def check_captions(captions: Sequence[str], limits: Limits) -> None:
    """Check captions to parse."""
    violations = list(_count("captions", len(captions), limits.max_items))
    for index, caption in enumerate(captions if not violations else ()):
        violations += caption_faults(f"captions[{index}]", caption, limits)
    _raise(violations)


def check_entries(
    entries: Sequence[reference_service_pb2.ReferenceEntry],
    limits: Limits,
    *,
    seen: Iterable[str],
    first: int,
    control_tokens: ControlTokens,
) -> None:
    """Check entries of a reference set, and mind their marks; ``seen`` holds the ids before them."""
    violations: list[Violation] = []
    if not entries:
        violations.append(Violation("entries", "is empty"))
    elif first + len(entries) > limits.max_reference_set_entries:
        violations.append(Violation("entries", f"a set has at most {limits.max_reference_set_entries} entries"))
    known = set(seen) if not violations else set()
    marks = Marks(control_tokens)
    for index, entry in enumerate(entries if not violations else (), start=first):
        path = f"entries[{index}]"
        violations += _marks(path, entry, marks)
        violations += _id(f"{path}.id", entry.id, limits)
        if entry.id in known:
            violations.append(Violation(f"{path}.id", f"{entry.id!a} is the id of another entry"))
        known.add(entry.id)
        violations += _references(path, entry.references, limits)
    _raise(violations)


def check_metrics(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics of a request, without repeats, groups spelled out, none unknown; no name means ``spice``."""
    violations = []
    spelled: list[str] = []
    for index, name in enumerate(check_names(list(names))):
        spelled += (member for member in GROUPS.get(name, (name,)) if member in known)
        lacking = [member for member in GROUPS.get(name, ()) if member not in known]
        if lacking and name != "all":
            reason = f"the group {name!a} has {', '.join(lacking)}, which is not served here"
            violations.append(Violation(f"metrics[{index}]", reason))
        elif name not in known and name not in GROUPS:
            reason = f"there is no metric {name[:50]!a} here; there are {', '.join((*known, *GROUPS))}"
            violations.append(Violation(f"metrics[{index}]", reason))
    _raise(violations)
    return tuple(dict.fromkeys(spelled)) or ("spice",)


def shows_references(request: evaluation_service_pb2.ScoreRequest | evaluation_service_pb2.ScoreStreamSettings) -> bool:
    """Say whether the answer would tell words of references, or count their tuples by categories, also of one's own."""
    return request.detail not in _SCORES_ALONE or bool(request.categories)


def check_detail(detail: int, *, sets: bool = False, field: str = "detail") -> None:
    """Check how much evidence is asked for; of sets of captions there is none."""
    check_value(detail, scores_pb2.Detail.values(), field)
    if sets and detail not in _OF_SETS:
        raise wrong(field, "of sets of captions there are DETAIL_SCORES and DETAIL_CATEGORIES")


def has_sets(items: Iterable[scores_pb2.Item]) -> bool:
    """Say whether items are sets of captions: where one is, all are to be."""
    return any(item.candidates for item in items)


def check_value(value: int, known: Container[int], field: str) -> None:
    """Check that the contract has a value of an enumeration."""
    if value not in known:
        raise wrong(field, f"{value} is not one of its values")


def _meaning(value: int, known: Mapping[int, T], field: str) -> T:
    """Return the library's value for an enum value."""
    check_value(value, known, field)
    return known[value]


_TEXTS: Mapping[int, SpiceText] = {
    scores_pb2.SPICE_TEXT_UNSPECIFIED: "written",
    scores_pb2.SPICE_TEXT_WRITTEN: "written",
    scores_pb2.SPICE_TEXT_COCO: "coco",
}


def spice_text(value: int, *, field: str = "spice_text") -> SpiceText:
    """Return the text that SPICE parses."""
    return _meaning(value, _TEXTS, field)


_EMPTY: Mapping[int, Empty] = {
    scores_pb2.EMPTY_CANDIDATES_UNSPECIFIED: "zero",
    scores_pb2.EMPTY_CANDIDATES_ZERO: "zero",
    scores_pb2.EMPTY_CANDIDATES_REFUSE: "refuse",
}


def empty_candidates(value: int, *, field: str = "empty") -> Empty:
    """Return the rule for empty candidates."""
    return _meaning(value, _EMPTY, field)


_CONTROL_TOKENS: Mapping[int, ControlTokens] = {
    scores_pb2.CONTROL_TOKENS_UNSPECIFIED: "refuse",
    scores_pb2.CONTROL_TOKENS_REFUSE: "refuse",
    scores_pb2.CONTROL_TOKENS_STRIP: "strip",
    scores_pb2.CONTROL_TOKENS_KEEP: "keep",
}


def control_tokens(value: int, *, field: str = "control_tokens") -> ControlTokens:
    """Return the rule for control tokens that models leave in captions."""
    return _meaning(value, _CONTROL_TOKENS, field)


_STYLES: Mapping[int, GraphStyle] = {
    scene_graph_pb2.GRAPH_STYLE_UNSPECIFIED: "spice",
    scene_graph_pb2.GRAPH_STYLE_SPICE: "spice",
    scene_graph_pb2.GRAPH_STYLE_SCENE: "scene",
}


def graph_style(value: int, info: WorkerInfo, *, field: str = "graph_style") -> GraphStyle:
    """Return the style of graphs: of those of the server's pipeline, or of the scene parser."""
    style = _meaning(value, _STYLES, field)
    if style == "scene" and not info.scene_pipeline:
        raise wrong(field, "this server has no scene parser; install the package spicegraph_scenes beside it")
    if value == scene_graph_pb2.GRAPH_STYLE_SPICE and info.pipeline == info.scene_pipeline:
        raise wrong(field, f"this server's pipeline is {info.pipeline}, which gives scene graphs only")
    return style


async def check_data(
    request: evaluation_service_pb2.ScoreRequest | evaluation_service_pb2.ScoreStreamSettings | AnalysisSettings,
    info: WorkerInfo,
    *,
    path: str = "",
) -> RequestData:
    """Return a request's data for its metrics, checked."""
    text = spice_text(request.spice_text, field=f"{path}spice_text")
    if request.spice_text == scores_pb2.SPICE_TEXT_UNSPECIFIED and "coco" in request.metrics:
        text = "coco"  # as the command line takes the group
    style = graph_style(request.graph_style, info, field=f"{path}graph_style")
    categories = tuple(
        CategoryDefinition(
            message.name,
            _KINDS.get(message.kind, str(message.kind)),
            tuple(message.words),
            tuple(message.subtrees),
            message.synonyms,
        )
        for message in request.categories
    )
    if categories:  # checked in a thread, since the first of them loads WordNet
        faults = await asyncio.to_thread(list, category_faults(categories))
        _raise(
            [
                Violation(f"{path}categories[{index}].{field.replace('subtree', 'subtrees', 1)}", reason)
                for index, field, reason in faults
            ]
        )
    confidence = None
    if not isinstance(request, AnalysisSettings) and request.HasField("confidence"):
        confidence = resampling(request.confidence, field=f"{path}confidence")
    return RequestData(
        categories,
        text,
        style,
        confidence=confidence,
        language=_language(getattr(request, "language", ""), f"{path}language"),
        reference_language=_language(getattr(request, "reference_language", ""), f"{path}reference_language"),
    )


def _language(code: str, field: str) -> str | None:
    try:
        return find_language(code).code if code else None
    except InputError as error:
        raise wrong(field, str(error).removeprefix("language: ")) from error


def resampling(message: scores_pb2.Resampling, *, field: str = "resampling") -> tuple[int, int]:
    """Return the draws and the seed."""
    if not 0 <= message.draws <= _MOST_DRAWS:
        raise wrong(f"{field}.draws", f"is {message.draws}; 1 to {_MOST_DRAWS}, or 0 for {_DRAWS}")
    return message.draws or _DRAWS, message.seed if message.HasField("seed") else _SEED


def check_page_size(size: int) -> int:
    """Return the size of a page; 0 stands for the default."""
    if not 0 <= size <= _MAX_PAGE:
        raise wrong("page_size", f"is {size}; 1 to {_MAX_PAGE}, or 0 for {_DEFAULT_PAGE}")
    return size or _DEFAULT_PAGE


def check_page_token(token: str, form: re.Pattern[str]) -> None:
    """Check that a page token is one that a list can have given."""
    if token and not form.fullmatch(token):
        raise wrong("page_token", "is not a page token of this list")


def _raise(violations: Sequence[Violation]) -> None:
    if violations:
        raise invalid(violations)


def _count(field: str, count: int, limit: int) -> Iterator[Violation]:
    if not count:
        yield Violation(field, "is empty")
    elif count > limit:
        yield Violation(field, f"has {count} entries, the limit is {limit}")


def _id(path: str, value: str, limits: Limits) -> Iterator[Violation]:
    if not value:
        yield Violation(path, "is empty")
    elif len(value) > limits.max_id_characters:
        yield Violation(path, f"has {len(value)} characters, the limit is {limits.max_id_characters}")
    elif _NUL in value:
        yield Violation(path, "holds a NUL character")


def caption_faults(path: str, text: str, limits: Limits) -> Iterator[Violation]:
    """Yield what is wrong with a caption."""
    if len(text) > limits.max_caption_characters:
        yield Violation(path, f"has {len(text)} characters, the limit is {limits.max_caption_characters}")
    if _NUL in text:
        yield Violation(path, "holds a NUL character")


def _references(path: str, references: Sequence[str], limits: Limits, *, candidate: int = 0) -> Iterator[Violation]:
    yield from _count(f"{path}.references", len(references), limits.max_references)
    if len(references) > limits.max_references:
        return
    for index, text in enumerate(references):
        field = f"{path}.references[{index}]"
        yield from caption_faults(field, text, limits)
        if not text.strip():
            yield Violation(field, "is empty")
    characters = candidate + sum(map(len, references))
    if characters > limits.max_item_characters:
        what = "with the candidate, " if candidate else ""
        reason = f"{what}the references have {characters:,} characters, the limit is {limits.max_item_characters:,}"
        yield Violation(f"{path}.references", reason)
