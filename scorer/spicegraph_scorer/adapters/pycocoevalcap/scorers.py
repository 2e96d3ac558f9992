"""The scorers of pycocoevalcap and its tokenizer: same calls, same shapes, same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.adapters.pycocoevalcap.inputs import Captions, check_captions, split_items
from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.core.items import Corpus, Item, ItemId
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics import bleu, cider, meteor, rouge
from spicegraph_scorer.metrics.spice import metric as spice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.metric import Score


SpiceScores = dict[str, dict[str, float]]
"""One image's SPICE: category to f, pr, re, tp, fp, fn, numImages, all floats; NaN is undefined."""


class PTBTokenizer:
    """The Penn Treebank tokenizer of the COCO toolkit.

    All captions of one call are read as one text, as the Java program reads them; in rare cases (63 of
    616,767 COCO captions) a caption's last token depends on the caption after it.
    """

    def tokenize(self, captions_for_image: Mapping[Any, Sequence[Mapping[str, object]]]) -> dict[ItemId, list[str]]:
        """Return ``{id: [tokenized caption, ...]}`` for ``{id: [{"caption": text}, ...]}``.

        Tokens are lower-cased, have spaces between them, and the toolkit's list of punctuation is left out.

        Example:
            >>> PTBTokenizer().tokenize({7: [{"caption": "A man's dog."}]})
            {7: ["a man 's dog"]}
        """
        texts = [
            str(caption["caption"]).replace("\n", " ")
            for captions in captions_for_image.values()
            for caption in captions
        ]
        tokenized = map(" ".join, tokenize_texts(texts, together=True))
        return {image_id: [next(tokenized) for _ in captions] for image_id, captions in captions_for_image.items()}


class Bleu:
    """BLEU-1 to BLEU-n."""

    def __init__(self, n: int = 4) -> None:
        if not 1 <= n <= bleu.ORDERS:
            raise InputError(f"Bleu takes an n from 1 to {bleu.ORDERS}, got {n}")
        self._n = n

    def compute_score(self, gts: Captions, res: Captions, verbose: int = 1) -> tuple[list[float], list[list[float]]]:
        """Return the n corpus scores, and n lists of scores by image in the order of ``gts``.

        ``verbose`` makes the original print counts; nothing is printed here.

        Raises:
            InputError: the captions do not pair up.
        """
        del verbose
        scores = bleu.Bleu().total(bleu.bleu_statistics(split_items(gts, res)))[: self._n]
        return [_corpus(score) for score in scores], [_each(score) for score in scores]

    def method(self) -> str:
        """Return ``Bleu``."""
        return "Bleu"


class Meteor:
    """METEOR 1.5."""

    def compute_score(self, gts: Captions, res: Captions) -> tuple[float, list[float]]:
        """Return the corpus score, and the scores by image in the order of ``gts``.

        Raises:
            InputError: the captions do not pair up.
            DataError: METEOR's data is not installed.
        """
        check_captions(gts, res)
        data = meteor.load_data()
        texts = [meteor.coco_texts([res[image_id][0]], [[text] for text in gts[image_id]]) for image_id in gts]
        (score,) = meteor.Meteor(data).total(meteor.score_texts(texts, data=data))
        return _corpus(score), _each(score)

    def method(self) -> str:
        """Return ``METEOR``."""
        return "METEOR"


class Rouge:
    """ROUGE-L with beta 1.2, precision and recall each from the best reference."""

    def compute_score(self, gts: Captions, res: Captions) -> tuple[np.float64, NDArray[np.float64]]:
        """Return the corpus score, and the scores by image in the order of ``gts``.

        Raises:
            InputError: the captions do not pair up.
        """
        statistics = [rouge.rouge_l_statistic(item) for item in split_items(gts, res)]
        (score,) = rouge.RougeL().total(statistics)
        return np.float64(_corpus(score)), np.array(_each(score))

    def method(self) -> str:
        """Return ``Rouge``."""
        return "Rouge"


class Cider:
    """CIDEr-D, which the COCO toolkit calls CIDEr, with n-grams up to four words and sigma 6.

    Document frequencies come from ``gts``. Of a single image the score is 0, as in the original (and a
    ``CiderWarning`` says why).
    """

    def __init__(
        self, test: object = None, refs: object = None, n: int = cider.ORDERS, sigma: float = cider.SIGMA
    ) -> None:
        del test, refs  # the original takes them and does not use them
        if n != cider.ORDERS or sigma != cider.SIGMA:
            raise InputError(f"Cider takes n={cider.ORDERS}, sigma={cider.SIGMA}, got n={n}, sigma={sigma}")

    def compute_score(self, gts: Captions, res: Captions) -> tuple[np.float64, NDArray[np.float64]]:
        """Return the corpus score in [0, 10], and the scores by image in the order of ``gts``.

        Raises:
            InputError: the captions do not pair up.
        """
        (score,) = cider.COCO_CIDER.total(cider.cider_statistics(split_items(gts, res)))
        return np.float64(_corpus(score)), np.array(_each(score))

    def method(self) -> str:
        """Return ``CIDEr``."""
        return "CIDEr"


class Spice:
    """SPICE 1.0 with all categories.

    ``pipeline`` names the spaCy pipeline that parses, or is whatever else gives facts.
    """

    def __init__(self, *, pipeline: str | FactSource = DEFAULT_PIPELINE) -> None:
        self._pipeline = pipeline

    def compute_score(self, gts: Captions, res: Captions) -> tuple[float, list[SpiceScores]]:
        """Return the mean of ``All``, and the scores by image **in the order of the sorted ids**.

        Raises:
            InputError: the captions do not pair up.
            DataError: the pipeline is not installed.

        Example:
            >>> mean, scores = Spice().compute_score({1: ["a brown dog"]}, {1: ["a dog"]})
            >>> scores[0]["Object"]["f"]
            1.0
        """
        check_captions(gts, res)
        source = load_pipeline(self._pipeline) if isinstance(self._pipeline, str) else self._pipeline
        items = tuple(Item(image_id, res[image_id][0], tuple(gts[image_id])) for image_id in sorted_ids(gts))
        statistics = spice.Spice(source).collect(Corpus(items))
        scores = [
            {name: _floats(counts, total=name == ALL) for name, counts in statistic.counts.items()}
            for statistic in statistics
        ]
        values = [score[ALL]["f"] for score in scores]
        return (sum(values) / len(values) if values else float("nan")), scores

    def method(self) -> str:
        """Return ``SPICE``."""
        return "SPICE"


def sorted_ids(captions: Captions) -> list[ItemId]:
    """Return the ids in ascending order; where integers and strings are mixed, integers first."""
    return sorted(captions, key=_id_order)


def _id_order(image_id: ItemId) -> tuple[bool, int, str]:
    return (False, image_id, "") if isinstance(image_id, int) else (True, 0, image_id)


def _floats(counts: Counts, *, total: bool) -> dict[str, float]:
    """Return counts as the original gives them: every value a float, undefined scores NaN."""
    defined = bool(counts.reference) or total
    return {
        "pr": counts.precision if defined else float("nan"),
        "re": counts.recall if defined else float("nan"),
        "f": counts.f1 if defined else float("nan"),
        "fn": float(counts.reference - counts.matched),
        "numImages": 1.0,
        "fp": float(counts.candidate - counts.matched),
        "tp": float(counts.matched),
    }


def _corpus(score: Score) -> float:
    """Return a corpus score; what is undefined here is 0 in the originals."""
    return 0.0 if score.value is None else score.value


def _each(score: Score) -> list[float]:
    return [0.0 if value is None else value for value in score.each]
