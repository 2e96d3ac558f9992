"""What a report holds. The HTML, the JSON and the Markdown are made from these values and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.categories import Counts
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.metric import Judgement, Working
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.core.significance import Comparison
    from spicegraph_scorer.errors import ErrorKind, Hallucination, WrongStatement
    from spicegraph_service.output.standing import Standing


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A corpus score with its bootstrap interval, its rank among the systems (1 is best), and whether low is good."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    rank: int | None = None
    lower_is_better: bool = False


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """A SPICE category: means over the ``items`` that have it, and summed counts (``tp``, ``fp``, ``fn``)."""

    name: str
    f: float | None
    low: float | None
    high: float | None
    pr: float | None
    re: float | None
    items: int
    tp: int
    fp: int
    fn: int


@dataclass(frozen=True, slots=True)
class MeanRow:
    """The mean score of some of the items, such as those with captions of 9 to 11 words."""

    label: str
    items: int
    mean: float | None


@dataclass(frozen=True, slots=True)
class DigitCounts:
    """Counts that a system writes in digits, which SPICE's Cardinality does not know, though SPICE matches them."""

    captions: int  # candidates or references of a candidate with such counts
    f: float | None  # Cardinality's mean F1 with digits read as words ("2" as "two")
    items: int  # that the mean rests on


@dataclass(frozen=True, slots=True)
class SystemView:
    """Everything about one system but its images; ``wrong`` is empty without the metric ``spice-g``."""

    name: str
    scores: tuple[ScoreRow, ...]
    categories: tuple[CategoryRow, ...]
    hallucinations: tuple[Hallucination, ...]
    kinds: tuple[ErrorKind, ...]
    distribution: tuple[MeanRow, ...]
    by_length: tuple[MeanRow, ...]
    by_references: tuple[MeanRow, ...]
    wrong: tuple[WrongStatement, ...] = ()
    digits: DigitCounts | None = None  # where there are any


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """An image and how much better the second system's SPICE is there; ``item`` is its position."""

    item: int
    image_id: ItemId
    first: float
    second: float

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a tuple comes from: caption number, rule, and the spans of its words (code points)."""

    caption: int
    rule: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TupleView:
    """A tuple, its mentions, and its partners on the other side, all by their positions among its side's tuples."""

    strings: tuple[str, ...]  # object; object and attribute; or subject, relation, object
    mentions: tuple[Mention, ...]
    partners: tuple[int, ...]
    how: tuple[int, ...] = ()  # by slot 0 for the same string, else the WordNet synset that connects them
    kind: str | None = None  # of error
    counterpart: int | None = None  # what the other side has instead
    near: str | None = None  # why it almost matches
    merged: tuple[int, ...] = ()  # synsets for which an object's names were merged


@dataclass(frozen=True, slots=True)
class GradedView:
    """SPICE-G of one caption: the score and its explanation."""

    score: float
    explanation: Judgement


class TupleState(IntEnum):
    """Whose a part of the picture is."""

    MATCHED = 0
    MISSED = 1
    INVENTED = 2
    NEAR = 3


@dataclass(frozen=True, slots=True)
class CardPicture:
    """An object's card: name, state, corner and size in pixels, attributes with their states and tuples."""

    name: str
    state: TupleState
    x: int
    y: int
    width: int
    height: int
    attributes: tuple[tuple[str, TupleState, int], ...]
    tuple: int = 0  # its position among the references' tuples, or the candidate's if no reference has it


@dataclass(frozen=True, slots=True)
class ArrowPicture:
    """All relations from one object to another, each with its tuple, and the points that the arrow leads through."""

    labels: tuple[tuple[str, TupleState, int], ...]
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """Cards and arrows, and the size of the whole in pixels."""

    width: int
    height: int
    boxes: tuple[CardPicture, ...]
    lines: tuple[ArrowPicture, ...]


@dataclass(frozen=True, slots=True)
class SentenceView:
    """A sentence: its place in the caption, the tuples (positions) with a word in it, and how many have a partner."""

    start: int
    end: int
    tuples: tuple[int, ...]
    matched: int


@dataclass(frozen=True, slots=True)
class ObjectView:
    """An object and all that is said of it: positions of its own tuple, its attributes, and relations at either end."""

    object: int
    attributes: tuple[int, ...]
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SideView:
    """The sentences of each caption of a side, and its objects, those of which most is said first."""

    sentences: tuple[tuple[SentenceView, ...], ...]
    objects: tuple[ObjectView, ...]


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One system's caption of an image: scores, tuples of both sides, and the overlaid graphs."""

    caption: str
    scores: tuple[float | None, ...]  # F1 by category; ``None`` without reference tuples
    candidate: tuple[TupleView, ...]
    reference: tuple[TupleView, ...]
    picture: GraphPicture
    graded: GradedView | None = None  # with ``spice-g``
    counts: tuple[Counts, ...] = ()  # by category: matched, of the candidate, of the references
    metrics: tuple[float | None, ...] = ()  # in the order of ``Report.metrics``
    workings: tuple[Working, ...] = ()  # how scores come about
    credits: Mapping[str, Credit] = field(default_factory=dict)  # by score
    description: Mapping[str, SideView] | None = None  # by side, if a caption has sentences


@dataclass(frozen=True, slots=True)
class ImageView:
    """An image: its references, and every system's caption in the order of ``Report.systems``."""

    id: ItemId
    references: tuple[str, ...]
    source: str | None
    candidates: tuple[CandidateView, ...]


@dataclass(frozen=True, slots=True)
class GateResult:
    """Result of one regression check: the second system's score minus the first's."""

    condition: str
    passed: bool
    difference: float | None
    low: float | None
    high: float | None
    p: float | None  # the larger of both tests


@dataclass(frozen=True, slots=True)
class Provenance:
    """When and how a report was made: the time (ISO 8601, UTC), the command if there was one, and the files read."""

    # Of each file ``inputs`` has the ``name`` without its folder, and the ``sha256`` of its bytes.

    time: str
    command: str | None = None
    inputs: tuple[Mapping[str, str], ...] = ()


_OF_SETS = (
    "Sets of captions: AllSPICE, its categories, the errors and the graphs are of what the captions of an image say as "
    "one; of each score, “average” is the mean of these captions, and “oracle” the best of them"
)


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report."""

    title: str
    version: str
    signature: Mapping[str, Json]
    items: int
    categories: tuple[str, ...]  # the names of ``CandidateView.scores``
    systems: tuple[SystemView, ...]
    human: SystemView | None  # each image's first reference against its others, if all have several
    tests: Mapping[tuple[str, str], Sequence[Comparison]]  # the second system minus the first
    gained: tuple[ScoreChange, ...]  # of two systems: where the second's SPICE is better by most
    lost: tuple[ScoreChange, ...]  # and where it is worse
    images: tuple[ImageView, ...]
    # Of ``TupleView.how`` and ``TupleView.merged``: each synset of WordNet 3.0 has a name (sofa.n.01) and a gloss.
    synsets: Mapping[int, tuple[Mapping[str, str], ...]]
    metrics: tuple[str, ...] = ()  # the names of ``CandidateView.metrics``
    made: Provenance | None = None
    headline: str = "SPICE"  # the score that the verdict names
    standings: tuple[Standing, ...] = ()  # who is best in each category
    gates: tuple[GateResult, ...] = ()
    warnings: tuple[str, ...] = ()  # what readers should know of the captions, in sentences
    of_sets: bool = False  # a candidate is a set of captions, a line each

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers: how sets are scored, and the warnings."""
        return (_OF_SETS, *self.warnings) if self.of_sets else self.warnings

    def shown(self, name: str) -> str:
        """Return a score's display name: ``AllSPICE`` for SPICE of caption sets."""
        return f"All{name}" if self.of_sets and name == "SPICE" else name
