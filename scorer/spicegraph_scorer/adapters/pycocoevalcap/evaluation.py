"""The evaluation of a COCO result file, in the words of pycocoevalcap, with every score on its own image."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.adapters.pycocoevalcap.cider import CORPUS, Cider
from spicegraph_scorer.adapters.pycocoevalcap.scorers import (
    Bleu,
    Meteor,
    PTBTokenizer,
    Rouge,
    Spice,
    check_captions,
    sorted_ids,
    spice_scores,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from spicegraph_parser.rules import Fact
    from spicegraph_scorer.adapters.pycocoevalcap.coco import CaptionIndex
    from spicegraph_scorer.adapters.pycocoevalcap.scorers import Captions, SpiceScores
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.metrics.ngram import DocumentFrequencies

ImageScores = dict[str, "ItemId | float | SpiceScores"]
"""An image's scores by the COCO toolkit's keys, and its ``image_id``."""


class _Evaluation:
    """The captions of both sides, and where scores are kept."""

    def __init__(
        self,
        coco: CaptionIndex,
        cocoRes: CaptionIndex,  # noqa: N803 (the original's name)
        *,
        pipeline: str | FactSource,
    ) -> None:
        self.coco = coco
        self.cocoRes = cocoRes
        self.params: dict[str, Sequence[ItemId]] = {"image_id": coco.getImgIds()}
        self.eval: dict[str, float] = {}
        self.imgToEval: dict[ItemId, ImageScores] = {}
        self.evalImgs: list[ImageScores] = []
        self._pipeline = pipeline

    def _tokenized(self) -> tuple[dict[ItemId, list[str]], dict[ItemId, list[str]]]:
        """Return the references and the candidates of the chosen images."""
        ids = self.params["image_id"]
        gts = PTBTokenizer.tokenize({image_id: self.coco.imgToAnns[image_id] for image_id in ids})
        res = PTBTokenizer.tokenize({image_id: self.cocoRes.imgToAnns.get(image_id, ()) for image_id in ids})
        self.imgToEval = {image_id: {"image_id": image_id} for image_id in gts}
        return gts, res

    def setEval(self, score: float, method: str) -> None:  # noqa: N802 (the original's name)
        """Keep a corpus score."""
        self.eval[method] = score

    def setImgToEvalImgs(  # noqa: N802 (the original's name)
        self,
        scores: Iterable[float | SpiceScores],
        imgIds: Iterable[ItemId],  # noqa: N803 (the original's name)
        method: str,
    ) -> None:
        """Keep the scores of images, which are in the order of ``imgIds``."""
        for image_id, score in zip(imgIds, scores, strict=True):
            self.imgToEval.setdefault(image_id, {"image_id": image_id})[method] = score

    def setEvalImgs(self) -> None:  # noqa: N802 (the original's name)
        """Make ``evalImgs`` from ``imgToEval``."""
        self.evalImgs = list(self.imgToEval.values())

    def _keep(self, method: str, score: float, ids: Iterable[ItemId], each: Iterable[float | SpiceScores]) -> None:
        self.setEval(score, method)
        self.setImgToEvalImgs(each, ids, method)


class COCOEvalCap(_Evaluation):
    """BLEU, METEOR, ROUGE-L, CIDEr and SPICE of a result file.

    ``params["image_id"]`` lists the images that are scored: at first all that ``coco`` has. After
    :meth:`evaluate`, ``eval`` holds the corpus scores (``Bleu_1`` to ``Bleu_4``, ``METEOR``, ``ROUGE_L``,
    ``CIDEr``, ``SPICE``), ``imgToEval`` those of each image by id, and ``evalImgs`` the same as a list.

    As in the original, every scorer gets tokenized, lower-cased text without punctuation; SPICE of the
    captions as they were written is what :class:`.Spice` and the command ``spicegraph score`` give.

    SPICE's list of scores is in the order of the sorted ids. The original attaches it to the images in
    another order, so that with unsorted ids its ``imgToEval[id]["SPICE"]`` is another image's. Here it is
    the image's own.

    Args:
        coco: the references.
        cocoRes: one candidate per image.
        df: CIDEr's document frequencies, see :class:`.CiderD`.
        pipeline: what parses captions for SPICE.
    """

    def __init__(
        self,
        coco: CaptionIndex,
        cocoRes: CaptionIndex,  # noqa: N803 (the original's name)
        df: str | Path | DocumentFrequencies = CORPUS,
        *,
        pipeline: str | FactSource = DEFAULT_PIPELINE,
    ) -> None:
        super().__init__(coco, cocoRes, pipeline=pipeline)
        self._cider = Cider(df=df)

    def evaluate(self) -> None:
        """Score the images of ``params["image_id"]``.

        Raises:
            InputError: an image has no reference, or not one result; the message lists every such id.
            DataError: METEOR's data or SPICE's pipeline is not installed.
        """
        gts, res = self._tokenized()
        values, each = Bleu(4).compute_score(gts, res)
        for n, (value, scores) in enumerate(zip(values, each, strict=True), start=1):
            self._keep(f"Bleu_{n}", value, gts, scores)
        meteor, scores = Meteor().compute_score(gts, res)
        self._keep("METEOR", meteor, gts, scores)
        rouge, rouges = Rouge().compute_score(gts, res)
        self._keep("ROUGE_L", rouge, gts, rouges)
        cider, ciders = self._cider.compute_score(gts, res)
        self._keep("CIDEr", cider, gts, ciders)
        spice, categories = Spice(pipeline=self._pipeline).compute_score(gts, res)
        self._keep("SPICE", spice, sorted_ids(gts), categories)
        self.setEvalImgs()


class COCOEvalCapSpice(_Evaluation):
    """AllSPICE: SPICE of all captions that a system gave of an image, taken as one graph.

    Source: Luo and Shakhnarovich 2020, "Analysis of diversity-accuracy tradeoff in image captioning". The results have
    the keys of :class:`COCOEvalCap`, ``SPICE`` alone.
    """

    def __init__(
        self,
        coco: CaptionIndex,
        cocoRes: CaptionIndex,  # noqa: N803 (the original's name)
        *,
        pipeline: str | FactSource = DEFAULT_PIPELINE,
    ) -> None:
        super().__init__(coco, cocoRes, pipeline=pipeline)

    def evaluate(self) -> None:
        """Score the images of ``params["image_id"]``.

        Raises:
            InputError: an image has no reference or no result; the message lists every such id.
            DataError: the pipeline is not installed.
        """
        gts, res = self._tokenized()
        check_captions(gts, res, several=True)
        source = load_pipeline(self._pipeline) if isinstance(self._pipeline, str) else self._pipeline
        joined = {image_id: [_SEPARATOR.join(captions)] for image_id, captions in res.items()}
        value, scores = spice_scores(gts, joined, _JoinedFacts(source))
        self._keep("SPICE", value, sorted_ids(gts), scores)
        self.setEvalImgs()


_SEPARATOR = "\n"
"""Between the captions of one image; tokenized captions do not hold it."""


@dataclass(frozen=True, slots=True)
class _JoinedFacts:
    """Facts of texts that each hold several captions."""

    source: FactSource

    @property
    def signature(self) -> str:
        """The signature of what parses."""
        return self.source.signature

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of all captions of each text, in order."""
        captions = [text.split(_SEPARATOR) for text in texts]
        found = self.source.facts([caption for group in captions for caption in group])
        for group in captions:
            yield tuple(fact for facts in islice(found, len(group)) for fact in facts)


def compute_scores(gts: Captions, gen: Captions) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return corpus scores and image scores by ``BLEU`` (lists of four), ``METEOR``, ``ROUGE`` and ``CIDEr``.

    This is ``evaluation.compute_scores`` of Meshed-Memory Transformer.

    Raises:
        InputError: the captions do not pair up.
        DataError: METEOR's data is not installed.
    """
    found = {str(metric): metric.compute_score(gts, gen) for metric in (Bleu(), Meteor(), Rouge(), Cider())}
    return {name: score for name, (score, _) in found.items()}, {name: each for name, (_, each) in found.items()}
