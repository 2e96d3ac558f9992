"""SPICE, CIDEr-D, SPIDEr, SPIDEr-max and SPIDEr-FL in the shape of aac-metrics, without Java and without torch.

To change over, replace ``from aac_metrics.functional import spice, spider`` by
``from spicegraph_compat.aac_metrics import spice, spider``. As there, a call returns the corpus scores
and the scores of every item, both by name; they are numpy values, which have ``item()`` and ``tolist()`` as
tensors do. Options of the Java programs (paths, memory, timeouts) are accepted and do nothing; an option that
aac-metrics does not have, or a value that would change the result, is refused.

CIDEr-D reads words with spaces between them, as there: tokenize the captions before. SPICE takes any text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spicegraph_compat.caption_metric import paired_items
from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_parser.spice.parse import word_set
from spicegraph_scorer.core.tokens import Corpus, TokenizedItem
from spicegraph_scorer.metrics import make_metrics
from spicegraph_scorer.metrics.cider import ORDERS, SCALE, SIGMA, Cider, cider_statistics, mean_of
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.scoring import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import Item
    from spicegraph_scorer.core.metric import Score


Scores = tuple[dict[str, np.float64], dict[str, "NDArray[np.float64]"]]
"""The corpus scores by name, and the scores of every item by name."""

_JAVA_OPTIONS = word_set(
    "cache_path java_path java_max_memory n_threads separate_cache_dir timeout tmp_path use_shell verbose"
)
"""What aac-metrics' functions take for the programs that they start."""
_DEVICE_OPTIONS = frozenset({"batch_size", "device", "reset_state"})  # What they take for networks.


def spice(
    candidates: Sequence[str],
    mult_references: Sequence[Sequence[str]],
    return_all_scores: bool = True,  # noqa: FBT001, FBT002 (aac-metrics' signature)
    *,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    **java: object,
) -> Any:  # Scores, or a number with return_all_scores=False, as in aac-metrics
    """Return SPICE under the name ``spice``; without ``return_all_scores`` the corpus score alone.

    >>> corpus, items = spice(["a dog barks"], [["a dog is barking"]])
    >>> corpus["spice"].item(), items["spice"].tolist()
    (1.0, [1.0])
    """
    _check_options(java)
    score = _spice(paired_items(candidates, mult_references), pipeline)
    return _given(_scores("spice", score.value, score.each), "spice", every=return_all_scores)


def cider_d(
    candidates: Sequence[str],
    mult_references: Sequence[Sequence[str]],
    return_all_scores: bool = True,  # noqa: FBT001, FBT002 (aac-metrics' signature)
    *,
    n: int = ORDERS,
    sigma: float = SIGMA,
    tokenizer: Callable[[str], list[str]] = str.split,
    return_tfidf: bool = False,
    scale: float = SCALE,
    **java: object,
) -> Any:  # Scores, or a number with return_all_scores=False, as in aac-metrics
    """Return CIDEr-D as ``cider_d``, with the document frequencies of these references, of at least two items."""
    _check_options(java)
    if (n, sigma, scale) != (ORDERS, SIGMA, SCALE):
        raise InputError(f"CIDEr-D takes n=4, sigma=6, scale=10, got n={n}, sigma={sigma:g}, scale={scale:g}")
    if return_tfidf:
        raise InputError("CIDEr-D does not return tf-idf weights: return_tfidf must be False")
    score = _cider(paired_items(candidates, mult_references), tokenizer)
    return _given(_scores("cider_d", score.value, score.each), "cider_d", every=return_all_scores)


def spider(
    candidates: Sequence[str],
    mult_references: Sequence[Sequence[str]],
    return_all_scores: bool = True,  # noqa: FBT001, FBT002 (aac-metrics' signature)
    *,
    tokenizer: Callable[[str], list[str]] = str.split,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    **java: object,
) -> Any:  # Scores, or a number with return_all_scores=False, as in aac-metrics
    """Return SPIDEr, the mean of CIDEr-D and SPICE, under the names ``spider``, ``cider_d`` and ``spice``."""
    _check_options(java)
    scores = _spider(paired_items(candidates, mult_references), tokenizer, pipeline)
    return _given(scores, "spider", every=return_all_scores)


def spider_fl(
    candidates: Sequence[str],
    mult_references: Sequence[Sequence[str]],
    return_all_scores: bool = True,  # noqa: FBT001, FBT002 (aac-metrics' signature)
    *,
    tokenizer: Callable[[str], list[str]] = str.split,
    error_threshold: float = 0.9,
    penalty: float = 0.9,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    **java: object,
) -> Any:  # Scores, or a number with return_all_scores=False, as in aac-metrics
    """Return SPIDEr-FL: the scores of :func:`spider`, ``fer`` (1 for broken captions) and ``spider_fl``.

    The detector is not FENSE's BERT but the metric ``fluency``'s linear model, so ``echecker`` is refused, and figures
    are not comparable with published ones. A caption is broken above the probability ``error_threshold``, in [0, 1],
    and loses the share ``penalty`` of its SPIDEr.
    """
    _check_options(java, _DEVICE_OPTIONS)
    items = paired_items(candidates, mult_references)
    corpus, each = _spider(items, tokenizer, pipeline)
    (fluency,) = make_metrics(["fluency"], resources(pipeline)).values()
    each["fer"] = np.array([float(f.wrong > error_threshold) for f in fluency.collect(Corpus(tuple(items)))])
    each["spider_fl"] = each["spider"] * (1 - penalty * each["fer"])
    corpus |= {name: np.float64(each[name].mean()) for name in ("fer", "spider_fl")}
    return _given((corpus, each), "spider_fl", every=return_all_scores)


def spider_max(
    mult_candidates: Sequence[Sequence[str]],
    mult_references: Sequence[Sequence[str]],
    return_all_scores: bool = True,  # noqa: FBT001, FBT002 (aac-metrics' signature)
    *,
    tokenizer: Callable[[str], list[str]] = str.split,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    **java: object,
) -> Any:  # Scores, or a number with return_all_scores=False, as in aac-metrics
    """Return SPIDEr of each item's best candidate by SPIDEr: ``spider_max``, ``cider_d_max``, ``spice_max``."""
    _check_options(java)
    counts = {len(candidates) for candidates in mult_candidates}
    if len(counts) != 1 or counts == {0}:
        raise InputError("every item must have the same number of candidates, at least one")
    source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    rounds = [
        _spider(paired_items(candidates, mult_references), tokenizer, source)[1]
        for candidates in zip(*mult_candidates, strict=True)
    ]
    best = np.argmax([each["spider"] for each in rounds], axis=0)
    items = np.arange(len(best))
    chosen = {f"{name}_max": np.array([each[name] for each in rounds])[best, items] for name in rounds[0]}
    corpus = {name: np.float64(values.mean()) for name, values in chosen.items()}
    return _given((corpus, chosen), "spider_max", every=return_all_scores)


def _check_options(given: Mapping[str, object], others: frozenset[str] = frozenset()) -> None:
    unknown = sorted(given.keys() - _JAVA_OPTIONS - others)
    if unknown:
        raise InputError(f"unknown option {', '.join(unknown)}")


def _spice(items: Sequence[Item], pipeline: str | FactSource) -> Score:
    metric = Spice(load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline)
    return metric.total(metric.collect(Corpus(tuple(items))))[0]


def _cider(items: Sequence[Item], tokenizer: Callable[[str], list[str]]) -> Score:
    if len(items) < 2:
        raise InputError("CIDEr-D needs at least two items, whose references give the document frequencies")
    tokenized = [
        TokenizedItem(tuple(tokenizer(item.candidate)), tuple(tuple(tokenizer(text)) for text in item.references))
        for item in items
    ]
    return Cider().total(cider_statistics(tokenized))[0]


def _spider(items: Sequence[Item], tokenizer: Callable[[str], list[str]], pipeline: str | FactSource) -> Scores:
    cider, spice_score = _cider(items, tokenizer), _spice(items, pipeline)
    corpus, each = _scores("cider_d", cider.value, cider.each)
    for name, value, values in (
        ("spice", spice_score.value, spice_score.each),
        ("spider", mean_of(cider.value, spice_score.value), list(map(mean_of, cider.each, spice_score.each))),
    ):
        scores = _scores(name, value, values)
        corpus |= scores[0]
        each |= scores[1]
    return corpus, each


def _scores(name: str, value: float | None, each: Sequence[float | None]) -> Scores:
    """Return a score under its name; none of them is undefined with two items or more."""
    return {name: np.float64(value)}, {name: np.array(each, dtype=np.float64)}


def _given(scores: Scores, name: str, *, every: bool) -> Scores | np.float64:
    return scores if every else scores[0][name]
