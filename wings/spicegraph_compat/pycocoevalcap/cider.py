"""CIDEr in the dialects of pycocoevalcap, of pyciderevalcap and of the training code that uses either as a reward.

All take tokenized captions. What differs is where the document frequencies come from (``df``), and whether ``res`` is
a mapping (pycocoevalcap) or a list of ``{"image_id", "caption"}`` (pyciderevalcap), in which an image may occur often.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spicegraph_compat.pycocoevalcap import scorers
from spicegraph_parser.errors import DataError, InputError, expect
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import TokenizedItem
from spicegraph_scorer.metrics import cider

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = tuple[np.float64, NDArray[np.float64]]

CORPUS = "corpus"
COCO_VAL_IMAGES = 40_504
"""Images of COCO's validation set: what the frequencies of ``coco-val`` were counted over."""

_BUILT_IN = {("collections", "defaultdict"), ("builtins", "float"), ("__builtin__", "float")}


def _document_frequencies(df: str | Path | DocumentFrequencies) -> DocumentFrequencies | None:
    """Return the frequencies that a scorer's ``df`` names; ``None`` stands for those of the captions scored."""
    # A file has its path, or the originals' name for it: coco-train-idxs is data/coco-train-idxs.p.
    if isinstance(df, DocumentFrequencies):
        return df
    expect(df, (str, Path), "df", "'corpus', a path or DocumentFrequencies")
    if df == CORPUS:
        return None
    tried = [Path(df), *(Path("data", f"{df}{ending}") for ending in (".npz", ".p"))]
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        raise DataError(f"document frequencies {str(df)!r}: no such file; tried {', '.join(map(str, tried))}")
    return DocumentFrequencies.read(path) if path.suffix == ".npz" else read_pickled_frequencies(path)


def read_pickled_frequencies(path: Path) -> DocumentFrequencies:
    """Read the document frequencies that training repositories keep in ``.p`` files.

    The file holds ``{"document_frequency": {("a", "dog"): 12.0, ...}, "ref_len": 113287}``, or the inner mapping
    alone, which is then COCO's validation set's. Only mappings, tuples, texts and numbers are unpickled: a file that
    would run code is refused.
    """
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="latin1").load()
        counts, images = content, COCO_VAL_IMAGES
        if "document_frequency" in content:
            counts, images = content["document_frequency"], content["ref_len"]
        return DocumentFrequencies.from_ngrams(round(float(images)), counts)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"{path}: does not hold document frequencies ({error})") from error


class _Unpickler(pickle.Unpickler):
    """Reads mappings, tuples, texts and numbers."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _BUILT_IN:
            raise pickle.UnpicklingError(f"it needs {module}.{name}, which is not read")
        return super().find_class("builtins" if name == "float" else module, name)


class _Scorer(scorers.NamedScorer):
    """Base class of the CIDEr scorers; a subclass sets the variant and the name."""

    _metric: ClassVar[cider.Cider]
    _text = "CIDEr"

    def __init__(
        self, n: int = cider.ORDERS, sigma: float = cider.SIGMA, df: str | Path | DocumentFrequencies = CORPUS
    ) -> None:
        if n != cider.ORDERS or sigma != cider.SIGMA:
            raise InputError(f"{type(self).__name__} takes n=4, sigma=6, got n={n}, sigma={sigma:g}")
        self.cider_scorer = CiderScorer(metric=self._metric, df=df)

    def compute_score(self, gts: scorers.Captions, res: scorers.Captions | scorers.Results) -> Scores:
        """Return the corpus score in [0, 10], and the score of each result.

        A mapping ``res`` is scored in the order of ``gts``, a list of ``{"image_id": ..., "caption": [candidate]}`` in
        its own; with the frequencies of the corpus, every entry of the list counts as an image.
        """
        items = scorers.split_items(gts, res) if isinstance(res, Mapping) else scorers.paired_results(gts, res)
        return self.cider_scorer.scores_of(items)

    def my_self_cider(self, res: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """Return for each group the score of every caption (row) against every other (column), by ``cider_scorer``."""
        return [self.cider_scorer.among(captions) for captions in res]


class Cider(_Scorer):
    """CIDEr-D, which the COCO toolkit calls CIDEr, with n-grams up to four words and sigma 6.

    Document frequencies come from the references that are scored; from ``test``, references by image, as in
    Meshed-Memory Transformer's ``Cider(gts)``; or from ``df``: see :class:`CiderD`. Of a single image the score is 0,
    as in the original (and a ``CiderWarning`` says why).
    """

    _metric = cider.COCO_CIDER
    _method = "CIDEr"

    def __init__(
        self,
        test: scorers.Captions | None = None,
        refs: object = None,
        n: int = cider.ORDERS,
        sigma: float = cider.SIGMA,
        *,
        gts: scorers.Captions | None = None,
        df: str | Path | DocumentFrequencies = CORPUS,
    ) -> None:
        references = [given for given in (test, gts) if given is not None]
        if refs is not None or len(references) + (df != CORPUS) > 1:
            raise InputError("Cider takes one source of document frequencies: gts or df")
        if references and not isinstance(references[0], Mapping):
            raise InputError("Cider takes the references by image: {id: [tokenized reference, ...]}")
        super().__init__(n, sigma, _frequencies_of(references[0]) if references else df)


class CiderD(_Scorer):
    """CIDEr-D of pyciderevalcap, with ``n`` 4 and ``sigma`` 6.

    ``df`` says where document frequencies come from: ``corpus`` (the references that are scored),
    :class:`.DocumentFrequencies`, or a file of them (of ``spicegraph idf``, or the ``.p`` file of a training
    repository, by its path or its name).
    """

    _metric = cider.COCO_CIDER
    _method = "CIDEr-D"


class PlainCider(_Scorer):
    """``pyciderevalcap.cider.cider.Cider``: CIDEr without clipping and without a penalty on length."""

    _metric = cider.Cider("CIDEr")
    _method = "CIDEr"


class CiderScorer:
    """Candidates with their references, added one by one, and their CIDEr-D.

    ``scorer += (candidate, references)`` adds tokenized captions; the candidate is ``None`` where references are
    added for their document frequencies only.
    """

    def __init__(
        self,
        test: str | None = None,
        refs: Sequence[str] | None = None,
        n: int = cider.ORDERS,
        sigma: float = cider.SIGMA,
        *,
        df: str | Path | DocumentFrequencies = CORPUS,
        metric: cider.Cider = cider.COCO_CIDER,
    ) -> None:
        if n != cider.ORDERS or sigma != cider.SIGMA:
            raise InputError(f"CiderScorer takes n=4, sigma=6, got n={n}, sigma={sigma:g}")
        self.n, self.sigma = n, sigma
        self._metric = metric
        self._frequencies = _document_frequencies(df)
        self.clear()
        if refs is not None:
            self.crefs.append(list(refs))
            self.ctest.append(test)

    def clear(self) -> None:
        """Drop the captions that were added; the weights stay."""
        self.crefs: list[list[str]] = []
        self.ctest: list[str | None] = []

    def size(self) -> int:
        """Return how many entries were added."""
        return len(self.crefs)

    def __iadd__(self, other: tuple[str | None, Sequence[str]] | CiderScorer) -> CiderScorer:
        """Add a candidate (or ``None``) and its references, or everything of another scorer."""
        candidates, references = (
            (other.ctest, other.crefs) if isinstance(other, CiderScorer) else ([other[0]], [other[1]])
        )
        self.ctest.extend(candidates)
        self.crefs.extend(list(texts) for texts in references)
        return self

    def compute_doc_freq(self) -> None:
        """Take the document frequencies of the references that were added."""
        self._frequencies = _frequencies_of(dict(enumerate(self.crefs)))

    @property
    def ref_len(self) -> float | None:
        """The logarithm of the number of images that the frequencies were counted over."""
        return None if self._frequencies is None else math.log(self._frequencies.images)

    @ref_len.setter
    def ref_len(self, value: float) -> None:
        if self.ref_len is None or not math.isclose(self.ref_len, value, abs_tol=1e-9):
            raise InputError(f"ref_len follows from the document frequencies: it is {self.ref_len}, not {value}")

    def compute_score(self) -> Scores:
        """Return the mean, and the score of each candidate that was added; no entry may lack one."""
        texts = [text for text in self.ctest if text is not None]
        if len(texts) != len(self.ctest):
            raise InputError(f"{len(self.ctest) - len(texts)} of {len(self.ctest)} entries have no candidate")
        return self.scores_of(_item(text, references) for text, references in zip(texts, self.crefs, strict=True))

    def scores_of(self, items: Iterable[TokenizedItem]) -> Scores:
        """Return the mean and each item's score, with these frequencies; undefined scores are 0."""
        statistics = cider.cider_statistics(list(items), variant=self._metric.variant, frequencies=self._frequencies)
        (score,) = self._metric.total(statistics)
        return np.float64(score.value or 0.0), np.array([value or 0.0 for value in score.each])

    def among(self, captions: Sequence[str]) -> NDArray[np.float64]:
        """Return the score of every caption (row) with every caption as the only reference (column)."""
        if self._frequencies is None:
            raise InputError("my_self_cider needs document frequencies: add references and call compute_doc_freq()")
        pairs = [_item(candidate, [reference]) for candidate in captions for reference in captions]
        return self.scores_of(pairs)[1].reshape(len(captions), len(captions))


def _item(candidate: str, references: Iterable[str]) -> TokenizedItem:
    return TokenizedItem(tuple(candidate.split()), tuple(tuple(text.split()) for text in references))


def _frequencies_of(gts: scorers.Captions) -> DocumentFrequencies:
    scorers.check_captions(gts, {image_id: [""] for image_id in gts})
    return DocumentFrequencies.from_references([[tuple(text.split()) for text in texts] for texts in gts.values()])
