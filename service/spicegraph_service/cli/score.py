"""``spicegraph score``: files of captions in, scores out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import METRICS
from spicegraph_service.cli import options
from spicegraph_service.engines import CandidateRule, Engine, Task
from spicegraph_service.engines.table import ENGINES, find_engine
from spicegraph_service.output.results import ResultFormat, ResultOutput
from spicegraph_service.output.terminal import say, warned_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.results import Result, Summary


_PER_ITEM = frozenset({ResultFormat.JSONL, ResultFormat.CSV, ResultFormat.SPICE})
_WITHOUT_ITEMS = frozenset({ResultFormat.TABLE, ResultFormat.PARQUET})
_WITH_EXPLANATIONS = frozenset({ResultFormat.JSON, ResultFormat.JSONL})
_OF_SERVERS = frozenset({ResultFormat.TABLE, ResultFormat.JSON})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """What is scored, and what is written of it.

    Input:
        candidates: If an image has several candidates: refuse them (one), score the best by SPIDEr (best: SPIDEr-max),
            score each as an item of its own (each), or all together (set): AllSPICE, and mean and best of each score.

    Output:
        form: The format of the result; spice is the jar's own JSON. Default: the one of -o's file ending, else a table.
        output: Write to this file or, as Parquet, to the URL of an object; with --engine ray also to a folder/ of
            parts. Without --format the table is printed too.
        explain: In JSON and JSON Lines: for spice-g, every tuple's best partner and which changes would raise the score
            most; for chair, the objects that a caption mentions; for capture, what each element found; for fluency, the
            probability of each kind of error.
        credit: In JSON and JSON Lines: what each word of a caption earned or cost of its SPICE, SPICE-G, CIDEr or
            SPIDEr; the credits of the words add up to the score.

    Intervals:
        confidence: Add a 95 % bootstrap interval to every corpus score.
        seed: Seed of the resampling: the same seed gives the same intervals.
    """

    form: Annotated[ResultFormat | None, typer.Option("--format")] = None
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE")] = None
    candidates: Annotated[CandidateRule, typer.Option()] = CandidateRule.ONE
    explain: Annotated[bool, typer.Option("--explain")] = False
    credit: Annotated[bool, typer.Option("--credit")] = False
    confidence: Annotated[bool, typer.Option("--confidence")] = False
    seed: Annotated[int, typer.Option(min=0)] = 12345

    @property
    def target(self) -> ResultOutput:
        """Where the result goes, and in which format."""
        return ResultOutput(self.form, self.output)

    @property
    def resampling(self) -> Resampling | None:
        """How intervals are drawn; ``None``: there are none."""
        return Resampling(seed=self.seed) if self.confidence else None

    def check(self, metrics: Sequence[str]) -> None:
        """Refuse a format that cannot hold what is asked for, and evidence that none of the metrics has."""
        if self.explain:
            self._check_evidence("--explain", "explains", metrics)
        if self.credit:
            self._check_evidence("--credit", "credits", metrics)
        if self.target.format is ResultFormat.SPICE:
            _check_spice(metrics)
        if self.confidence and self.form in _PER_ITEM:
            raise InputError(
                f"--confidence: intervals are of corpus scores, but {self.form} contains only the scores of images; "
                "use table, json or parquet"
            )

    def _check_evidence(self, option: str, ability: str, metrics: Sequence[str]) -> None:
        able = [name for name, entry in METRICS.items() if getattr(entry.kind, ability)]
        if set(able).isdisjoint(metrics) or self.target.format not in _WITH_EXPLANATIONS:
            raise InputError(f"{option} needs the metric {' or '.join(able)} and the format json or jsonl")


def _check_spice(metrics: Sequence[str]) -> None:
    """Refuse the jar's format where none of its metrics is computed."""
    from spicegraph_scorer.metrics.spice.metric import JAR_METRICS  # noqa: PLC0415 (only this format needs it)

    if set(JAR_METRICS).isdisjoint(metrics):
        raise InputError("--format spice writes SPICE results: add spice or spice-exact to --metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Where captions are scored, and what takes the place of parsing.

    Speed:
        engine: Where to score: on this machine, or on a Ray cluster: the one that RAY_ADDRESS names, else a new one on
            this machine. Ray reads JSON Lines or Parquet: a file, a folder, or a URL such as s3://bucket/folder.

    Parsing:
        parses: Take every caption's parse from this CoNLL-U file (Universal Dependencies v1 or v2, with # text) instead
            of parsing.
        graphs: Read captions such as ( man , ride , horse ) as scene graphs, on either side, for SPICE; also in the
            other notations of parse --graphs.
    """

    engine: Annotated[str, typer.Option(metavar=f"<{'|'.join(ENGINES)}>")] = "local"
    parses: Annotated[str | None, typer.Option(metavar="FILE")] = None
    graphs: Annotated[bool, typer.Option("--graphs")] = False


def score(
    sources: Annotated[list[str], typer.Argument(metavar="INPUT")],
    *,
    given: options.InputOptions,
    scoring: options.ScoringOptions,
    wanted: ScoreOptions,
    parsing: options.ParsingOptions,
    place: EngineOptions,
    remote: options.RemoteOptions,
) -> None:
    """Score captions against references, with SPICE by category and the COCO metrics.

    Input:
        sources: Captions in any shape that spicegraph inputs knows: the SPICE jar's JSON, COCO results with
            --references, JSON Lines, captions by id, tables, plain text ...; - reads standard input. The scores of
            several systems, each a file or NAME=FILE, are shown side by side, as table or json; csv, markdown and latex
            have a line for each system, with SPICE by category and the best marked.
    """
    names = scoring.names
    target = wanted.target
    engine = find_engine(place.engine)
    target.check(folders=engine.summarize is not None)
    wanted.check(names)
    systems = _systems(sources)
    if len(systems) > 1:
        target.check_systems()
        if engine.score_systems is None:
            raise InputError(f"--engine {place.engine} scores one INPUT at a time, and {len(systems)} are given")
    if remote.server is not None:
        _check_remote(wanted, place, sources)
        from spicegraph_service.cli import remote as calls  # noqa: PLC0415 (only who asks a server needs grpc)

        items = given.system(sources[0], empty=scoring.empty).items
        target.write_parts(*calls.scored(items, calls.settings(scoring, parsing), wanted.resampling, remote))
        return
    task = _task(next(iter(systems.values())), given, scoring, wanted, parsing=parsing, place=place)
    with warned_progress() as progress:
        task = replace(task, progress=progress)
        engine.check(task, name=place.engine)
        if len(systems) == 1 or engine.score_systems is None:
            target.write(_scored(task, engine, target))
            return
        scored = engine.score_systems([replace(task, source=source) for source in systems.values()])
        results = dict(zip(systems, scored, strict=True))
    target.write_systems(results)


def _systems(sources: Sequence[str]) -> dict[str, str]:
    """Return the file of each system, by its name; a single one has no name in front of its file."""
    files = list(sources) if len(sources) == 1 else [options.system_name(source)[1] for source in sources]
    if files.count("-") > 1:
        raise InputError("standard input (-) is named more than once, but can be read only once")
    return dict(zip(options.system_names(sources), files, strict=True))


def _check_remote(wanted: ScoreOptions, place: EngineOptions, sources: Sequence[str]) -> None:
    """Refuse what a server does not do."""
    own = (wanted.explain, wanted.credit, place.parses, place.graphs, place.engine != "local", sources[1:])
    if any(own) or wanted.candidates is not CandidateRule.ONE or wanted.target.format not in _OF_SERVERS:
        raise InputError("--server scores one INPUT, as table or json, without --explain, --credit and the like")


def _task(
    source: str,
    given: options.InputOptions,
    scoring: options.ScoringOptions,
    wanted: ScoreOptions,
    *,
    parsing: options.ParsingOptions,
    place: EngineOptions,
) -> Task:
    """Return what an engine is asked for."""
    is_spice = wanted.target.format is ResultFormat.SPICE
    return Task(
        source,
        scoring.names,
        parsing.parser,
        workers=parsing.workers,
        cache=parsing.cache_place,
        **given.reading(scoring.language),
        control_tokens=given.control_tokens or ("keep" if is_spice else "refuse"),
        empty=scoring.empty,
        candidates=wanted.candidates,
        parses=place.parses,
        graphs=place.graphs,
        explain=wanted.explain,
        credit=wanted.credit,
        evidence=is_spice,
        confidence=wanted.resampling,
        data=scoring.data(*(("spider",) if wanted.candidates is CandidateRule.BEST else ())),
        say=say,
    )


def _scored(task: Task, engine: Engine, target: ResultOutput) -> Result | Summary:
    """Score a task; if the output does not need the items on this machine, they are neither kept nor written here."""
    if task.confidence is not None and target.is_folder:
        raise InputError(
            "--confidence resamples all items, but a folder of parts is for corpora whose items do not fit in memory: "
            "name a file"
        )
    if engine.summarize is None or task.confidence is not None or target.format not in _WITHOUT_ITEMS:
        return engine.score(task)
    return engine.summarize(task, target.path if target.format is ResultFormat.PARQUET else None)
