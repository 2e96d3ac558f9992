"""The evaluation of a COCO result file, in the words of pycocoevalcap, with every score on its own image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.adapters.pycocoevalcap.scorers import Bleu, Cider, Meteor, PTBTokenizer, Rouge, Spice, sorted_ids
from spicegraph_scorer.readers.annotations import read_annotations
from spicegraph_scorer.readers.read import read_items
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from spicegraph_scorer.adapters.pycocoevalcap.scorers import SpiceScores
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import ItemId


ImageScores = dict[str, "ItemId | float | SpiceScores"]
"""An image's scores by the COCO toolkit's keys, and its ``image_id``."""


class CaptionIndex(Protocol):
    """What is needed of a COCO object: pycocotools' ``COCO`` has it, and so has :class:`COCO`."""

    @property
    def imgToAnns(self) -> Mapping[Any, Sequence[Mapping[str, object]]]:  # noqa: N802 (pycocotools' name)
        """The annotations of each image, each with a ``caption``."""
        ...

    def getImgIds(self) -> Sequence[Any]:  # noqa: N802 (pycocotools' name)
        """Return the ids of all images."""
        ...


class COCO:
    """The captions of COCO files, without pycocotools.

    Raises:
        InputError: the file is missing or faulty; the message lists every fault.

    Example:
        >>> references = COCO("captions.json")  # doctest: +SKIP
        >>> COCOEvalCap(references, references.loadRes("results.json")).evaluate()  # doctest: +SKIP
    """

    def __init__(self, annotation_file: str | Path) -> None:
        self._file = str(annotation_file)
        with open_source(self._file) as source:
            captions = read_annotations(source, limits=DEFAULT_LIMITS).captions
        self.imgToAnns = {image_id: _annotations(image_id, texts) for image_id, texts in captions.items()}

    def getImgIds(self) -> list[ItemId]:  # noqa: N802 (pycocotools' name)
        """Return the ids of all images, in the order of the file."""
        return list(self.imgToAnns)

    def loadRes(self, results_file: str | Path) -> COCO:  # noqa: N802 (pycocotools' name)
        """Return the captions of a COCO results file, which may leave images out.

        Raises:
            InputError: the file is missing or faulty, or has images that the annotations do not have.
        """
        dataset = read_items(str(results_file), references=self._file, partial=True)
        results = COCO.__new__(COCO)
        results._file = str(results_file)
        results.imgToAnns = {item.id: _annotations(item.id, [item.candidate]) for item in dataset.items}
        return results


def _annotations(image_id: ItemId, captions: Iterable[str]) -> list[dict[str, object]]:
    return [{"image_id": image_id, "caption": caption} for caption in captions]


class COCOEvalCap:
    """BLEU, METEOR, ROUGE-L, CIDEr and SPICE of a result file.

    ``params["image_id"]`` lists the images that are scored: at first all that ``coco`` has. After
    :meth:`evaluate`, ``eval`` holds the corpus scores (``Bleu_1`` to ``Bleu_4``, ``METEOR``, ``ROUGE_L``,
    ``CIDEr``, ``SPICE``), ``imgToEval`` those of each image by id, and ``evalImgs`` the same as a list.

    As in the original, every scorer gets tokenized, lower-cased text without punctuation; SPICE of the
    captions as they were written is what :class:`.Spice` and the command ``spicegraph score`` give.

    SPICE's list of scores is in the order of the sorted ids. The original attaches it to the images in
    another order, so that with unsorted ids its ``imgToEval[id]["SPICE"]`` is another image's. Here it is
    the image's own.
    """

    def __init__(
        self,
        coco: CaptionIndex,
        cocoRes: CaptionIndex,  # noqa: N803 (the original's name)
        *,
        pipeline: str | FactSource = DEFAULT_PIPELINE,
    ) -> None:
        self.coco = coco
        self.cocoRes = cocoRes
        self.params: dict[str, Sequence[ItemId]] = {"image_id": coco.getImgIds()}
        self.eval: dict[str, float] = {}
        self.imgToEval: dict[ItemId, ImageScores] = {}
        self.evalImgs: list[ImageScores] = []
        self._pipeline = pipeline

    def evaluate(self) -> None:
        """Score the images of ``params["image_id"]``.

        Raises:
            InputError: an image has no reference, or not one result; the message lists every such id.
            DataError: METEOR's data or SPICE's pipeline is not installed.
        """
        ids = self.params["image_id"]
        tokenizer = PTBTokenizer()
        gts = tokenizer.tokenize({image_id: self.coco.imgToAnns[image_id] for image_id in ids})
        res = tokenizer.tokenize({image_id: self.cocoRes.imgToAnns.get(image_id, ()) for image_id in ids})
        self.imgToEval = {image_id: {"image_id": image_id} for image_id in gts}
        values, each = Bleu(4).compute_score(gts, res)
        for n, (value, scores) in enumerate(zip(values, each, strict=True), start=1):
            self._set(f"Bleu_{n}", value, gts, scores)
        meteor, scores = Meteor().compute_score(gts, res)
        self._set("METEOR", meteor, gts, scores)
        rouge, rouges = Rouge().compute_score(gts, res)
        self._set("ROUGE_L", rouge, gts, rouges)
        cider, ciders = Cider().compute_score(gts, res)
        self._set("CIDEr", cider, gts, ciders)
        spice, categories = Spice(pipeline=self._pipeline).compute_score(gts, res)
        self._set("SPICE", spice, sorted_ids(gts), categories)
        self.evalImgs = list(self.imgToEval.values())

    def _set(self, key: str, value: float, ids: Iterable[ItemId], scores: Iterable[float | SpiceScores]) -> None:
        """Keep a scorer's result; ``ids`` are in the order of its list of scores."""
        self.eval[key] = value
        for image_id, score in zip(ids, scores, strict=True):
            self.imgToEval[image_id][key] = score
