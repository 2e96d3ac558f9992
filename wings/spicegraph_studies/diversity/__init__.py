"""How different several captions of one image are: in words, in n-grams, in meaning and in what they say is there.

Div-n and mBLEU: Shetty et al., ICCV 2017. Self-CIDEr: Wang and Chan, CVPR 2019. Contradictions are the errors of scene
graphs between two captions of one image.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import chain, permutations
from typing import TYPE_CHECKING, Final

import numpy as np

from spicegraph_parser import load_lexicon, merge
from spicegraph_parser.errors import InputError, counted
from spicegraph_parser.spice.loose import DENIED
from spicegraph_scorer import Corpus, DocumentFrequencies, Item
from spicegraph_scorer.core.tokens import TokenizedItem, tokenize_texts
from spicegraph_scorer.errors import explain
from spicegraph_scorer.metrics.bleu import Bleu
from spicegraph_scorer.metrics.cider import Cider, cider_statistics
from spicegraph_scorer.metrics.spice.metric import Spice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from spicegraph_parser import SceneGraph
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.facts import FactCache, Progress
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.tokens import Tokens

ORDERS: Final = 4
CONTRADICTIONS: Final = {
    "color_confused": "colour",
    "count_off_by_one": "count",
    "count_off_by_more": "count",
    "size_opposite": "size",
}
"""Of the kinds of errors (``spicegraph_scorer.errors.KINDS``) those in which two captions cannot both be right."""

FIGURES: Final[Mapping[str, str]] = {
    "div-1": "Div_1",
    "div-2": "Div_2",
    "mbleu": "mBLEU",
    "self-cider": "Self_CIDEr",
    "vocabulary": "Vocabulary",
    "novel": "Novel",
}
"""The figures that can be asked for by name, and how the names of their values begin."""


@dataclass(frozen=True, slots=True)
class GraphDiversity:
    """An image's scene graph counts, merged and per caption, and its contradicting pairs."""

    objects: int  # distinct ones of the merged graph
    attributes: int
    relations: int
    of_one: float  # tuples that one caption has in the mean
    pairs: int
    contradicting: Mapping[str, int]  # pairs of captions by aspect: colour, count, size, denial; ``any``


@dataclass(frozen=True, slots=True)
class SetDiversity:
    """The diversity of one image's captions; ``None`` is undefined."""

    id: ItemId
    captions: int
    div: tuple[float | None, ...]  # distinct n-grams over words, n = 1 to 4
    self_cider: float | None
    graph: GraphDiversity | None


@dataclass(frozen=True, slots=True)
class Diversity:
    """The diversity of sets of captions: means over images, and corpus figures."""

    sets: tuple[SetDiversity, ...]
    vocabulary: int  # distinct words of all captions
    mbleu: tuple[float, ...]  # BLEU-1 to 4 of each caption against the others of its set; the lower, the more diverse
    novel: float | None  # share of captions that are not among the training captions
    signature: Mapping[str, str]

    def mean_div(self, n: int) -> float | None:
        """Return the mean of Div-n over the images."""
        return _mean([one.div[n - 1] for one in self.sets])

    @property
    def self_cider(self) -> float | None:
        """The mean of self-CIDEr over the images."""
        return _mean([one.self_cider for one in self.sets])

    def values(self) -> dict[str, float | None]:
        """Return every figure of the corpus by its name."""
        graphs = [one.graph for one in self.sets if one.graph is not None]
        figures: dict[str, float | None] = {f"Div_{n}": self.mean_div(n) for n in (1, 2)}
        figures |= {f"mBLEU_{n}": value for n, value in enumerate(self.mbleu, start=1)}
        figures |= {"Self_CIDEr": self.self_cider, "Vocabulary": float(self.vocabulary)}
        if self.novel is not None:
            figures["Novel"] = self.novel
        return figures | _graph_figures(graphs) if graphs else figures

    def to_dict(self) -> dict[str, object]:
        """Return JSON values: ``signature``, ``corpus``, and ``images`` with their own figures."""
        return {
            "signature": dict(self.signature),
            "corpus": self.values(),
            "images": [{**asdict(one), "image_id": one.id} | {"id": one.id} for one in self.sets],
        }


_KERNEL: Final = Cider(variant="CIDEr")  # plain, as the script's: CIDEr-D clips, and weights by length
_NOISE: Final = 1e-13  # the share of the largest eigenvalue that rounding leaves where one is 0
_DENIAL: Final = "denial"
_ASPECTS: Final = ("colour", "count", "size", _DENIAL)


def _graph_figures(graphs: Sequence[GraphDiversity]) -> dict[str, float | None]:
    """Return the figures of the corpus that graphs give."""
    figures = {
        name.capitalize(): _mean([getattr(graph, name) for graph in graphs])
        for name in ("objects", "attributes", "relations")
    }
    figures["Tuples_of_one"] = _mean([graph.of_one for graph in graphs])
    pairs = sum(graph.pairs for graph in graphs)
    sums: Counter[str] = Counter()
    for graph in graphs:
        sums.update(graph.contradicting)
    shares = {aspect: sums[aspect] / pairs if pairs else None for aspect in ("any", *_ASPECTS)}
    return figures | {f"Contradicting_{aspect}": share for aspect, share in shares.items()}


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def _check_sets(sets: Mapping[ItemId, Sequence[str]]) -> None:
    empty = [image for image, captions in sets.items() if not captions or not all(text.strip() for text in captions)]
    if empty:
        shown = ", ".join(f"{image!a}" for image in empty[:5])
        raise InputError(f"{counted(len(empty), 'image')} without captions, or with an empty one: {shown}")
    if all(len(captions) < 2 for captions in sets.values()):
        raise InputError("no image has several captions: diversity is measured among the captions of one image")


def find_diversity(
    sets: Mapping[ItemId, Sequence[str]],
    *,
    references: Mapping[ItemId, Sequence[str]] | None = None,
    training: Sequence[str] | None = None,
    facts: FactCache | None = None,
    progress: Progress | None = None,
) -> Diversity:
    """Measure how different the captions of each image are.

    Args:
        sets: the captions of each image, at least one; an image with one has no mBLEU and no self-CIDEr. Of a single
            image self-CIDEr is undefined, unless there are references of others.
        references: captions of images for CIDEr's document frequencies; ``None``: the sets themselves.
        training: captions that a model has seen, for the share of new ones.
        facts: what parses captions; ``None``: graphs are not compared.
        progress: is called while it takes long.

    Raises:
        InputError: an image has no caption, or no image has several.
    """
    _check_sets(sets)
    tokens = {image: list(map(tuple, tokenize_texts(captions))) for image, captions in sets.items()}
    seen, frequencies_of = (sets, "the sets") if references is None else (references, "references")
    frequencies = DocumentFrequencies.from_references(list(map(tokenize_texts, seen.values())))
    graphs = _graphs(sets, facts, progress) if facts is not None else {}
    found = []
    for done, (image, words) in enumerate(tokens.items(), start=1):
        div = tuple(distinct_share(words, n) for n in range(1, ORDERS + 1))
        share = self_cider(mutual_cider(words, frequencies)) if len(words) > 1 < frequencies.images else None
        found.append(SetDiversity(image, len(words), div, share, graphs.get(image)))
        if progress:
            progress("comparing captions", done, len(tokens))
    return Diversity(
        tuple(found),
        len(set(chain.from_iterable(chain.from_iterable(tokens.values())))),
        mutual_bleu(sets),
        None if training is None else _novel(tokens, training),
        {
            "tokenizer": "ptb-coco",
            "frequencies": frequencies_of,
            "self_cider": "CIDEr, as in self-critical training",
            **({"pipeline": facts.signature} if facts is not None else {}),
        },
    )


def distinct_share(captions: Sequence[Tokens], n: int) -> float | None:
    """Return Div-n: the distinct n-grams of an image's captions over all their words; ``None`` without words.

    >>> distinct_share([("a", "dog", "runs"), ("a", "dog", "sits")], 1), distinct_share([("a", "dog"), ("a", "dog")], 2)
    (0.6666666666666666, 0.25)
    """
    words = sum(map(len, captions))
    grams = {caption[start : start + n] for caption in captions for start in range(len(caption) - n + 1)}
    return len(grams) / words if words else None


def mutual_cider(captions: Sequence[Tokens], frequencies: DocumentFrequencies) -> NDArray[np.float64]:
    """Return the CIDEr of every caption (row) with every caption as the only reference (column)."""
    pairs = [TokenizedItem(candidate, (reference,)) for candidate in captions for reference in captions]
    statistics = cider_statistics(pairs, variant=_KERNEL.variant, frequencies=frequencies)
    (score,) = _KERNEL.total(statistics)
    return np.array([value or 0.0 for value in score.each]).reshape(len(captions), len(captions))


def self_cider(kernel: NDArray[np.float64]) -> float | None:
    """Return the diversity of captions from their CIDEr with each other (0 to 10), between 0 (all the same) and 1.

    It is -log r to the base of the number of captions, with r the share of the largest singular value: the root of the
    largest eigenvalue of the kernel over the sum of all roots (Wang and Chan, equation 4). ``None`` where no caption
    has a CIDEr with itself. As in the script for self-critical training, the lower triangle stands for the kernel.

    >>> self_cider(np.eye(3) * 10), self_cider(np.full((2, 2), 10.0))
    (1.0, 0.0)
    """
    values = np.linalg.eigvalsh(kernel / 10)
    roots = np.sqrt(np.where(values > _NOISE * values[-1], values, 0))
    total = float(roots.sum())
    if total == 0:
        return None
    return max(0.0, -math.log(float(roots[-1]) / total) / math.log(len(roots)))


def mutual_bleu(sets: Mapping[ItemId, Sequence[str]]) -> tuple[float, ...]:
    """Return mBLEU-1 to 4: corpus BLEU of the images' k-th captions against their others, the mean over k."""
    metric, rounds = Bleu(), []
    for k in range(max(map(len, sets.values()))):
        items = tuple(
            Item(image, captions[k], (*captions[:k], *captions[k + 1 :]))
            for image, captions in sets.items()
            if len(captions) > max(k, 1)
        )
        if items:
            rounds.append([score.value or 0.0 for score in metric.total(metric.collect(Corpus(items)))])
    return tuple(math.fsum(values) / len(rounds) for values in zip(*rounds, strict=True))


def _novel(sets: Mapping[ItemId, Sequence[Tokens]], training: Sequence[str]) -> float:
    known = set(map(tuple, tokenize_texts(training)))
    captions = [caption for words in sets.values() for caption in words]
    return sum(caption not in known for caption in captions) / len(captions)


def _graphs(
    sets: Mapping[ItemId, Sequence[str]], source: FactCache, progress: Progress | None
) -> dict[ItemId, GraphDiversity]:
    """Return each image's graph counts, merged and per caption, with contradicting pairs."""
    lexicon = load_lexicon()
    texts = list(dict.fromkeys(text for captions in sets.values() for text in captions))
    facts = dict(zip(texts, source.facts(texts), strict=True))
    metric = Spice(source)
    found = {}
    for done, (image, captions) in enumerate(sets.items(), start=1):
        graph = merge([facts[text] for text in captions], lexicon)
        alone = [_size(merge([facts[text]], lexicon)) for text in captions]
        aspects = _contradictions(captions, facts, metric)
        counts = Counter(aspect for kinds in aspects.values() for aspect in kinds)
        counts["any"] = sum(map(bool, aspects.values()))
        parts = len(graph.objects), len(graph.attributes), len(graph.relations)
        found[image] = GraphDiversity(*parts, sum(alone) / len(alone), len(aspects), dict(counts))
        if progress:
            progress("comparing graphs", done, len(sets))
    return found


def _contradictions(
    captions: Sequence[str], facts: Mapping[str, Sequence[Fact]], metric: Spice
) -> dict[frozenset[int], set[str]]:
    """Return for every two captions the aspects in which they contradict each other."""
    aspects: dict[frozenset[int], set[str]] = {}
    ordered = list(permutations(range(len(captions)), 2))
    items = tuple(Item(f"{i}#{j}", captions[i], (captions[j],)) for i, j in ordered)
    statistics = metric.collect(Corpus(items)) if items else []
    for (i, j), statistic in zip(ordered, statistics, strict=True):
        kinds = {CONTRADICTIONS[f.kind] for f in explain(statistic.match) if f.kind in CONTRADICTIONS}
        if not _denied(facts[captions[i]]).isdisjoint(_objects(facts[captions[j]])):
            kinds.add(_DENIAL)
        aspects.setdefault(frozenset((i, j)), set()).update(kinds)
    return aspects


def _size(graph: SceneGraph) -> int:
    return len(graph.objects) + len(graph.attributes) + len(graph.relations)


def _denied(facts: Sequence[Fact]) -> set[str]:
    """Return the things that a caption says are not there."""
    return {fact.words[0] for fact in facts if fact.rule == DENIED}


def _objects(facts: Sequence[Fact]) -> set[str]:
    """Return the things that a caption says are there."""
    return {fact.words[0] for fact in facts if len(fact.words) == 1} - _denied(facts)
