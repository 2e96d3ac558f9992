"""How well metrics tell captions with a hallucinated word from others, and find the word that people marked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_parser.scenes import SCENE
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.results import collect, result_of
from spicegraph_scorer.core.significance import Resampling, percentile_bounds
from spicegraph_scorer.metrics import lower_is_better, make_metrics
from spicegraph_scorer.metrics.graded.verdicts import conformal_threshold, object_words
from spicegraph_scorer.readers.checks import Fault, input_error
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, ReadLimits
from spicegraph_scorer.scoring import resources
from spicegraph_studies.agreement.coefficients import Bounded, numbered, resamples
from spicegraph_studies.agreement.judgements import Judged, JudgementScoring
from spicegraph_studies.agreement.protocols import by_name, protocol_of
from spicegraph_studies.agreement.records import CANDIDATES, IMAGES, REFERENCES, JudgementRow, read_content, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.results import Json
    from spicegraph_studies.agreement.coefficients import Matrix, Vector

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class HallucinationProtocol:
    """What counts as finding a wrong word: any content word, or objects alone."""

    name: str
    about: str
    source: str
    objects: bool


_ALOHA: Final = "Petryk et al. 2024 (ALOHa)"
HALLUCINATION_PROTOCOLS: Mapping[str, HallucinationProtocol] = by_name(
    HallucinationProtocol(
        "hat",
        "Detection: average precision and area under the ROC curve of telling captions with a marked word from "
        "others, by the metric's score. Localisation: of the captions with a marked word, in how many the word "
        "that is most likely wrong is a marked one.",
        f"{_ALOHA}, on HAT",
        objects=False,
    ),
    HallucinationProtocol(
        "aloha-localisation",
        "As hat, but only objects and the words in front of them (the golf of a golf ball) are compared, as ALOHa "
        "does: of the captions with a foil, in how many the one that is most likely wrong is in the foil. A true "
        "caption and its foil are a caption each; the true one is not a reference.",
        f"{_ALOHA}, on nocaps-FOIL",
        objects=True,
    ),
)
"""Every protocol for captions whose wrong words are marked."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A caption whose wrong words people marked.

    Attributes:
        place: where it stands in its file, for messages.
        image: the image; captions of one image are drawn together when intervals are made.
        candidate: the caption.
        references: the image's reference captions.
        wrong: where the wrong words stand, as character offsets; empty: nothing is wrong.
    """

    place: str
    image: str
    candidate: str
    references: tuple[str, ...]
    wrong: tuple[Span, ...]


def marked_spans(caption: str, words: Sequence[str], wrong: Sequence[bool]) -> tuple[Span, ...]:
    """Return where the marked ones of a caption's words stand; the words are given in order.

    >>> marked_spans("A red bus.", ["A", "red", "bus."], [False, True, False])
    ((2, 5),)
    """
    spans, at = [], 0
    for word, is_wrong in zip(words, wrong, strict=True):
        at = max(caption.find(word, at), at)
        if is_wrong:
            spans.append((at, at + len(word)))
        at += len(word)
    return tuple(spans)


def changed_spans(right: str, foil: str) -> tuple[Span, ...]:
    """Return the stretches of words of a foil that the right caption has not; the end if there is none.

    >>> changed_spans("a dog near a dog", "a cat near a big cat")
    ((2, 5), (13, 20))
    """
    words = foil.split(" ")
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))
    changes = SequenceMatcher(None, right.split(" "), words, autojunk=False).get_opcodes()
    spans = [(starts[first], starts[last] - 1) for kind, _, _, first, last in changes if kind in {"replace", "insert"}]
    return tuple(spans) or ((len(foil), len(foil)),)


def hallucination_protocol(name: str) -> HallucinationProtocol:
    """Return a protocol by name."""
    return protocol_of(HALLUCINATION_PROTOCOLS, name, "hallucinations")


def read_marked(*paths: str, limits: ReadLimits = DEFAULT_LIMITS) -> Judged[Marked]:
    """Read captions whose wrong words are marked: JSON Lines, or a JSON list.

    With ``candidate`` (or ``caption``), ``references`` and ``words`` with ``hallucinated`` (true or false for each), or
    ``grounding``, a list of words each with true or false (HAT). Pairs: ``captions`` (two) and ``label``, or
    ``baseline`` and ``foil`` (nocaps-FOIL): what differs in the foil is marked.
    """
    marked: list[Marked] = []
    for path in paths:
        content, faults = read_content(path, limits), list[Fault]()
        for place, fields in records_of(content, faults):
            row = JudgementRow(place if len(paths) == 1 else f"{content.name}, {place}", fields, faults)
            marked += _marked_pair(row) if "foil" in fields or "captions" in fields else _marked_caption(row)
        if not marked and not faults:
            faults.append(Fault("", "", "contains no caption"))
        if faults:
            raise input_error(content.name, faults)
    return Judged(tuple(marked), ", ".join(paths), "captions with marked words")


def _marked_caption(row: JudgementRow) -> Iterator[Marked]:
    caption, references, image = row.caption(CANDIDATES), row.references(REFERENCES), row.image(IMAGES)
    name = "grounding" if "grounding" in row.fields else "hallucinated"
    marks = row.fields.get(name)
    if name == "grounding" and isinstance(marks, list):
        pairs: list[list[Any]] = [pair if isinstance(pair, list) else [] for pair in marks]
    else:
        words = row.fields.get("words")
        pairs = [[]]
        if isinstance(words, list) and isinstance(marks, list) and len(words) == len(marks):
            pairs = list(map(list, zip(words, marks, strict=True)))
    if not all(len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], bool) for pair in pairs):
        row.fault(name, "does not say of each word whether it is wrong (true or false)")
        return
    spans = marked_spans(caption, [word for word, _ in pairs], [wrong for _, wrong in pairs])
    yield Marked(row.place, image or "\n".join(references), caption, references, spans)


def _marked_pair(row: JudgementRow) -> Iterator[Marked]:
    if "foil" in row.fields:
        right, foil = row.caption(("baseline", "caption")), row.caption(("foil",))
    else:
        texts, label = row.fields.get("captions"), row.fields.get("label")
        if not isinstance(texts, list) or len(texts) != 2 or isinstance(label, bool) or label not in {0, 1}:
            row.fault("captions", "is not a list of two captions, with a label that says which is right (0 or 1)")
            return
        right, foil = (row.checked_caption("captions", texts[abs(label - side)]) for side in (0, 1))
    references = tuple(text for text in row.references(REFERENCES) if text.split() != right.split())
    image = row.image((*IMAGES, "image_path")) or "\n".join(references)
    yield Marked(row.place, image, right, references, ())
    yield Marked(row.place, image, foil, references, changed_spans(right, foil))


class Suspect(NamedTuple):
    """A word of a caption: where it stands, how likely it is wrong, in [0, 1], and whether it is an object."""

    spans: Sequence[Span]
    probability: float
    is_object: bool


def _of_verdicts(metric: Any, statistic: Any) -> list[Suspect]:
    objects = object_words(statistic.match)
    return [Suspect(word.spans, word.probability, word.word in objects) for word in metric.verdicts(statistic).words]


def _of_chair(metric: Any, statistic: Any) -> list[Suspect]:
    explained = metric.explain(statistic)
    return [Suspect((mention.span,), float(mention.hallucinated), is_object=True) for mention in explained.mentions]


LOCALISERS: Mapping[str, Callable[[Any, Any], list[Suspect]]] = {"spice-g": _of_verdicts, "chair": _of_chair}
"""What says which word is wrong, by the metric whose evidence it reads."""


FALSE_ALARMS: Final = (0.05, 0.1, 0.2)
"""Shares of right words that are flagged at the thresholds of a study."""


FIGURES: Final = {"average_precision": "average precision", "auc": "AUC", "localisation": "localisation"}
"""What is measured of each score, and what it is called."""


@dataclass(frozen=True, slots=True)
class Detection:
    """How well one score finds captions with a wrong word, and the word; ``None``: it does not say which word."""

    score: str
    average_precision: Bounded
    auc: Bounded
    localisation: Bounded | None = None

    @property
    def figures(self) -> dict[str, Bounded | None]:
        """The intervals by the keys of ``FIGURES``."""
        return {"average_precision": self.average_precision, "auc": self.auc, "localisation": self.localisation}


@dataclass(frozen=True, slots=True)
class HallucinationAgreement:
    """How well metrics find what people marked as wrong.

    ``faulty`` captions have a marked word: their share is the average precision of a metric that knows nothing.
    ``undefined`` counts, by score, the captions without a value; they count as the most suspicious ones. ``thresholds``
    are the probabilities of SPICE-G's verdicts above which a share of the words that nobody marked are flagged.
    """

    protocol: HallucinationProtocol
    captions: int
    faulty: int
    images: int
    detections: tuple[Detection, ...]
    undefined: Mapping[str, int]
    thresholds: Mapping[float, float]
    signature: Mapping[str, Json]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values."""
        return {
            "signature": self.signature,
            "protocol": asdict(self.protocol),
            "captions": self.captions,
            "faulty": self.faulty,
            "images": self.images,
            "undefined": self.undefined,
            "thresholds": {f"{rate:g}": limit for rate, limit in self.thresholds.items()},
            "detections": {
                detection.score: {
                    name: None if value is None else value._asdict() for name, value in detection.figures.items()
                }
                for detection in self.detections
            },
        }


def agree_on_hallucinations(
    captions: Sequence[Marked],
    protocol: HallucinationProtocol = HALLUCINATION_PROTOCOLS["hat"],
    *,
    scoring: JudgementScoring | None = None,
    resampling: Resampling | None = None,
) -> HallucinationAgreement:
    """Score captions and hold every score against what people marked.

    SPICE-G has three scores: its own, and two of its verdicts: the probability of the word that is most likely wrong,
    and the mean over the words. It and CHAIR say which word is wrong. Without ``scoring``, SPICE-G is computed on scene
    graphs.
    """
    scoring, resampling = scoring or JudgementScoring(("spice-g",), SCENE), resampling or Resampling()
    faulty = np.array([bool(caption.wrong) for caption in captions])
    if not 0 < faulty.sum() < len(faulty):
        raise InputError(f"{faulty.sum()} of {len(faulty)} captions have a marked word: expected some, and not all")
    missing = [Fault(caption.place, "references", "are missing") for caption in captions if not caption.references]
    if missing:
        raise input_error("marked captions", missing)
    items = tuple(Item(n, caption.candidate, caption.references) for n, caption in enumerate(captions))
    made = make_metrics(
        scoring.metrics, resources(scoring.pipeline, scoring.progress, scoring.data, metrics=scoring.metrics)
    )
    statistics = collect(items, made)
    result = result_of(items, made, statistics, progress=scoring.progress)
    lower = lower_is_better(scoring.metrics)
    groups = numbered(caption.image for caption in captions)
    draws = _Draws(faulty, groups, resampling)
    detections, undefined, thresholds = [], {}, {}
    for name, run in zip(made, result.runs, strict=True):
        localiser = LOCALISERS.get(name)
        suspects = None if localiser is None else [localiser(made[name], each) for each in statistics[name]]
        located = None if suspects is None else draws.share(_located(captions, suspects, protocol))
        for score in run.headline:
            undefined[score.name] = sum(value is None for value in score.each)
            sign = 1 if score.name in lower else -1
            values = np.array([np.inf if value is None else sign * value for value in score.each])
            detections.append(draws.detection(score.name, values, located if score.name in lower else None))
        if name == "spice-g" and suspects is not None:
            each = [np.array([caption.probability for caption in of_caption]) for of_caption in suspects]
            worst = np.array([of_caption.max(initial=0) for of_caption in each])
            mean = np.array([of_caption.mean() if len(of_caption) else 0.0 for of_caption in each])
            pairs = zip(captions, suspects, strict=True)
            right = [word.probability for caption, words in pairs for word in words if not _is_marked(word, caption)]
            thresholds = {rate: conformal_threshold(right, rate) for rate in FALSE_ALARMS}
            detections.append(draws.detection("SPICE-G verdicts, worst word", worst, located))
            detections.append(draws.detection("SPICE-G verdicts, mean of words", mean, located))
    return HallucinationAgreement(
        protocol,
        len(captions),
        int(faulty.sum()),
        int(groups.max()) + 1,
        tuple(detections),
        {name: count for name, count in undefined.items() if count},
        thresholds,
        {**result.signature, "resampling": resampling.signature()},
    )


def _located(
    captions: Sequence[Marked], suspects: Sequence[Sequence[Suspect]], protocol: HallucinationProtocol
) -> Vector:
    """Return for each caption 1 where the most suspicious word is a marked one; of equals, the share of marked ones."""
    shares = np.zeros(len(captions))
    for place, (caption, words) in enumerate(zip(captions, suspects, strict=True)):
        compared = [word for word in words if word.is_object or not protocol.objects]
        highest = max((word.probability for word in compared), default=0.0)
        worst = [word for word in compared if word.probability == highest > 0]
        hits = [_is_marked(word, caption) for word in worst]
        shares[place] = sum(hits) / len(hits) if hits else 0.0
    return shares


def _is_marked(word: Suspect, caption: Marked) -> bool:
    return any(s < end and start < e for s, e in word.spans for start, end in caption.wrong)


def average_precision(scores: Vector, labels: Vector, weights: Matrix) -> Vector:
    """Return the average precision of finding the labels by the highest scores, for each row of weights.

    The mean over the found ones of the precision at their score; equal scores are found together.

    >>> average_precision(np.array([3.0, 2.0, 1.0]), np.array([1.0, 0.0, 1.0]), np.ones((1, 3))).round(3).tolist()
    [0.833]
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(scores[order][1:] != scores[order][:-1], True))
    ordered = weights[:, order]
    hits = np.cumsum(ordered * labels[order], axis=1)[:, ends]
    seen = np.cumsum(ordered, axis=1)[:, ends]
    precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
    total = hits[:, -1]
    steps = np.diff(hits, axis=1, prepend=0)
    precisions: Vector = np.divide(
        (precision * steps).sum(axis=1), total, out=np.full(len(total), np.nan), where=total > 0
    )
    return precisions


def roc_auc(scores: Vector, labels: Vector, weights: Matrix) -> Vector:
    """Return the share of pairs of one with the label and one without in which the first scores higher; ties half.

    >>> roc_auc(np.array([3.0, 2.0, 1.0]), np.array([1.0, 0.0, 1.0]), np.ones((1, 3))).tolist()
    [0.5]
    """
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.append(True, scores[order][1:] != scores[order][:-1]))
    with_label = np.add.reduceat(weights[:, order] * labels[order], starts, axis=1)
    without = np.add.reduceat(weights[:, order] * (1 - labels[order]), starts, axis=1)
    above = np.cumsum(with_label, axis=1) - with_label / 2
    pairs = with_label.sum(axis=1) * without.sum(axis=1)
    areas: Vector = np.divide((above * without).sum(axis=1), pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return areas


class _Draws:
    """Values with intervals over resamples of the images, the same for all scores."""

    def __init__(self, faulty: np.ndarray[Any, np.dtype[np.bool_]], groups: Any, resampling: Resampling) -> None:
        self._labels = faulty.astype(np.float64)
        images = int(groups.max()) + 1
        self._blocks = [drawn[:, groups].astype(np.int16) for drawn in resamples(resampling, images, len(groups))]

    def _bounded(self, value_of: Callable[[Matrix], Vector]) -> Bounded:
        value = float(value_of(np.ones((1, len(self._labels))))[0])
        draws = [value_of(weights.astype(np.float64)) for weights in self._blocks]
        return Bounded(value, *percentile_bounds(np.concatenate(draws)))

    def share(self, located: Vector) -> Bounded:
        """Return the weighted mean over the captions with a wrong word."""

        def mean(weights: Matrix) -> Vector:
            drawn = weights * self._labels
            total = drawn.sum(axis=1)
            shares: Vector = np.divide(drawn @ located, total, out=np.full(len(total), np.nan), where=total > 0)
            return shares

        return self._bounded(mean)

    def detection(self, name: str, values: Vector, located: Bounded | None) -> Detection:
        """Return how well values, the higher the more suspicious, find the captions with a wrong word."""
        return Detection(
            name,
            self._bounded(lambda weights: average_precision(values, self._labels, weights)),
            self._bounded(lambda weights: roc_auc(values, self._labels, weights)),
            located,
        )
