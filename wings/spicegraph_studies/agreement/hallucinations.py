"""How well metrics tell captions with a hallucinated word from others, and find the word that people marked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import scipy

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import SCENE
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.results import Json, collect, result_of
from spicegraph_scorer.core.significance import Resampling, conformal_threshold, percentile_bounds
from spicegraph_scorer.metrics import lower_is_better, make_metrics
from spicegraph_scorer.readers.checks import Fault, refuse_faults
from spicegraph_scorer.scoring import resources
from spicegraph_studies.agreement.coefficients import Bounded, Indices, Matrix, Vector, numbered, ratio, resamples
from spicegraph_studies.agreement.judgements import Judged, Judgement, JudgementScoring
from spicegraph_studies.agreement.length import length_json, with_length_constant, word_counts
from spicegraph_studies.agreement.protocols import HALLUCINATION_PROTOCOLS, HallucinationProtocol
from spicegraph_studies.agreement.records import CANDIDATES, IMAGES, REFERENCES, JudgementRow, read_content, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.metric import Score
    from spicegraph_scorer.core.results import Run

Span = tuple[int, int]


def marked(place: str, image: str, caption: str, references: tuple[str, ...], wrong: tuple[Span, ...]) -> Judgement:
    """Return a caption whose wrong words people marked (none: nothing is wrong), rated 1 if there are some, else 0."""
    return Judgement(place, image, caption, references, (float(bool(wrong)),), wrong=wrong)


def marked_spans(caption: str, words: Sequence[str], wrong: Sequence[bool]) -> tuple[Span, ...]:
    """Return where the marked ones of a caption's words stand, as character offsets; the words are given in order."""
    spans, at = [], 0
    for word, is_wrong in zip(words, wrong, strict=True):
        at = max(caption.find(word, at), at)
        if is_wrong:
            spans.append((at, at + len(word)))
        at += len(word)
    return tuple(spans)


def changed_spans(right: str, foil: str) -> tuple[Span, ...]:
    """Return the stretches of words of a foil that the right caption lacks; its end if there is none."""
    words = foil.split(" ")
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))
    changes = SequenceMatcher(None, right.split(" "), words, autojunk=False).get_opcodes()
    spans = [(starts[first], starts[last] - 1) for kind, _, _, first, last in changes if kind in {"replace", "insert"}]
    return tuple(spans) or ((len(foil), len(foil)),)


def read_marked(*paths: str) -> Judged[Judgement]:
    """Read captions whose wrong words are marked (HAT), or pairs with a foil (nocaps-FOIL): JSON Lines, or a list."""
    captions: list[Judgement] = []
    for path in paths:
        content, faults = read_content(path), list[Fault]()
        for place, fields in records_of(content, faults):
            row = JudgementRow(place if len(paths) == 1 else f"{content.name}, {place}", fields, faults)
            captions += _marked_pair(row) if "foil" in fields or "captions" in fields else _marked_caption(row)
        refuse_faults(content.name, faults, nothing="" if captions else "contains no caption")
    return Judged(tuple(captions), ", ".join(paths), "captions with marked words")


def _marked_caption(row: JudgementRow) -> Iterator[Judgement]:
    caption, references, image = row.caption(CANDIDATES), row.references(REFERENCES), row.image(IMAGES)
    name = "grounding" if "grounding" in row.fields else "hallucinated"
    pairs = _marked_words(row.fields.get(name), row.fields.get("words"), together=name == "grounding")
    if not all(len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], bool) for pair in pairs):
        row.fault(name, "does not say of each word whether it is wrong (true or false)")
        return
    spans = marked_spans(caption, [word for word, _ in pairs], [wrong for _, wrong in pairs])
    yield marked(row.place, image or "\n".join(references), caption, references, spans)


def _marked_words(marks: object, words: object, *, together: bool) -> list[list[Any]]:
    """Return words and marks as pairs, which one list has ``together``, or two lists; else one empty pair."""
    if together and isinstance(marks, list):
        return [pair if isinstance(pair, list) else [] for pair in marks]
    if isinstance(words, list) and isinstance(marks, list) and len(words) == len(marks):
        return list(map(list, zip(words, marks, strict=True)))
    return [[]]


def _marked_pair(row: JudgementRow) -> Iterator[Judgement]:
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
    yield marked(row.place, image, right, references, ())
    yield marked(row.place, image, foil, references, changed_spans(right, foil))


class Suspect(NamedTuple):
    """A word of a caption: where it stands, how likely it is wrong, in [0, 1], and whether it is an object."""

    spans: Sequence[Span]
    probability: float
    is_object: bool

    def is_marked(self, caption: Judgement) -> bool:
        """Say whether people marked the word, or a part of it."""
        return any(s < end and start < e for s, e in self.spans for start, end in caption.wrong)


LOCALISERS: Mapping[str, Callable[[Any, Any], list[Suspect]]] = {
    "spice-g": lambda metric, statistic: [
        Suspect(word.spans, word.probability, is_object) for word, is_object in metric.suspects(statistic)
    ],
    "chair": lambda metric, statistic: [
        Suspect((mention.span,), float(mention.hallucinated), is_object=True)
        for mention in metric.explain(statistic).mentions
    ],
}
"""What says which word is wrong, by the metric whose evidence it reads."""

FIGURES: Final = {"average_precision": "average precision", "auc": "AUC", "localisation": "localisation"}
"""What is measured of each score, and what it is called."""


@dataclass(frozen=True, slots=True)
class HallucinationAgreement:
    """How well metrics find the words that people marked as wrong."""

    protocol: HallucinationProtocol
    captions: int
    faulty: int  # captions with a marked word
    images: int
    detections: Mapping[str, Mapping[str, Bounded | None]]  # by score and key of ``FIGURES``; not all localise
    undefined: Mapping[str, int]  # by score: captions without a value, which count as the most suspicious
    thresholds: Mapping[float, float]  # of SPICE-G's verdicts, by the share of the unmarked words that are flagged
    signature: Mapping[str, Json]
    length: Mapping[str, float | None] = field(default_factory=dict)  # see ``with_length_constant``

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
                score: {
                    name: None if each is None else {"value": each.value, "low": each.low, "high": each.high}
                    for name, each in figures.items()
                }
                for score, figures in self.detections.items()
            },
            **({"length": length_json(self.length)} if self.length else {}),
        }


def agree_on_hallucinations(
    captions: Sequence[Judgement],
    protocol: HallucinationProtocol = HALLUCINATION_PROTOCOLS["hat"],
    *,
    scoring: JudgementScoring | None = None,
    resampling: Resampling | None = None,
) -> HallucinationAgreement:
    """Score captions, by default with SPICE-G on scene graphs, and compare with people's marks."""
    # SPICE-G has three scores: its own, and two of its verdicts.
    scoring, resampling = scoring or JudgementScoring(("spice-g",), SCENE), resampling or Resampling()
    labels = _labels(captions)
    items = tuple(Item(n, caption.candidate, caption.references) for n, caption in enumerate(captions))
    given = resources(scoring.pipeline, scoring.progress, scoring.data, metrics=scoring.metrics)
    made = make_metrics(scoring.metrics, given)
    statistics = collect(items, made)
    result = result_of(items, made, statistics, progress=scoring.progress)
    suspects = {
        name: [LOCALISERS[name](made[name], each) for each in statistics[name]] for name in made if name in LOCALISERS
    }
    of_verdicts, thresholds = _of_verdicts(captions, suspects["spice-g"]) if "spice-g" in suspects else ({}, {})
    shares = {name: located(captions, words, protocol) for name, words in suspects.items()}
    suspicion, of_words = _suspicion(dict(zip(made, result.runs, strict=True)), shares, of_verdicts)
    groups = numbered(caption.image for caption in captions)
    return HallucinationAgreement(
        protocol,
        len(captions),
        int(np.count_nonzero(labels)),
        int(groups.max()) + 1,
        _detections(suspicion, of_words, labels, groups, resampling),
        _undefined(result.runs),
        thresholds,
        {**result.signature, "resampling": resampling.signature()},
        _of_length(suspicion, labels, captions),
    )


def _of_length(
    suspicion: Mapping[str, Vector], labels: Vector, captions: Sequence[Judgement]
) -> dict[str, float | None]:
    ranks = {name: scipy.stats.rankdata(values) for name, values in suspicion.items()}
    return with_length_constant(ranks, labels, word_counts(caption.candidate for caption in captions))


def _suspicion(
    runs: Mapping[str, Run], shares: Mapping[str, Vector], of_verdicts: Mapping[str, Vector]
) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """Return by score how suspicious each caption is, and where the metric locates words, the ``shares`` it locates."""
    lower = lower_is_better(tuple(runs))
    suspicion: dict[str, Vector] = {}
    of_words: dict[str, Vector] = {}
    for name, run in runs.items():
        for score in run.headline:
            suspicion[score.name] = _suspicion_of(score, is_lower_better=score.name in lower)
            if name in shares and score.name in lower:
                of_words[score.name] = shares[name]
        if name == "spice-g":
            suspicion |= of_verdicts
            of_words |= dict.fromkeys(of_verdicts, shares[name])
    return suspicion, of_words


def _undefined(runs: Iterable[Run]) -> dict[str, int]:
    """Return how many captions have no value of a score, if any."""
    counts = {score.name: sum(value is None for value in score.each) for run in runs for score in run.headline}
    return {name: count for name, count in counts.items() if count}


def _suspicion_of(score: Score, *, is_lower_better: bool) -> Vector:
    """Return how suspicious each caption is; one without a value is the most."""
    sign = 1 if is_lower_better else -1
    return np.array([np.inf if value is None else sign * value for value in score.each])


def _labels(captions: Sequence[Judgement]) -> Vector:
    """Return 1 for each caption with a marked word, else 0: there are some, and not all; every one needs references."""
    labels = np.array([caption.ratings[0] for caption in captions])
    faulty = np.count_nonzero(labels)
    if not 0 < faulty < len(captions):
        raise InputError(f"{faulty} of {len(captions)} captions have a marked word: expected some, and not all")
    missing = [Fault(caption.place, "references", "are missing") for caption in captions if not caption.references]
    refuse_faults("marked captions", missing)
    return labels


def _of_verdicts(
    captions: Sequence[Judgement], suspects: Sequence[Sequence[Suspect]]
) -> tuple[dict[str, Vector], dict[float, float]]:
    """Return the scores of SPICE-G's verdicts, and their thresholds by the share of unmarked words that are flagged."""
    each = [np.array([word.probability for word in words]) for words in suspects]
    pairs = zip(captions, suspects, strict=True)
    right = [word.probability for caption, words in pairs for word in words if not word.is_marked(caption)]
    worst = np.array([probabilities.max(initial=0) for probabilities in each])
    mean = np.array([probabilities.mean() if len(probabilities) else 0.0 for probabilities in each])
    return {"SPICE-G verdicts, worst word": worst, "SPICE-G verdicts, mean of words": mean}, {
        rate: conformal_threshold(right, rate) for rate in (0.05, 0.1, 0.2)
    }


def located(
    captions: Sequence[Judgement], suspects: Sequence[Sequence[Suspect]], protocol: HallucinationProtocol
) -> Vector:
    """Return for each caption 1 where the most suspicious word is a marked one; of equals, the share of marked ones."""
    shares = np.zeros(len(captions))
    for place, (caption, words) in enumerate(zip(captions, suspects, strict=True)):
        compared = [word for word in words if word.is_object or not protocol.objects]
        highest = max((word.probability for word in compared), default=0.0)
        hits = [word.is_marked(caption) for word in compared if word.probability == highest > 0]
        shares[place] = sum(hits) / len(hits) if hits else 0.0
    return shares


def average_precision(scores: Vector, labels: Vector, weights: Matrix) -> Vector:
    """Return the average precision of scores for labels, by resample; equal scores count together."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(scores[order][1:] != scores[order][:-1], True))
    ordered = weights[:, order]
    hits = np.cumsum(ordered * labels[order], axis=1)[:, ends]
    seen = np.cumsum(ordered, axis=1)[:, ends]
    precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
    return ratio((precision * np.diff(hits, axis=1, prepend=0)).sum(axis=1), hits[:, -1])


def roc_auc(scores: Vector, labels: Vector, weights: Matrix) -> Vector:
    """Return the share of pairs, with the label and without, in which the first scores higher; ties count half."""
    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.append(True, scores[order][1:] != scores[order][:-1]))
    with_label = np.add.reduceat(weights[:, order] * labels[order], starts, axis=1)
    without = np.add.reduceat(weights[:, order] * (1 - labels[order]), starts, axis=1)
    above = np.cumsum(with_label, axis=1) - with_label / 2
    return ratio((above * without).sum(axis=1), with_label.sum(axis=1) * without.sum(axis=1))


def _detections(
    suspicion: Mapping[str, Vector],
    of_words: Mapping[str, Vector],
    labels: Vector,
    groups: Indices,
    resampling: Resampling,
) -> dict[str, dict[str, Bounded | None]]:
    """Return the figures of each score, with intervals over the same resamples of the images."""
    images = int(groups.max()) + 1
    blocks = [drawn[:, groups].astype(np.int16) for drawn in resamples(resampling, images, len(groups))]

    def bounded(figure: Callable[[Matrix], Vector]) -> Bounded:
        draws = [figure(weights.astype(np.float64)) for weights in blocks]
        return Bounded(float(figure(np.ones((1, len(labels))))[0]), *percentile_bounds(np.concatenate(draws)))

    def localisation(name: str, weights: Matrix) -> Vector:
        drawn = weights * labels
        return ratio(drawn @ of_words[name], drawn.sum(axis=1))

    return {
        name: {
            "average_precision": bounded(partial(average_precision, values, labels)),
            "auc": bounded(partial(roc_auc, values, labels)),
            "localisation": bounded(partial(localisation, name)) if name in of_words else None,
        }
        for name, values in suspicion.items()
    }
