"""CHAIR: which of the 80 COCO objects a caption mentions that are not in the image (Rohrbach et al., EMNLP 2018)."""
# Objects are found by words alone, as the paper does: plurals as singulars, two-word names before single words, and
# each word as the class that the published list of synonyms gives it.

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.data import Instances, Resources
from spicegraph_scorer.core.metric import Matrix, Metric, Needs, Score, Vector, Working

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_api.v1.scores_pb2 import ItemResult
    from spicegraph_scorer.core.results import Json
    from spicegraph_scorer.core.tokens import Corpus

NAMES: Final = ("CHAIRi", "CHAIRs", "CHAIR_Recall")

_SYNONYMS: Final = files("spicegraph_graded").joinpath("data", "chair.txt").read_text(encoding="utf-8")
# The published synonyms, as far as they can match: "motor bike" and "cheesecake" stand behind two spaces in the list,
# so that the original program never finds them; "iPhone" has a capital letter.

CLASSES: Final[Mapping[str, str]] = {
    word.replace("_", " "): name.replace("_", " ")
    for name, _, words in (entry.partition(":") for entry in re.split(r"\n(?! )", _SYNONYMS.strip()))
    for word in (name, *words.split())
}  # The class of each word and two-word name: ``sofa`` is a ``couch``.

_ANIMALS: Final = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")
_TWO_WORDS: Final[Mapping[str, str]] = {
    **{name: name for name in CLASSES if " " in name and name != "dining table"},
    **{name: name for name in ("motor bike", "home plate", "train track")},  # names of nothing that is counted
    **{f"{age} {animal}": animal for age in ("baby", "adult") for animal in (*_ANIMALS, "animal", "cub")},
    **{f"passenger {vehicle}": vehicle for vehicle in ("jet", "train")},
    "bow tie": "tie",
    "toilet seat": "toilet",
}
_SECOND: Final = frozenset(name.split()[1] for name in _TWO_WORDS)
_FIRST: Final = frozenset(name.split()[0] for name in _TWO_WORDS)
_KNOWN: Final = frozenset(CLASSES) | _FIRST | _SECOND
_IRREGULAR: Final = (("men", "man"), ("geese", "goose"), ("mice", "mouse"))
_ENDINGS: Final = (("ies", "y"), ("ves", "fe"), ("ves", "f"), ("es", ""), ("s", ""))
_TOKEN: Final = re.compile(r"\w+(?:-\w+)*|[^\w\s]")


class ObjectMention(NamedTuple):
    """An object that a caption mentions: the class, the words and their places, as character offsets."""

    object: str
    words: str
    span: tuple[int, int]
    hallucinated: bool = False  # the image is known, and does not have it


@lru_cache(maxsize=50_000)
def _singular(word: str) -> str:
    """Return the singular of a plural, if that is one of the words that matter; the word itself otherwise."""
    if word in _KNOWN:
        return word
    for suffix, base in (*_ENDINGS, *_IRREGULAR):
        if word.endswith(suffix) and (shorter := word.removesuffix(suffix) + base) in _KNOWN:
            return shorter
    return word


def mentions(caption: str) -> list[ObjectMention]:
    """Return the COCO objects that a caption mentions, in order, each as often as it is mentioned."""
    tokens = [(named.group().lower(), named.span()) for named in _TOKEN.finditer(caption)]
    named = list(_named([_singular(word) for word, _ in tokens]))
    is_toilet = any(name == "toilet" for name, _, _ in named)
    found = []
    for name, first, last in named:
        if name in CLASSES and not (is_toilet and name == "seat"):
            start, end = tokens[first][1][0], tokens[last][1][1]
            found.append(ObjectMention(CLASSES[name], caption[start:end], (start, end)))
    return found


def _named(words: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield names of one word or two, with the numbers of the first and the last."""
    index = 0
    while index < len(words):
        both = _TWO_WORDS.get(" ".join(words[index : index + 2]))
        last = index if both is None else index + 1
        yield words[index] if both is None else both, index, last
        index = last + 1


def read_instances(path: str) -> Instances:
    """Read a COCO instances file: ``images``, ``annotations`` with ``category_id`` and ``categories``."""
    try:
        text = Path(path).read_bytes()
        data = json.loads(text)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    categories, images, annotations = (_list(path, data, name) for name in ("categories", "images", "annotations"))
    try:
        names = {row["id"]: CLASSES[row["name"]] for row in categories}
        objects: dict[str, set[str]] = {str(row["id"]): set() for row in images}
        for row in annotations:
            objects.setdefault(str(row["image_id"]), set()).add(names[row["category_id"]])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a COCO instances file of the 80 classes: {error} is missing") from error
    return Instances(
        {image: frozenset(entries) for image, entries in objects.items()},
        hashlib.blake2b(text, digest_size=4).hexdigest(),
    )


def _list(path: str, data: object, name: str) -> list[Any]:
    entries = data.get(name) if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise InputError(f"{path}: is not a COCO instances file: it has no list {name!r}")
    return entries


@dataclass(frozen=True, slots=True)
class ChairStatistic:
    """An item's counts: mentions, how many of these are hallucinated, objects of the image, and how many are said."""

    mentioned: int
    hallucinated: int
    objects: int
    said: int
    evidence: ChairExplanation | None = None  # the mentions, and whether the image has each; None once sent off


@dataclass(frozen=True, slots=True)
class ChairExplanation:
    """The objects that a candidate mentions, and those of the image that it does not."""

    mentions: tuple[ObjectMention, ...]
    missing: tuple[str, ...]

    def add_to(self, result: ItemResult, metric: str, *, verdicts: bool) -> None:
        """Add the explanation to a result of the contract; it has no verdicts."""
        del verdicts
        chair = result.chair_matches.add(metric=metric, missing=self.missing)
        for mention in self.mentions:
            about = chair.mentions.add(object=mention.object, words=mention.words, hallucinated=mention.hallucinated)
            about.span.start, about.span.end = mention.span

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        return {"mentions": [mention._asdict() for mention in self.mentions], "missing": list(self.missing)}


@dataclass(frozen=True, slots=True)
class Chair(Metric[ChairStatistic]):
    """CHAIR of captions: the share of mentioned objects, and of captions, that are hallucinated, in [0, 1].

    ``CHAIRi`` is hallucinated mentions over all mentions of COCO objects, ``CHAIRs`` captions with at least one over
    all captions; ``CHAIR_Recall`` is the share of the images' objects that the captions mention. They are ratios of
    sums over the corpus. An item that mentions no object has a CHAIRi of 0; recall is undefined for an image without
    objects. Source: Rohrbach, Hendricks, Burns, Darrell and Saenko, "Object Hallucination in Image Captioning", EMNLP
    2018, equations 1 and 2; recall as later programs print it beside them.
    """

    english: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(data=frozenset({"instances"}))
    means: ClassVar[bool] = False
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"CHAIRi", "CHAIRs"})
    explains: ClassVar[bool] = True

    instances: Instances | None = None
    evidence: bool = True

    name = "chair"

    @classmethod
    def of(cls, given: Resources) -> Chair:
        """Return the metric ``chair``."""
        return cls(given.data.instances, evidence=given.evidence)

    def signature(self) -> Mapping[str, str]:
        """Return where the objects of an image come from, and which words are objects."""
        objects = "references" if self.instances is None else f"references + instances {self.instances.digest}"
        return {"variant": "CHAIR, 80 COCO classes", "objects": objects}

    def collect(self, corpus: Corpus) -> list[ChairStatistic]:
        """Return the counts of each item."""
        outlined = {} if self.instances is None else self.instances.objects
        unknown = [item.id for item in corpus.items if str(item.id) not in outlined]
        if self.instances is not None and unknown:
            first = ", ".join(map(repr, unknown[:5]))
            raise InputError(f"the instances lack {len(unknown)} of the images that are scored: {first}")
        texts = dict.fromkeys(chain.from_iterable(item.references for item in corpus.items))
        said = {text: frozenset(mention.object for mention in mentions(text)) for text in texts}
        statistics = []
        for item in corpus.items:
            objects = outlined.get(str(item.id), frozenset[str]()).union(*map(said.__getitem__, item.references))
            statistics.append(self._statistic(item.candidate, objects))
        return statistics

    def _statistic(self, candidate: str, objects: frozenset[str]) -> ChairStatistic:
        """Return the counts of a candidate; ``objects``: those in the image."""
        named = [mention._replace(hallucinated=mention.object not in objects) for mention in mentions(candidate)]
        right = {mention.object for mention in named if not mention.hallucinated}
        wrong = sum(mention.hallucinated for mention in named)
        why = ChairExplanation(tuple(named), tuple(sorted(objects - right))) if self.evidence else None
        return ChairStatistic(len(named), wrong, len(objects), len(right), why)

    def total(self, statistics: Sequence[ChairStatistic]) -> tuple[Score, ...]:
        """Return ``CHAIRi``, ``CHAIRs`` and ``CHAIR_Recall``."""
        columns = self.columns(statistics)
        each = self.from_sums(columns)
        each["CHAIRi"] = np.nan_to_num(each["CHAIRi"])  # an item that mentions nothing hallucinates nothing
        corpus = self.from_sums(columns.sum(axis=0, keepdims=True))
        return tuple(Score(name, _value(corpus[name][0]), tuple(map(_value, each[name]))) for name in NAMES)

    def columns(self, statistics: Sequence[ChairStatistic]) -> Matrix:
        """Return the dividend and the divisor of each score for each item, (items, 6)."""
        rows = [(s.hallucinated, s.mentioned, s.hallucinated > 0, 1, s.said, s.objects) for s in statistics]
        return np.array(rows, np.float64).reshape(-1, 6)

    def from_sums(self, sums: Matrix) -> dict[str, Vector]:
        """Return the corpus scores of rows of sums; NaN where undefined."""
        shares = np.divide(sums[:, ::2], sums[:, 1::2], out=np.full((len(sums), 3), np.nan), where=sums[:, 1::2] > 0)
        return {name: shares[:, index] for index, name in enumerate(NAMES)}

    def compact(self, statistic: ChairStatistic) -> ChairStatistic:
        """Return the counts alone."""
        return replace(statistic, evidence=None)

    def working(self, statistic: ChairStatistic) -> tuple[Working, ...]:
        """Return how many mentions are hallucinated, and how many objects are said."""
        text = "{} of {} objects mentioned are not in the image; {} of its {} objects are mentioned"
        values = statistic.hallucinated, statistic.mentioned, statistic.said, statistic.objects
        return (Working("CHAIRi", text, values),)

    def explain(self, statistic: ChairStatistic, *, changes: int = 3) -> ChairExplanation | None:
        """Return which objects a candidate mentions, and which of them its image lacks."""
        del changes
        return statistic.evidence


def _value(share: Any) -> float | None:
    return None if np.isnan(share) else float(share)
