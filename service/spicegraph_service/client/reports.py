"""Error reports of a server, for programs: what systems get wrong as rows, sentences and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypedDict

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_service.client import inputs

Systems = Mapping[str, Mapping[Any, str]]  # captions by image, by the system's name
References = Mapping[Any, Sequence[str]]
Told = Callable[[str, int, int], None]  # What is done, how much of it, of how much.

_BATCH: Final = 200  # items in a message
_FORMS: Final = {
    ".html": pb.PAGE_FORMAT_HTML,
    ".htm": pb.PAGE_FORMAT_HTML,
    ".md": pb.PAGE_FORMAT_MARKDOWN,
    ".json": pb.PAGE_FORMAT_JSON,
}


class AnalysisOptions(TypedDict, total=False):
    """What a caller may say of an analysis; the fields of ``AnalysisSettings`` by their names."""

    metrics: str | Sequence[str]
    reference_set: str | None
    categories: Sequence[scores_pb2.CategoryDefinition]
    spice_text: scores_pb2.SpiceText.ValueType
    empty: scores_pb2.EmptyCandidates.ValueType
    graph_style: scene_graph_pb2.GraphStyle.ValueType
    resampling: scores_pb2.Resampling
    leave_out: Sequence[pb.ReportPart.ValueType]
    max_examples: int
    without_human: bool
    title: str
    gates: str | Sequence[str]
    made: pb.Provenance


def settings_of(systems: Systems, options: AnalysisOptions) -> pb.AnalysisSettings:
    """Return the settings of an analysis; ids that are integers stay integers on its page."""
    metrics, gates = (inputs.names(options.get(name, ()), name) for name in ("metrics", "gates"))
    whole: AnalysisOptions = options | {"metrics": metrics, "gates": gates}
    ids = next(iter(systems.values()), {})
    numbers = bool(ids) and all(isinstance(key, int) for key in ids)
    return pb.AnalysisSettings(systems=list(systems), integer_ids=numbers, **whole)


def check_systems(systems: Systems, references: References | None) -> None:
    """Check that all systems have the same images, and these references; a ``KeyError`` names one that is lacking.

    What is no caption, no list of references or no id is a ``TypeError``, before anything is sent.
    """
    first = next(iter(systems.values()), {})
    for name, captions in systems.items():
        for key in (*first, *captions):
            if key not in captions or key not in first:
                raise KeyError(f"image {key!r} is not in all systems: {name!r} and the first differ")
            if references is not None and key not in references:
                raise KeyError(f"image {key!r} has no references")
            inputs.item_id(key, "id")
            inputs.caption(captions[key], f"systems[{name!r}][{key!r}]")
    if references is not None:
        for key in first:
            inputs.captions(references[key], f"references[{key!r}]")


def batches_of(systems: Systems, references: References | None) -> Iterator[pb.SystemsBatch]:
    """Yield the items in batches, in the first system's order."""
    items = (
        pb.SystemsItem(
            id=inputs.item_id(key, "id"),
            candidates=[captions[key] for captions in systems.values()],
            references=() if references is None else references[key],
        )
        for key in next(iter(systems.values()), {})
    )
    for batch in inputs.batches(items, _BATCH):
        yield pb.SystemsBatch(items=batch)


def analyze_messages(systems: Systems, references: References | None, options: AnalysisOptions) -> Iterator[Any]:
    """Return the messages of an analysis; what is wrong with its options is said now, not while gRPC draws them."""
    first = pb.AnalyzeRequest(settings=settings_of(systems, options))
    return chain((first,), (pb.AnalyzeRequest(items=batch) for batch in batches_of(systems, references)))


def render_messages(
    systems: Systems, references: References | None, form: pb.PageFormat.ValueType, options: AnalysisOptions
) -> Iterator[Any]:
    """Return the messages of a page, as :func:`analyze_messages`."""
    analysis = settings_of(systems, options)
    first = pb.RenderReportRequest(settings=pb.RenderSettings(analysis=analysis, format=form))
    return chain((first,), (pb.RenderReportRequest(items=batch) for batch in batches_of(systems, references)))


def form_of(path: str | Path) -> pb.PageFormat.ValueType:
    """Return how a page is written into a file, by its ending."""
    ending = Path(path).suffix.lower()
    if ending not in _FORMS:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(_FORMS)}")
    return _FORMS[ending]


def tell(step: Any, progress: Told | None) -> None:
    """Tell progress, if a message has any."""
    if progress is not None and step.WhichOneof("payload") == "progress":
        progress(step.progress.what, step.progress.done, step.progress.of)


@dataclass(frozen=True, slots=True)
class Analysis:
    """A report: ``message`` has everything, the properties what is asked for most; it shows itself in notebooks."""

    message: pb.ErrorReport
    render: Callable[[pb.PageFormat.ValueType], Any]  # makes the page of the same request; a coroutine of async clients

    @property
    def verdict(self) -> str:
        """Who is better, by how much, and how surely."""
        said = self.message.verdict
        return f"{said.headline}. {said.detail}"

    @property
    def categories(self) -> Any:
        """SPICE by category and system, as a table of pandas where it is installed, else as a list of rows."""
        fields = ("f", "low", "high", "pr", "re", "items", "tp", "fp", "fn")
        return _table(
            {"system": system.name, "category": row.name, **{name: _value(row, name) for name in fields}}
            for system in self.message.systems
            for row in system.categories
        )

    @property
    def kinds(self) -> Any:
        """Errors by kind and system, as :attr:`categories`."""
        return _table(
            {
                "system": system.name,
                "kind": scores_pb2.ErrorKind.Name(row.key).removeprefix("ERROR_KIND_").lower(),
                **{name: _value(row, name) for name in ("title", "count", "of", "rate", "items")},
                "words": [f"{' / '.join(group.words)} ({group.count})" for group in row.groups[:5]],
            }
            for system in self.message.systems
            for row in system.kinds
        )

    def save(self, path: str | Path) -> Any:
        """Have the server make the page, and write it: .html, .md or .json. Await it of an async client."""
        page = self.render(form_of(path))
        if isinstance(page, bytes):
            Path(path).write_bytes(page)
            return None

        async def saved() -> None:
            Path(path).write_bytes(await page)

        return saved()

    def __str__(self) -> str:
        """Return the verdict with its points."""
        points = (f"  {point.name}: {point.text}" for point in self.message.verdict.points)
        return "\n".join((self.verdict, *points))

    def _repr_html_(self) -> str:
        points = (f"<dt>{escape(p.name)}</dt><dd>{escape(p.text)}</dd>" for p in self.message.verdict.points)
        head = "".join(f"<th>{escape(row.category)}</th>" for row in self.message.standings)
        rows = (
            f"<tr><th>{escape(system.name)}</th>"
            + "".join(f"<td>{_shown(row, number)}</td>" for row in self.message.standings)
            + "</tr>"
            for number, system in enumerate(self.message.systems)
        )
        table = f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
        return f"<p><b>{escape(self.verdict)}</b></p>{table}<dl>{''.join(points)}</dl>"


def _shown(row: pb.Standing, system: int) -> str:
    value = row.values[system]
    text = f"{value.value:.3f}" if value.HasField("value") else "–"
    mark = "b" if row.HasField("best") and row.best == system else "u" if system in row.tied else ""
    return f"<{mark}>{text}</{mark}>" if mark else text


def _value(row: Any, name: str) -> Any:
    has_value = not row.DESCRIPTOR.fields_by_name[name].has_presence or row.HasField(name)
    return getattr(row, name) if has_value else None


def _table(rows: Iterable[dict[str, Any]]) -> Any:
    found = list(rows)
    try:
        import pandas as pd  # noqa: PLC0415 (where it is installed)
    except ImportError:
        return found
    return pd.DataFrame(found)
