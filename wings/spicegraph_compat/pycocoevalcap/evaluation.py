"""The evaluation of a COCO result file, in the words of pycocoevalcap, with every score on its own image."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spicegraph_compat.pycocoevalcap import scorers
from spicegraph_compat.pycocoevalcap.cider import CORPUS, Cider
from spicegraph_parser.errors import InputError, expect, kind_of
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.facts import FactSource, FunctionSource
from spicegraph_scorer.readers.checks import Fault, id_faults, refuse_faults, shown
from spicegraph_scorer.readers.records import decode, read_all
from spicegraph_scorer.readers.references import coco_annotations
from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source

if TYPE_CHECKING:
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.core.ngrams import DocumentFrequencies

Annotation = dict[str, Any]
"""An annotation or an image as its file has it: a JSON object with an ``id``."""
ImageScores = dict[str, "ItemId | float | scorers.SpiceScores"]
"""An image's scores by the COCO toolkit's keys, and its ``image_id``."""


class CaptionIndex(Protocol):
    """Interface of a COCO object, as of pycocotools' ``COCO`` and :class:`COCO`."""

    @property
    def imgToAnns(self) -> Mapping[Any, Sequence[Mapping[str, object]]]:  # noqa: N802 (pycocotools' name)
        """The annotations of each image, each with a ``caption``."""
        ...

    def getImgIds(self) -> Sequence[Any]:  # noqa: N802 (pycocotools' name)
        """Return the ids of all images."""
        ...


class COCO:
    """The captions of COCO files, without pycocotools; a message on a faulty file lists every fault.

    ``dataset`` is the file's JSON object, and :meth:`createIndex` makes ``anns``, ``imgs`` and ``imgToAnns`` from it.
    Without a file the dataset is empty, to be filled by the caller.

    >>> references = COCO("captions.json")  # doctest: +SKIP
    >>> COCOEvalCap(references, references.loadRes("results.json")).evaluate()  # doctest: +SKIP
    """

    def __init__(self, annotation_file: str | Path | None = None) -> None:
        self.dataset: dict[str, Any] = {}
        if annotation_file is not None:
            expect(annotation_file, (str, Path), "annotation_file", "the path of a file")
            with open_source(str(annotation_file)) as source:
                content = read_all(source, limits=DEFAULT_LIMITS)
                coco_annotations(source, content)
            value, reason = decode(content)
            if not isinstance(value, dict):
                raise InputError(reason or "is not a JSON object")
            self.dataset = dict(value)
        self.createIndex()

    def createIndex(self) -> None:  # noqa: N802 (pycocotools' name)
        """Make ``anns``, ``imgs`` and ``imgToAnns`` from ``dataset``; annotations without an id get a number."""
        self.anns: dict[Any, Annotation] = {}
        self.imgToAnns: defaultdict[Any, list[Annotation]] = defaultdict(list)
        for number, annotation in enumerate(self.dataset.get("annotations", ()), start=1):
            self.imgToAnns[annotation["image_id"]].append(annotation)
            self.anns[annotation.setdefault("id", number)] = annotation
        images = self.dataset.get("images") or [{"id": image_id} for image_id in self.imgToAnns]
        self.imgs: dict[Any, Annotation] = {image["id"]: image for image in images}

    def getImgIds(self, imgIds: ItemId | Iterable[ItemId] = ()) -> list[Any]:  # noqa: N802, N803 (pycocotools')
        """Return the ids of all images, in the order of the file, or of those named."""
        return _as_list(imgIds) or list(self.imgs)

    def getAnnIds(self, imgIds: ItemId | Iterable[ItemId] = ()) -> list[Any]:  # noqa: N802, N803 (pycocotools')
        """Return the ids of all annotations, or of those of some images."""
        named = _as_list(imgIds)
        if not named:
            return [annotation["id"] for annotation in self.dataset.get("annotations", ())]
        return [annotation["id"] for image_id in named for annotation in self.imgToAnns.get(image_id, ())]

    def loadAnns(self, ids: ItemId | Iterable[ItemId] = ()) -> list[Annotation]:  # noqa: N802 (pycocotools' name)
        """Return the annotations with these ids."""
        return [self.anns[annotation_id] for annotation_id in _as_list(ids)]

    def loadImgs(self, ids: ItemId | Iterable[ItemId] = ()) -> list[Annotation]:  # noqa: N802 (pycocotools' name)
        """Return the images with these ids."""
        return [self.imgs[image_id] for image_id in _as_list(ids)]

    def showAnns(self, anns: Iterable[Mapping[str, object]]) -> None:  # noqa: N802 (pycocotools' name)
        """Print the captions of annotations, one per line."""
        sys.stdout.writelines(f"{annotation['caption']}\n" for annotation in anns)

    def loadRes(  # noqa: N802 (pycocotools' name)
        self,
        resFile: str | Path | Sequence[Mapping[str, Any]] | np.ndarray[Any, Any],  # noqa: N803 (pycocotools' name)
    ) -> COCO:
        """Return the captions of a results file, or of a list or array of ``{"image_id", "caption"}``.

        Results may leave images out and, as in pycocotools, have several captions of an image; :class:`COCOEvalCap`
        scores one per image. An empty caption is one that scores 0.
        """
        name = "results"
        entries: Any = resFile.tolist() if isinstance(resFile, np.ndarray) else resFile
        if isinstance(resFile, str | Path):
            name = str(resFile)
            with open_source(name) as source:
                entries, reason = decode(read_all(source, limits=DEFAULT_LIMITS))
            if reason:
                raise InputError(f"{name}: {reason}")
        if not isinstance(entries, list | tuple):
            raise InputError(f'{name}: is not a list of {{"image_id", "caption"}}')
        faults = list(self._result_faults(entries))
        refuse_faults(name, faults)
        results = COCO()
        named = {entry["image_id"] for entry in entries}
        results.dataset = {
            "info": self.dataset.get("info", {}),
            "images": [image for image_id, image in self.imgs.items() if image_id in named],
            "annotations": [{**entry, "id": number} for number, entry in enumerate(entries, start=1)],
        }
        results.createIndex()
        return results

    def _result_faults(self, entries: Sequence[Any]) -> Iterator[Fault]:
        if not entries:
            yield Fault("", "", "contains no result")
        for number, entry in enumerate(entries, start=1):
            label_of_result = f"result {number}"
            if not isinstance(entry, Mapping) or not {"image_id", "caption"} <= entry.keys():
                yield Fault(label_of_result, "", f'is {shown(entry)}, expected {{"image_id": ..., "caption": ...}}')
                continue
            reasons = list(id_faults(entry["image_id"]))
            yield from (Fault(label_of_result, "image_id", reason) for reason in reasons)
            if reasons:
                continue
            label_of_result = f"{label_of_result} (image_id {shown(entry['image_id'])})"
            if entry["image_id"] not in self.imgs:
                yield Fault(label_of_result, "image_id", "is not in the references")
            if not isinstance(entry["caption"], str):
                yield Fault(label_of_result, "caption", f"is {shown(entry['caption'])}, expected a string")


def _as_list(ids: ItemId | Iterable[ItemId]) -> list[ItemId]:
    return [ids] if isinstance(ids, int | str | np.integer) else list(ids)


class _Evaluation:
    """The captions of both sides, and where scores are kept."""

    def __init__(
        self,
        coco: CaptionIndex,
        cocoRes: CaptionIndex,  # noqa: N803 (the original's name)
        *,
        pipeline: str | FactSource = DEFAULT_PIPELINE,
    ) -> None:
        for name, side in (("coco", coco), ("cocoRes", cocoRes)):
            if not (hasattr(side, "getImgIds") and hasattr(side, "imgToAnns")):
                raise InputError(f"{name}: is {kind_of(side)}, expected a COCO object, as COCO(file) or loadRes gives")
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
        gts = scorers.PTBTokenizer.tokenize({image_id: self.coco.imgToAnns[image_id] for image_id in ids})
        res = scorers.PTBTokenizer.tokenize({image_id: self.cocoRes.imgToAnns.get(image_id, ()) for image_id in ids})
        self.imgToEval = {image_id: {"image_id": image_id} for image_id in gts}
        return gts, res

    def setEval(self, score: float, method: str) -> None:  # noqa: N802 (the original's name)
        """Keep a corpus score."""
        self.eval[method] = score

    def setImgToEvalImgs(  # noqa: N802 (the original's name)
        self,
        scores: Iterable[float | scorers.SpiceScores],
        imgIds: Iterable[ItemId],  # noqa: N803 (the original's name)
        method: str,
    ) -> None:
        """Keep the scores of images, which are in the order of ``imgIds``."""
        for image_id, score in zip(imgIds, scores, strict=True):
            self.imgToEval.setdefault(image_id, {"image_id": image_id})[method] = score

    def setEvalImgs(self) -> None:  # noqa: N802 (the original's name)
        """Make ``evalImgs`` from ``imgToEval``."""
        self.evalImgs = list(self.imgToEval.values())

    def _keep(
        self, method: str, score: float, ids: Iterable[ItemId], each: Iterable[float | scorers.SpiceScores]
    ) -> None:
        self.setEval(score, method)
        self.setImgToEvalImgs(each, ids, method)


class COCOEvalCap(_Evaluation):
    """BLEU, METEOR, ROUGE-L, CIDEr and SPICE of a result file with one candidate per image.

    ``params["image_id"]`` lists the images that are scored: at first all that ``coco`` has. After
    :meth:`evaluate`, ``eval`` holds the corpus scores (``Bleu_1`` to ``Bleu_4``, ``METEOR``, ``ROUGE_L``,
    ``CIDEr``, ``SPICE``), ``imgToEval`` those of each image by id, and ``evalImgs`` the same as a list.

    As in the original, every scorer gets tokenized, lower-cased text without punctuation; SPICE of the
    captions as they were written is what :class:`.Spice` and the command ``spicegraph score`` give. Unlike in the
    original, SPICE's scores are attached to their own images also where ids are not sorted.
    ``df`` are CIDEr's document frequencies, see :class:`.CiderD`.
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
        """Score the images of ``params["image_id"]``; an InputError lists each without a reference or one result."""
        gts, res = self._tokenized()
        values, each = scorers.Bleu(4).compute_score(gts, res)
        for n, (value, scores) in enumerate(zip(values, each, strict=True), start=1):
            self._keep(f"Bleu_{n}", value, gts, scores)
        meteor, scores = scorers.Meteor().compute_score(gts, res)
        self._keep("METEOR", meteor, gts, scores)
        rouge, rouges = scorers.Rouge().compute_score(gts, res)
        self._keep("ROUGE_L", rouge, gts, rouges)
        cider, ciders = self._cider.compute_score(gts, res)
        self._keep("CIDEr", cider, gts, ciders)
        spice, categories = scorers.Spice(pipeline=self._pipeline).compute_score(gts, res)
        self._keep("SPICE", spice, scorers.sorted_ids(gts), categories)
        self.setEvalImgs()


class COCOEvalCapSpice(_Evaluation):
    """AllSPICE: SPICE of all captions that a system gave of an image, taken as one graph.

    Source: Luo and Shakhnarovich 2020, "Analysis of diversity-accuracy tradeoff in image captioning". The results have
    the keys of :class:`COCOEvalCap`, ``SPICE`` alone.
    """

    def evaluate(self) -> None:
        """Score the images of ``params["image_id"]``; an InputError lists every one without a reference or a result."""
        gts, res = self._tokenized()
        scorers.check_captions(gts, res, several=True)
        source = load_pipeline(self._pipeline) if isinstance(self._pipeline, str) else self._pipeline
        joined = {image_id: [_SEPARATOR.join(captions)] for image_id, captions in res.items()}
        value, scores = scorers.spice_scores(gts, joined, _joined_facts(source))
        self._keep("SPICE", value, scorers.sorted_ids(gts), scores)
        self.setEvalImgs()


_SEPARATOR = "\n"  # Between the captions of one image; tokenized captions do not hold it.


def _joined_facts(source: FactSource) -> FunctionSource:
    """Return a source for texts that each hold several captions."""

    def facts(texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        groups = [text.split(_SEPARATOR) for text in texts]
        of_captions = source.facts([caption for group in groups for caption in group])
        for group in groups:
            yield tuple(fact for of_caption in islice(of_captions, len(group)) for fact in of_caption)

    return FunctionSource(source.signature, facts, getattr(source, "language", None))


def compute_scores(gts: scorers.Captions, gen: scorers.Captions) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return corpus scores and image scores by ``BLEU`` (lists of four), ``METEOR``, ``ROUGE`` and ``CIDEr``."""
    # This is evaluation.compute_scores of Meshed-Memory Transformer.
    scored = {
        str(metric): metric.compute_score(gts, gen)
        for metric in (scorers.Bleu(), scorers.Meteor(), scorers.Rouge(), Cider())
    }
    return {name: score for name, (score, _) in scored.items()}, {name: each for name, (_, each) in scored.items()}
