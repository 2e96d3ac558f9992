"""What the server asks of a sandbox, what it hears back, and how each task is done there."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.settings import with_defaults
from spicegraph_challenge.sandbox.files import packed, read_images, read_references, read_results, reference_frames
from spicegraph_challenge.sandbox.validation import read_submission, split_images
from spicegraph_parser.errors import DataError, InputError, LimitError
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import SpiceText  # noqa: TC001 (msgspec reads the annotation)
from spicegraph_scorer.metrics import METRICS
from spicegraph_scorer.readers.checks import check_items
from spicegraph_scorer.readers.records import read_all
from spicegraph_scorer.readers.references import annotations_of
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source
from spicegraph_service.kit import ChunkStatistics, System, read_frame, unpack_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Run


_DOMAIN = re.compile(r"[\w.-]{1,40}")
_MOST_DOMAINS = 20
_ROUNDED = 10  # numbers of images with an error are multiples of it
_ERROR_WORDS = (8, 4)  # errors of certain words: in what captions say, and in what they lack


class Validate(msgspec.Struct, frozen=True, tag="validate"):
    """Check a submitted file against the challenge's settings."""

    path: str
    file_name: str
    split: str
    splits: dict[str, tuple[str, ...]]  # paths of the reference sets of each
    output: str  # a folder
    caption_characters: int
    settings: bytes = b""


class Validated(msgspec.Struct, frozen=True, tag="validated"):
    """The result of validation: results path and empty captions by split, or the faults."""

    results: dict[str, str] = {}
    empty: dict[str, int] = {}
    faults: str = ""
    fault_count: int = 0


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Read references of any shape, and write them to ``output`` as a reference set."""

    path: str
    output: str


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The numbers of images with references and of references, the former by domain; or ``faults`` of the file."""

    image_count: int = 0
    caption_count: int = 0
    faults: tuple[str, ...] = ()
    domains: dict[str, int] = {}


class Finish(msgspec.Struct, frozen=True, tag="finish"):
    """Make scores and intervals of the statistics of all items."""

    metrics: tuple[str, ...]
    statistics: str  # a file with a frame per chunk
    data: bytes = b""  # the server's own for the metrics, with which the statistics were collected
    references: str = ""  # the file of the reference set, which says the domain of each item


class TaskScore(NamedTuple):
    """A corpus score with its interval, and the images of a category or a domain."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    images: int | None
    domain: str = ""


class ErrorRow(NamedTuple):
    """Errors of a kind, all or of certain words; see the contract's ``ErrorCount``."""

    kind: str
    title: str
    words: tuple[str, ...]
    columns: tuple[str, ...]
    images: int


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The scores, in the order of the metrics, and the errors that enough images have."""

    scores: tuple[TaskScore, ...]
    errors: tuple[ErrorRow, ...] = ()


class ReportTask(msgspec.Struct, frozen=True, tag="report"):
    """Make an error report of the results at a path against the references at another."""

    results: str
    references: str
    name: str
    title: str
    metrics: tuple[str, ...]
    pipeline: str
    limit: int
    output: str
    data: bytes = b""
    spice_text: SpiceText = "written"


class TaskFailed(msgspec.Struct, frozen=True, tag="error"):
    """The task failed with an error of a kind, perhaps for want of memory or of room on the server's disk."""

    lacks: Literal["", "memory", "disk"]
    kind: str


SandboxTask: TypeAlias = Validate | Prepare | Finish | ReportTask
SandboxReply: TypeAlias = Validated | Prepared | Finished | TaskFailed | None


def _validate(task: Validate) -> Validated:
    splits = {name: split_images(read_images(Path(path)) for path in paths) for name, paths in task.splits.items()}
    by_split, faults = read_submission(
        task.path,
        task.file_name,
        task.split,
        splits,
        with_defaults(pb.ChallengeSettings.FromString(task.settings)),
        caption_characters=task.caption_characters,
    )
    folder = Path(task.output)
    if faults:
        path = folder / "faults"
        path.write_bytes(packed(faults))
        return Validated(faults=str(path), fault_count=len(faults))
    results, empty = {}, {}
    for number, (split, captions) in enumerate(by_split.items()):
        path = folder / f"results-{number}"
        path.write_bytes(packed(captions))
        results[split] = str(path)
        empty[split] = sum(not caption.strip() for caption in captions.values())
    return Validated(results, empty)


def _prepare(task: Prepare) -> Prepared:
    try:
        with open_source(task.path) as opened:
            source = opened._replace(name="annotations")
            annotations = annotations_of(source, read_all(source, limits=DEFAULT_LIMITS))
            domains = _domains(annotations.tags, annotations.captions)
    except (DataError, InputError, LimitError) as error:
        first, *rest = str(error).replace(task.path, "annotations").splitlines()
        return Prepared(faults=tuple(line.strip() for line in rest) or (first,))
    with Path(task.output).open("wb") as stream:
        stream.writelines(reference_frames(annotations.captions, annotations.file_names, domains))
    counts = [len(texts) for texts in annotations.captions.values()]
    if not any(counts):
        return Prepared(faults=("annotations: no image has a caption",))
    described = Counter(domains[key] for key, texts in annotations.captions.items() if texts and key in domains)
    return Prepared(sum(map(bool, counts)), sum(counts), domains=dict(sorted(described.items())))


def _domains(given: Mapping[int | str, str], captions: Mapping[int | str, Sequence[str]]) -> dict[int | str, str]:
    """Return the domain of each image of references: of all that have captions, or of none."""
    domains = dict(given)
    lacking = [key for key, texts in captions.items() if texts and key not in domains]
    if domains and lacking:
        raise InputError(
            f"annotations: image {lacking[0]} lacks a domain, which others have ({len(lacking):,} lack one)"
        )
    if wrong := sorted(name for name in set(domains.values()) if not _DOMAIN.fullmatch(name)):
        raise InputError(f"annotations: the domain {wrong[0]!a} is not 1 to 40 letters, digits, '.', '_' or '-'")
    if len(set(domains.values())) > _MOST_DOMAINS:
        raise InputError(f"annotations: more than {_MOST_DOMAINS} domains")
    return domains


def _task_scores(run: Run, domain: str) -> Iterator[TaskScore]:
    """Yield the scores of a metric, each with its interval, and how many images it is a mean of."""
    bounds = {bound.name: bound for bound in run.intervals}
    headline = {score.name for score in run.headline}
    for score in run.scores:
        bound, images = bounds[score.name], sum(value is not None for value in score.each)
        yield TaskScore(
            score.name,
            score.value,
            bound.low,
            bound.high,
            None if score.name in headline and not domain else images,
            domain,
        )


def finish(task: Finish) -> Finished:
    """Return the scores of all metrics, with 95 % intervals."""
    from spicegraph_scorer.core.results import run_of  # noqa: PLC0415
    from spicegraph_scorer.core.significance import Resampling  # noqa: PLC0415

    with Path(task.statistics).open("rb") as stream:
        chunks = [ChunkStatistics.unpack(data) for data in iter(lambda: read_frame(stream), None)]
    parts = _places_of_domains(task)
    errors = error_rows([item for chunk in chunks for item in chunk.errors])
    resources = Resources(lambda: FunctionSource.of_table("parsed by the workers", {}), data=unpack_data(task.data))
    rows: list[TaskScore] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an undefined score says so by itself
        for domain, name in product(parts, task.metrics):
            metric = METRICS[name].make(resources)
            collected = [item for chunk in chunks for item in chunk.metrics[name]]
            if domain:  # as if its images had been scored alone
                collected = [collected[place] for place in parts[domain]]
            run = run_of(name, metric, metric.finish(collected), confidence=Resampling())
            rows += _task_scores(run, domain)
    return Finished(tuple(rows), errors)


def _places_of_domains(task: Finish) -> dict[str, list[int]]:
    """Return where the images of each domain stand among those with captions; the domain without a name has others."""
    places: dict[str, list[int]] = {"": []}
    images = read_images(Path(task.references)) if task.references else ()
    for place, image in enumerate(image for image in images if image.references):
        places.setdefault(image.domain, []).append(place)
    return dict(sorted(places.items()))


def error_rows(items: Iterable[Iterable[tuple[str, tuple[str, ...]]]]) -> tuple[ErrorRow, ...]:
    """Return the kinds of each item's errors that enough images have, and the most frequent words of them."""
    from spicegraph_scorer.errors import KINDS, ErrorSide  # noqa: PLC0415

    found = Counter(error for errors in items for error in {*errors, *((kind, ()) for kind, _ in errors)})
    rows = []
    for (kind, words), count in found.items():
        if images := count // _ROUNDED * _ROUNDED:
            columns = KINDS[kind].columns if words else ()
            rows.append(ErrorRow(kind, KINDS[kind].title, words, columns, images))
    rows.sort(key=lambda row: (-row.images, row.kind, row.words))
    told = [row for row in rows if not row.words]
    for side, most in zip(ErrorSide, _ERROR_WORDS, strict=True):
        told += [row for row in rows if row.words and KINDS[row.kind].side is side][:most]
    return tuple(told)


def _report(task: ReportTask) -> None:
    """Write the error report of a submission, which shows references: for organisers."""
    from spicegraph_service.report import REPORT_FORMATS, ReportFormat, ReportOptions, build_report  # noqa: PLC0415

    captions = read_results(Path(task.results))
    items = [Item(key, captions[key], texts) for key, texts in read_references(Path(task.references))]
    if task.limit < len(items):
        spread = [items[index * len(items) // task.limit] for index in range(task.limit)]
    shown = check_items(spread if task.limit < len(items) else items, empty="zero", control_tokens="keep")
    part = f" ({len(shown):,} of {len(items):,} images, evenly spread)" if len(shown) < len(items) else ""
    data = replace(unpack_data(task.data), spice_text=task.spice_text)
    options = ReportOptions(metrics=task.metrics, title=task.title + part, data=data)
    system = System(task.name, shown)
    report = build_report([system], options, pipeline=task.pipeline)
    Path(task.output).write_text(REPORT_FORMATS[ReportFormat.HTML](report), encoding="utf-8")


WORK: Mapping[type[SandboxTask], Callable[[Any], SandboxReply]] = {
    Validate: _validate,
    Prepare: _prepare,
    Finish: finish,
    ReportTask: _report,
}
"""How each task is done. What only one of them needs is imported there: every task has a process of its own."""

LIMITS: Mapping[type[SandboxTask], tuple[int, int]] = {
    Validate: (1 << 30, 60),
    Prepare: (8 << 30, 600),
    Finish: (0, 3600),
    ReportTask: (0, 3600),
}
"""What a task may take: bytes beyond the process's own (0: any), and seconds."""
