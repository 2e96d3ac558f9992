"""Where captions are parsed and scored: on this machine, or on several."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.readers.read import IdRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.facts import Progress
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.results import Result, Summary
    from spicegraph_scorer.core.significance import Resampling
    from spicegraph_scorer.metrics import Factory
    from spicegraph_scorer.readers.checks import Empty
    from spicegraph_scorer.readers.marks import ControlTokens
    from spicegraph_scorer.readers.tables import Columns


class CandidateRule(StrEnum):
    """Which of several candidates of an image are scored, or all as a set."""

    ONE = "one"
    BEST = "best"
    EACH = "each"
    SET = "set"


class System(NamedTuple):
    """A system's name and its items; of sets of captions, the captions of each candidate."""

    name: str
    items: tuple[Item, ...]
    sets: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Rewrite(NamedTuple):
    """Preprocessing of candidates before scoring, with its key and value in the signature."""

    key: str
    value: str
    make: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Task:
    """Input and options of a scoring run."""

    source: str  # a file, or what else the engine reads
    metrics: tuple[str, ...]  # names of metrics and groups
    pipeline: str = DEFAULT_PIPELINE  # installed on every machine of the engine
    workers: int = 1  # processes or actors that parse
    cache: str | None = None  # a store of parses that every machine reaches; ``None``: nowhere
    columns: Columns | None = None  # of tables; ``None``: found by their usual names
    references: Sequence[str] | None = None  # files; ``None``: the source holds them
    partial: bool = False  # score only the images that have a candidate
    ids: IdRule = IdRule.GIVEN
    split: str | None = None  # of the references; ``None``: the one of the candidates
    caption_language: str | None = None  # of files with captions in several languages; ``None``: English
    drop_empty_references: bool = False
    empty: Empty = "refuse"
    control_tokens: ControlTokens = "refuse"
    rewrite: Rewrite | None = None  # what is scored in place of each candidate
    candidates: CandidateRule = CandidateRule.ONE
    parses: str | None = None  # a CoNLL-U file with the parses of all captions
    graphs: bool = False  # captions are scene graphs such as ``( man , ride , horse )``
    explain: bool = False  # keep what explains each score
    more: Mapping[str, Factory] = field(default_factory=dict)  # further metrics
    credit: bool = False  # divide each score among the words of its caption
    evidence: bool = False  # keep the tuples that each score was counted from
    confidence: Resampling | None = None  # how intervals of the corpus scores are drawn; ``None``: without
    data: MetricData = field(default_factory=MetricData)
    progress: Progress | None = field(default=None, compare=False)  # what, done, of how much
    say: Callable[[str], None] | None = field(default=None, compare=False)  # a line on the input


@dataclass(frozen=True, slots=True)
class Engine:
    """Where captions are parsed and scored."""

    score: Callable[[Task], Result]  # all items are held in memory
    # Returns the corpus scores, and writes the items' to a Parquet file, if one is named; ``None``: holds all items.
    summarize: Callable[[Task, str | None], Summary] | None = None
    # Scores tasks that differ in their source alone, parsing no caption twice; ``None``: one system at a time.
    score_systems: Callable[[Sequence[Task]], Iterator[Result]] | None = None
    unsupported: Mapping[str, str] = field(default_factory=dict)  # fields of a task, with what users call them

    def check(self, task: Task, *, name: str) -> None:
        """Refuse a task that the engine can't do."""
        defaults = {each.name: each.default for each in fields(Task)}
        given = [option for key, option in self.unsupported.items() if getattr(task, key) != defaults[key]]
        if given:
            raise InputError(f"--engine {name} does not support {', '.join(given)}")
