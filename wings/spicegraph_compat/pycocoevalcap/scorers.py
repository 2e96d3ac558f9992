"""The scorers of pycocoevalcap and its tokenizer: same calls, same shapes, same numbers."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from spicegraph_parser.errors import InputError, expect, expect_list, kind_of
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.core.items import Item, ItemId
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem, tokenize_texts
from spicegraph_scorer.metrics import bleu, meteor, rouge
from spicegraph_scorer.metrics.spice import metric as spice
from spicegraph_scorer.readers.checks import Fault, input_error, refuse_faults, shown
from spicegraph_scorer.readers.marks import kept_note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.metric import Score

SpiceScores = dict[str, dict[str, float]]
"""One image's SPICE: category to f, pr, re, tp, fp, fn, numImages, all floats; NaN is undefined."""


class PTBTokenizer:
    """The Penn Treebank tokenizer of the COCO toolkit.

    All captions of one call are read as one text, as the Java program reads them; in rare cases (63 of
    616,767 COCO captions) a caption's last token depends on the caption after it.

    ``_source`` (``gts`` or ``res``) is pyciderevalcap's, where it names the shape of the captions; here the captions
    show it themselves. :meth:`tokenize` is also called on the class.
    """

    def __init__(self, _source: str = "gts") -> None:
        if _source not in {"gts", "res"}:
            raise InputError(f"PTBTokenizer takes gts or res, got {_source!r}")

    @overload
    @staticmethod
    def tokenize(
        captions_for_image: Mapping[Any, Sequence[str | Mapping[str, object]]]
        | Sequence[str]
        | Sequence[Sequence[str]],
    ) -> dict[Any, list[str]]: ...
    @overload
    @staticmethod
    def tokenize(captions_for_image: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]: ...
    @staticmethod
    def tokenize(
        captions_for_image: Mapping[Any, Sequence[str | Mapping[str, object]]]
        | Sequence[str | Sequence[str] | Mapping[str, Any]],
    ) -> dict[Any, list[str]] | list[dict[str, Any]]:
        """Tokenize captions in any of the shapes that training and evaluation code has them in.

        Tokens are lower-cased, have spaces between them, and the toolkit's list of punctuation is left out. The
        shapes are ``{id: [{"caption": text}, ...]}`` or ``{id: [text, ...]}``; a list of texts, or of lists of texts,
        whose ids are their places; or a list of ``{"image_id": id, "caption": text}``, whose texts become lists of one.

        >>> PTBTokenizer().tokenize({7: [{"caption": "A man's dog."}]})
        {7: ["a man 's dog"]}
        """
        if isinstance(captions_for_image, Mapping):
            return _tokenized(captions_for_image)
        expect_list(captions_for_image, "captions", "an object or a list of captions")
        if captions_for_image and isinstance(captions_for_image[0], Mapping):
            return _tokenized_entries([entry for entry in captions_for_image if isinstance(entry, Mapping)])
        lists = [[entry] if isinstance(entry, str) else entry for entry in captions_for_image]
        return _tokenized(dict(enumerate(lists)))


def _without_java(program: str) -> None:
    """Tell audit hooks that the original would start a Java program here; ``spicegraph_compat.shim`` reports it."""
    sys.audit("spicegraph.without_java", program)


def _tokenized_entries(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    texts = _tokenized({number: [entry] for number, entry in enumerate(entries)})
    if lacking := [number for number, entry in enumerate(entries) if "image_id" not in entry]:
        raise InputError(f"captions[{lacking[0]}]: has no image_id")
    return [{"image_id": entry["image_id"], "caption": texts[number]} for number, entry in enumerate(entries)]


def _tokenized(captions_for_image: Mapping[Any, Iterable[Any]]) -> dict[Any, list[str]]:
    _without_java("PTBTokenizer")
    faults = [
        Fault(f"id {shown(image_id)}", "", f"is {kind_of(captions_of_image)}, expected a list of captions")
        for image_id, captions_of_image in captions_for_image.items()
        if isinstance(captions_of_image, str | Mapping) or not isinstance(captions_of_image, Iterable)
    ]
    refuse_faults("captions", faults)
    captions = {
        image_id: [_text(image_id, caption) for caption in captions_of_image]
        for image_id, captions_of_image in captions_for_image.items()
    }
    _warn_of_marks(captions.values())
    tokens = map(" ".join, tokenize_texts([text for texts in captions.values() for text in texts], together=True))
    return {image_id: list(islice(tokens, len(texts))) for image_id, texts in captions.items()}


def _warn_of_marks(captions: Iterable[Iterable[str]]) -> None:
    """Warn of leftover control tokens such as ``<eos>``, which are scored as words."""
    if note := kept_note(chain.from_iterable(captions)):
        warnings.warn(f"{note}; score(..., control_tokens='strip') takes it off", stacklevel=4)


def _text(image_id: object, caption: object) -> str:
    text = caption.get("caption") if isinstance(caption, Mapping) else caption
    if not isinstance(text, str):
        raise InputError(f"id {shown(image_id)}: {shown(caption)} is not a caption, nor an object with a caption")
    return text.replace("\n", " ")


class NamedScorer:
    """Base class of scorers with a name, by ``method()`` and as text."""

    _method: ClassVar[str]
    _text: ClassVar[str]

    def method(self) -> str:
        """Return the metric's name."""
        return self._method

    def __str__(self) -> str:
        return self._text


class Bleu(NamedScorer):
    """BLEU-1 to BLEU-n."""

    _method, _text = "Bleu", "BLEU"

    def __init__(self, n: int = 4) -> None:
        expect(n, int, "n", "a number")
        if not 1 <= n <= bleu.ORDERS:
            raise InputError(f"Bleu takes an n from 1 to {bleu.ORDERS}, got {n}")
        self._n = n

    def compute_score(self, gts: Captions, res: Captions, verbose: int = 1) -> tuple[list[float], list[list[float]]]:
        """Return the n corpus scores, and n lists of scores by image in the order of ``gts``; nothing is printed."""
        del verbose
        scores = bleu.Bleu().total(bleu.bleu_statistics(split_items(gts, res)))[: self._n]
        return [_corpus(score) for score in scores], [_each(score) for score in scores]


@cache
def _load_meteor_data(_cache_home: str | None) -> meteor.MeteorData:
    """Return METEOR's data, loaded and checked once a process: some scripts call the scorer for every caption."""
    return meteor.load_data()


class Meteor(NamedScorer):
    """METEOR 1.5."""

    _method = _text = "METEOR"

    def compute_score(self, gts: Captions, res: Captions) -> tuple[float, list[float]]:
        """Return the corpus score, and the scores by image in the order of ``gts``."""
        check_captions(gts, res)
        _without_java("METEOR")
        data = _load_meteor_data(os.environ.get("XDG_CACHE_HOME"))
        texts = [meteor.coco_texts([res[image_id][0]], [[text] for text in gts[image_id]]) for image_id in gts]
        (score,) = meteor.Meteor(data).total(meteor.score_texts(texts, data=data))
        return _corpus(score), _each(score)


class Rouge(NamedScorer):
    """ROUGE-L with beta 1.2, precision and recall each from the best reference."""

    _method, _text = "Rouge", "ROUGE"

    def calc_score(self, candidate: Sequence[str], refs: Sequence[str]) -> float:
        """Return the score of ``[candidate]`` against the references of one image."""
        return float(self.compute_score({0: refs}, {0: candidate})[0])

    def compute_score(self, gts: Captions, res: Captions) -> tuple[np.float64, NDArray[np.float64]]:
        """Return the corpus score, and the scores by image in the order of ``gts``."""
        items = split_items(gts, res, separator=" ")  # as the original: a line's end stays with its last word
        statistics = [rouge.rouge_l_statistic(item) for item in items]
        (score,) = rouge.RougeL().total(statistics)
        return np.float64(_corpus(score)), np.array(_each(score))


class Spice(NamedScorer):
    """SPICE 1.0 with all categories; ``pipeline``: its name, or whatever else gives facts."""

    _method = _text = "SPICE"

    def __init__(self, *, pipeline: str | FactSource = DEFAULT_PIPELINE) -> None:
        self._pipeline = pipeline

    def compute_score(self, gts: Captions, res: Captions) -> tuple[float, list[SpiceScores]]:
        """Return the mean of ``All``, and the scores by image **in the order of the sorted ids**.

        >>> mean, scores = Spice().compute_score({1: ["a brown dog"]}, {1: ["a dog"]})
        >>> scores[0]["Object"]["f"]
        1.0
        """
        check_captions(gts, res)
        source = load_pipeline(self._pipeline) if isinstance(self._pipeline, str) else self._pipeline
        return spice_scores(gts, res, source)


def spice_scores(gts: Captions, res: Captions, source: FactSource) -> tuple[float, list[SpiceScores]]:
    """Return the mean of ``All``, and the scores by image in the order of the sorted ids."""
    _without_java("SPICE")
    items = tuple(Item(image_id, res[image_id][0], tuple(gts[image_id])) for image_id in sorted_ids(gts))
    statistics = spice.Spice(source).collect(Corpus(items))
    scores = [{name: _values_of(name, counts) for name, counts in each.counts.items()} for each in statistics]
    values = [score[ALL]["f"] for score in scores]
    return (sum(values) / len(values) if values else float("nan")), scores


def sorted_ids(captions: Captions) -> list[ItemId]:
    """Return the ids in ascending order; where integers and strings are mixed, integers first."""
    numbers = sorted(image_id for image_id in captions if isinstance(image_id, int))
    return [*numbers, *sorted(image_id for image_id in captions if not isinstance(image_id, int))]


def _corpus(score: Score) -> float:
    """Return a corpus score; an undefined one is 0, as in the originals."""
    return 0.0 if score.value is None else score.value


def _each(score: Score) -> list[float]:
    return [0.0 if value is None else value for value in score.each]


Captions = Mapping[Any, Sequence[str]]
"""Captions by image id (integer or string): one candidate, or all references.

The key is ``Any`` because a mapping's key type is invariant: a ``dict[int, list[str]]`` must be accepted.
"""

Results = Sequence[Mapping[str, Any]]
"""pyciderevalcap's candidates: ``{"image_id": id, "caption": [candidate]}`` each; an image may occur often."""


class ShapeError(InputError, AssertionError):
    """``gts`` and ``res`` do not fit each other; the originals fail an ``assert`` here."""


def _values_of(name: str, counts: Counts) -> dict[str, float]:
    """Return the counts of a category as the original gives them: every value a float, undefined scores NaN."""
    defined = bool(counts.reference) or name == ALL
    return {
        "pr": counts.precision if defined else float("nan"),
        "re": counts.recall if defined else float("nan"),
        "f": counts.f1 if defined else float("nan"),
        "fn": float(counts.reference - counts.matched),
        "numImages": 1.0,
        "fp": float(counts.candidate - counts.matched),
        "tp": float(counts.matched),
    }


def check_captions(gts: Captions, res: Captions, *, several: bool = False) -> None:
    """Refuse captions whose ids differ, images without a reference, and those without one candidate, or several."""
    faults = list(_shape_faults(("gts", gts), ("res", res)))
    if not faults:
        faults += [Fault(f"id {shown(i)}", "res", "is missing") for i in gts if i not in res]
        faults += [Fault(f"id {shown(i)}", "gts", "is missing") for i in res if i not in gts]
        for image_id in (i for i in gts if i in res):
            faults += _caption_faults(image_id, "gts", gts[image_id])
            faults += _caption_faults(image_id, "res", res[image_id])
            if not several:
                faults += _several_faults(image_id, res[image_id])
    _refuse(faults)


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        raise ShapeError(str(input_error("gts and res", faults)))


def _shape_faults(*sides: tuple[str, object]) -> Iterator[Fault]:
    for side, captions in sides:
        if not isinstance(captions, Mapping):
            yield Fault(side, "", f"is {kind_of(captions)}, expected an object {{id: [caption, ...]}}")


def _several_faults(image_id: ItemId, captions: object) -> Iterator[Fault]:
    if not isinstance(captions, str) and isinstance(captions, Sequence) and len(captions) > 1:
        yield Fault(f"id {shown(image_id)}", "res", f"holds {len(captions)} captions, expected one")


def _caption_faults(image_id: ItemId, side: str, captions: object) -> Iterator[Fault]:
    name = f"id {shown(image_id)}"
    if isinstance(captions, str) or not isinstance(captions, Sequence):
        yield Fault(name, side, f"is {shown(captions)}, expected a list of strings")
    elif not captions:
        yield Fault(name, side, "contains no caption")
    else:
        for index, caption in enumerate(captions):
            if not isinstance(caption, str):
                yield Fault(name, f"{side}[{index}]", f"is {shown(caption)}, expected a string")


def split_items(gts: Captions, res: Captions, *, separator: str | None = None) -> list[TokenizedItem]:
    """Return the words of tokenized captions as items, in the order of ``gts``; refuse those that do not pair up."""
    # ``separator``: what stands between words; by default any white space.
    check_captions(gts, res)
    return [
        TokenizedItem(
            tuple(res[image_id][0].split(separator)), tuple(tuple(text.split(separator)) for text in references)
        )
        for image_id, references in gts.items()
    ]


def paired_results(gts: Captions, res: Results) -> list[TokenizedItem]:
    """Return the words of a list of results with their images' references, in the order of ``res``."""
    expect_list(res, "res", "an object or a list of results")
    faults = list(_shape_faults(("gts", gts)))
    entries: Sequence[object] = res
    if not faults:
        for image_id, references in gts.items():
            faults += _caption_faults(image_id, "gts", references)
        for index, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or not {"image_id", "caption"} <= entry.keys():
                reason = f'is {shown(entry)}, expected {{"image_id": ..., "caption": [candidate]}}'
                faults.append(Fault(f"res[{index}]", "", reason))
            elif entry["image_id"] not in gts:
                faults.append(Fault(f"id {shown(entry['image_id'])}", "gts", "is missing"))
            else:
                faults += _caption_faults(entry["image_id"], "res", entry["caption"])
                faults += _several_faults(entry["image_id"], entry["caption"])
    _refuse(faults)
    words = {image_id: tuple(tuple(text.split()) for text in texts) for image_id, texts in gts.items()}
    return [TokenizedItem(tuple(entry["caption"][0].split()), words[entry["image_id"]]) for entry in res]
