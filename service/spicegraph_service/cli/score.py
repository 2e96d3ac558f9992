"""``spicegraph score``: a file of captions in, scores out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.core.wording import counted
from spicegraph_scorer.metrics import fact_readers, needs_loose
from spicegraph_scorer.readers import Dataset, parse_columns, read_items
from spicegraph_scorer.scoring import SharedFacts
from spicegraph_scorer.scoring import score as score_items
from spicegraph_scorer.several import choose_best
from spicegraph_scorer.sources import GraphTexts, check_graphs, read_parses
from spicegraph_service.cli.inputs import warn_of_copies
from spicegraph_service.cli.options import (
    CacheOption,
    CategoriesOption,
    ColumnsOption,
    FrequenciesOption,
    MetricsOption,
    PipelineOption,
    ReferencesOption,
    VectorsOption,
    WorkersOption,
    cache_at,
    metric_data,
    names_of,
)
from spicegraph_service.engines.local import local_facts
from spicegraph_service.engines.ray import RayOptions, score_on_ray, summarize_on_ray
from spicegraph_service.output.formats import ResultFormat
from spicegraph_service.output.results import ResultOutput
from spicegraph_service.output.terminal import say, warned_progress

if TYPE_CHECKING:
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Json, Result
    from spicegraph_scorer.core.summary import Summary
    from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies

__all__ = ["CandidateRule", "Engine", "score"]


class Engine(StrEnum):
    """Where captions are parsed and scored."""

    LOCAL = "local"
    RAY = "ray"


class CandidateRule(StrEnum):
    """What becomes of several candidates of an image."""

    ONE = "one"
    BEST = "best"
    EACH = "each"


_EXPLAINED = "spice-g"
_IN_SPICE_FORMAT = frozenset({"spice", "spice-exact"})
_ONE_ITEM_A_ROW = frozenset({ResultFormat.JSONL, ResultFormat.CSV, ResultFormat.SPICE})
_WITHOUT_ITEMS = frozenset({ResultFormat.TABLE, ResultFormat.PARQUET})
_WITH_EXPLANATIONS = frozenset({ResultFormat.JSON, ResultFormat.JSONL})


def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="The SPICE jar's JSON (image_id, test, refs), COCO results with --references, JSON Lines, "
            "captions by id, CSV, TSV, Parquet, plain text, or a zip of one of them; - reads standard input.",
        ),
    ],
    *,
    references: ReferencesOption = None,
    columns: ColumnsOption = None,
    metrics: MetricsOption = "spice",
    form: Annotated[
        ResultFormat | None,
        typer.Option(
            "--format",
            help="How to write the result; spice is the jar's own JSON. Default: a table, and for -o what "
            "the file's ending says.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to this file, or, as Parquet, to the URL of an object; with --engine ray also to a folder/ of "
            "parts. Without --format the table is shown too.",
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Score only the images of --references that have a result.")
    ] = False,
    candidates: Annotated[
        CandidateRule,
        typer.Option(
            help="Of an image: one candidate, the best of several by SPIDEr (SPIDEr-max), or each of several as an "
            "item of its own."
        ),
    ] = CandidateRule.ONE,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Of SPICE-G, in JSON and JSON Lines: every tuple's best partner, and what would raise the score most.",
        ),
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add 95 % bootstrap intervals of every corpus score.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the intervals' resamples: the same seed, the same intervals.")
    ] = 12345,
    categories: CategoriesOption = None,
    frequencies: FrequenciesOption = None,
    vectors: VectorsOption = None,
    workers: WorkersOption = 1,
    cache: CacheOption = "none",
    pipeline: PipelineOption = DEFAULT_PIPELINE,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Where to score: in processes here, or on a Ray cluster: the one that RAY_ADDRESS names, else one of "
            "this machine. Ray reads JSON Lines or Parquet: a file, a folder, or a URL such as s3://bucket/folder."
        ),
    ] = Engine.LOCAL,
    parses: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Take every caption's parse from this CoNLL-U file (Universal Dependencies v1 or v2, with # text) "
            "instead of parsing.",
        ),
    ] = None,
    graphs: Annotated[
        bool,
        typer.Option(
            "--graphs", help="Read captions such as ( man , ride , horse ) as scene graphs, on either side, for SPICE."
        ),
    ] = False,
) -> None:
    """Score captions against references, with SPICE by category and the COCO metrics."""
    names = names_of(metrics)
    place = ResultOutput(form, output)
    place.check(folders=engine is Engine.RAY)
    if explain:
        _check_explained(names, place.format)
    if place.format is ResultFormat.SPICE and _IN_SPICE_FORMAT.isdisjoint(names):
        raise InputError("--format spice holds SPICE results: ask for the metric spice or spice-exact")
    if confidence and place.form in _ONE_ITEM_A_ROW:
        raise InputError(
            f"--confidence: {place.form} holds the images' scores, but the intervals are the corpus's; "
            "table, json and parquet have room for them"
        )
    computed = (*names, "spider") if candidates is CandidateRule.BEST else names
    told = metric_data(computed, frequencies=frequencies, categories=categories, vectors=vectors)
    named = parse_columns(columns) if columns is not None else None
    resampling = Resampling(seed=seed) if confidence else None
    several = candidates is not CandidateRule.ONE
    result: Result | Summary
    with warned_progress() as progress:
        if engine is Engine.RAY:
            spice = place.format is ResultFormat.SPICE
            _refuse_with_ray(references, partial, several, parses, graphs, explain, spice)
            options = RayOptions(
                pipeline,
                workers=workers,
                cache=cache_at(cache),
                columns=named,
                confidence=resampling,
                frequencies=told.frequencies,
                categories=told.categories,
                vectors=told.vectors,
                progress=progress,
            )
            result = _score_on_ray(source, names, options, place)
        else:
            given = read_parses(parses) if parses is not None else None
            dataset = read_items(source, references=references, partial=partial, several=several, columns=named)
            say(_description(dataset))
            warn_of_copies(dataset.source, dataset.items)
            if graphs:
                check_graphs(dataset.items, source=dataset.source)
            loose = needs_loose(names)
            with local_facts(pipeline, workers=workers, cache=cache_at(cache), loose=loose) as facts:
                parsed = given or facts
                keep = candidates is CandidateRule.BEST or fact_readers(names) > 1
                shared = SharedFacts(GraphTexts(parsed) if graphs else parsed, progress, keep=keep)
                items, kept = _kept(dataset, candidates, shared, told.frequencies)
                scored = score_items(
                    items,
                    names,
                    pipeline=shared,
                    progress=progress,
                    confidence=resampling,
                    frequencies=told.frequencies,
                    categories=told.categories,
                    vectors=told.vectors,
                    explain=explain,
                    evidence=place.format is ResultFormat.SPICE,
                )
            result = replace(scored, signature={**scored.signature, **kept})
    place.write(result)


def _score_on_ray(source: str, names: tuple[str, ...], options: RayOptions, place: ResultOutput) -> Result | Summary:
    """Score on a cluster; scores of items that are asked for as Parquet are written there, and not held here."""
    if options.confidence is not None and place.is_folder:
        raise InputError("--confidence draws from all items, which a folder of parts is for doing without: name a file")
    if options.confidence is not None or place.format not in _WITHOUT_ITEMS:
        return score_on_ray(source, names, options)
    scores = place.path if place.format is ResultFormat.PARQUET else None
    return summarize_on_ray(source, names, options, scores=scores)


def _check_explained(names: tuple[str, ...], form: ResultFormat) -> None:
    if _EXPLAINED not in names or form not in _WITH_EXPLANATIONS:
        raise InputError("--explain explains the metric spice-g, in the formats json and jsonl: ask for both")


_LOCAL_ONLY = ("--references", "--partial", "--candidates", "--parses", "--graphs", "--explain", "--format spice")


def _refuse_with_ray(*values: object) -> None:
    """Refuse options, given in the order of their names, that only the local engine knows."""
    given = [name for name, value in zip(_LOCAL_ONLY, values, strict=True) if value]
    if given:
        raise InputError(
            f"--engine ray has no {', '.join(given)}: its input holds the references, and its output scores"
        )


def _description(dataset: Dataset) -> str:
    items = counted(len(dataset.items), "item")
    images = f" of {counted(len(set(dataset.images)), 'image')}" if dataset.images else ""
    references = f"; references: {dataset.references}" if dataset.references else ""
    left_out = f"; {counted(dataset.left_out, 'image')} without a result left out" if dataset.left_out else ""
    return f"{dataset.source}: {dataset.format}, {items}{images}{references}{left_out}"


def _kept(
    dataset: Dataset, rule: CandidateRule, facts: FactSource, frequencies: DocumentFrequencies | None
) -> tuple[tuple[Item, ...], dict[str, Json]]:
    """Return the candidates to score, and what the signature says of them."""
    if not dataset.images:
        return dataset.items, {}
    numbers = Counter(dataset.images).values()
    counts: dict[str, Json] = {"min": min(numbers), "max": max(numbers)}
    if rule is CandidateRule.EACH:
        return dataset.items, {"candidates": {**counts, "scored": "each"}}
    choice = choose_best(dataset.items, dataset.images, facts, frequencies=frequencies)
    return choice.items, {"candidates": {**counts, "scored": f"best by {choice.by}"}}
