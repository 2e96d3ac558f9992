"""Items in, scores out: one system, two that are compared, or the best of several candidates of an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Unpack

from spicegraph_parser.errors import InputError, counted, expect
from spicegraph_parser.languages import find_language
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, check_language, load_pipeline
from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer.core.data import DataFields, MetricData, Resources, merged_data
from spicegraph_scorer.core.empty_graphs import EmptyGraphs
from spicegraph_scorer.core.facts import FactCache, FactSource, Progress
from spicegraph_scorer.core.items import CheckedItems, Fingerprint, Item, ItemId, empty_candidates, in_order_of
from spicegraph_scorer.core.length import LengthControl, are_descriptions, controls_of
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.results import Json, Result, collect, result_of, signature_of
from spicegraph_scorer.core.significance import Comparison, Resampling, compare, corrected
from spicegraph_scorer.core.tokens import Corpus, tokenize_texts
from spicegraph_scorer.metrics import METRICS, Factory, make_metrics, metric_names, needs_of
from spicegraph_scorer.readers.checks import Candidates, Captions, Empty, GivenItem, check_items, paired_items, shown
from spicegraph_scorer.readers.spacy_docs import Documents

if TYPE_CHECKING:
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.metric import Metric
    from spicegraph_scorer.readers.marks import ControlTokens


def score(
    items: Iterable[GivenItem],
    metrics: str | Sequence[str] = ("spice",),
    *,
    data: MetricData | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
    confidence: Resampling | None = None,
    explain: bool = False,
    credit: bool = False,
    more: Mapping[str, Factory] | None = None,
    evidence: bool = True,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    **fields: Unpack[DataFields],
) -> Result:
    """Score candidates against their references.

    Args:
        items: at least one; ids differ. A ``GivenItem`` is an ``Item``, a mapping with the names of a file's fields
            (``image_id``, ``candidate``, ``references`` ...), a tuple (id, candidate, references), or a row of a table;
            two lists or mappings go to ``score_captions``. Documents that spaCy has parsed may stand for captions:
            their parses count, and the signature names their pipeline.
        metrics: names of metrics (``spice``, ``spice-g``, ``bleu``, ``meteor``, ``rouge``, ``cider`` ...), or of a
            group: ``coco`` is what the COCO toolkit prints. A string holds several, with commas between them.
        data: document frequencies, categories, vectors and the text for SPICE that metrics use instead of their own.
        pipeline: what parses captions: the bundled ``en_caption``, a spaCy pipeline by name or folder, or whatever else
            gives facts. It is loaded only when a metric needs it, and every caption is parsed once, however many
            metrics do.
        progress: is called while something takes long: with what it is, how much is done, and of how much.
        confidence: how to resample for 95 % intervals of every corpus score; ``None``: no intervals.
        explain: explain every item's SPICE-G: ``run.explanations`` of each of ``result.runs``; about 10 ms
            per item.
        credit: divide every item's score among the words of its candidate, of metrics that do so: ``run.credits``
            of each of ``result.runs``.
        more: what makes further metrics, by their names here, such as a reward of ``spicegraph_graded``.
        evidence: keep what each item's score comes from: the tuples and their matches. Reports, explanations and
            SPICE's own output need it; without, SPICE and SPICE-G take less time and memory.
        empty: ``refuse`` an empty candidate as a fault, or let it score ``zero``, as the original programs do;
            ``result.empty_candidates`` says how many there were.
        control_tokens: ``refuse`` captions that hold what models leave behind, such as ``<eos>``, ``▁`` or ``**``, as a
            fault, ``strip`` it off, or ``keep`` it to be scored as words; the signature says what was there.
        fields: the fields of ``MetricData`` as keywords, in place of ``data``: ``frequencies``, ``categories``,
            ``vectors``, ``meaning``, ``spice_text``, ``instances``, ``language``, ``reference_language``,
            ``cider_scale``. ``score(items, categories=mine)`` is ``score(items, data=MetricData(categories=mine))``.

    Returns:
        The scores: ``result["SPICE"]`` of the corpus, ``for item in result`` of each item, ``result.to_frame()`` as a
        table of pandas, ``result.to_dict()`` as JSON, ``result.signature`` for comparing.

    Raises:
        InputError: an item is faulty (the message lists every fault), a metric is unknown, or a field is given twice.
        DataError: a pipeline or the data of a metric is not installed.

    Example:
        >>> from spicegraph_scorer import Item
        >>> result = score([Item(1, "a brown dog", ("the brown dog",))])
        >>> result.corpus["SPICE"]
        1.0
    """
    more = {} if more is None else more
    expect(confidence, (Resampling, type(None)), "confidence", "Resampling(draws, seed)")
    if empty not in ("refuse", "zero"):
        raise InputError(f"empty: expected 'refuse' or 'zero', got {shown(empty)}")
    if control_tokens not in ("refuse", "strip", "keep"):
        raise InputError(f"control_tokens: expected 'refuse', 'strip' or 'keep', got {shown(control_tokens)}")
    expect(more, Mapping, "more", "an object {name: what makes the metric}")
    for name, make in more.items():
        expect(make, Callable, f"more[{name!a}]", "a function of Resources")  # type: ignore[arg-type]
    documents = Documents()
    checked = check_items(documents.texts(items), empty=empty, control_tokens=control_tokens)
    with rare_collections():
        made = resources(
            documents.source(pipeline, checked),
            progress,
            merged_data(data, fields),
            metrics=None if more else metrics,
            evidence=evidence or explain or credit,
        )
        chosen = {**make_metrics(metrics, made), **{name: make(made) for name, make in more.items()}}
        statistics = collect(checked, chosen)
        return result_of(
            checked, chosen, statistics, confidence=confidence, explain=explain, credit=credit, progress=progress
        )


def score_captions(
    candidates: Candidates,
    references: Mapping[Any, Captions] | Iterable[Captions],
    metrics: str | Sequence[str] = ("spice",),
    *,
    data: MetricData | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    progress: Progress | None = None,
    confidence: Resampling | None = None,
    explain: bool = False,
    credit: bool = False,
    more: Mapping[str, Factory] | None = None,
    evidence: bool = True,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
    **fields: Unpack[DataFields],
) -> Result:
    """Score candidates and references in two collections, as most programs have them.

    Args:
        candidates: a list of captions, or of documents that spaCy has parsed; a mapping from id to caption; or a single
            caption.
        references: for each candidate, in the same order or under the same id, a list of captions or a single one.
        metrics: as for ``score``, as are the other arguments, what is returned, and what is raised.
        data: as for ``score``.
        pipeline: as for ``score``.
        progress: as for ``score``.
        confidence: as for ``score``.
        explain: as for ``score``.
        credit: as for ``score``.
        more: as for ``score``.
        evidence: as for ``score``.
        empty: as for ``score``.
        control_tokens: as for ``score``.
        fields: as for ``score``.

    Example:
        >>> result = score_captions(["a dog"], [["a dog runs", "the dog"]])
        >>> print(result)
        Result of 1 item
          SPICE     0.6667
        >>> result["SPICE_Object"], next(iter(result)).categories["SPICE"]["Object"].counts
        (1.0, Counts(matched=1, candidate=1, reference=1))
    """
    documents = Documents()
    items = paired_items(
        documents.texts(candidates), documents.texts(references), empty=empty, control_tokens=control_tokens
    )
    return score(
        items,
        metrics,
        data=data,
        pipeline=documents.source(pipeline, items),
        progress=progress,
        confidence=confidence,
        explain=explain,
        credit=credit,
        more=more,
        evidence=evidence,
        empty=empty,
        control_tokens=control_tokens,
        **fields,
    )


def credit(
    items: Iterable[GivenItem],
    metric: str = "spice-g",
    *,
    data: MetricData | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    **fields: Unpack[DataFields],
) -> list[Credit]:
    """Divide each item's score among the words of its candidate; the words' credits add up to the score.

    The metric is ``spice``, ``spice-exact``, ``spice-g``, a CIDEr, or ``spider``. An empty candidate has no words, and
    scores 0. The other arguments, and what is raised, are those of :func:`score`.

    >>> from spicegraph_scorer import Item
    >>> divided = credit([Item(1, "a brown dog", ("a dog", "a black dog"))], "spice")[0]
    >>> [word.text for word in divided.words if word.credit < 0]
    ['brown']
    """
    metric = metric_names([metric])[0]
    if not METRICS[metric].kind.credits:
        able = ", ".join(name for name, entry in METRICS.items() if entry.kind.credits)
        raise InputError(f"{metric} does not divide its score among words; {able} do")
    result = score(items, [metric], data=data, pipeline=pipeline, credit=True, empty="zero", **fields)
    return list(result.runs[0].credits)


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """The comparisons of each metric's scores, with the signature that both systems share."""

    signature: Mapping[str, Any]
    metrics: Mapping[str, tuple[Comparison, ...]]
    length: Mapping[str, LengthControl] = field(default_factory=dict)  # second minus first; empty for short captions
    empty_graphs: tuple[EmptyGraphs, ...] = ()  # of both systems

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: ``signature``, and ``scores``: by name, the fields of a :class:`Comparison`.

        Where there are any, ``length``, and ``empty_graphs`` of both systems.
        """
        rows = [asdict(comparison) for comparisons in self.metrics.values() for comparison in comparisons]
        length = {"length": {name: asdict(control) for name, control in self.length.items()}} if self.length else {}
        empty = {"empty_graphs": [each.to_dict() for each in self.empty_graphs]} if any(self.empty_graphs) else {}
        return {"signature": self.signature, "scores": {row.pop("name"): row for row in rows}, **length, **empty}


def compare_systems(
    first: Iterable[GivenItem],
    second: Iterable[GivenItem],
    metrics: str | Sequence[str] = ("spice",),
    *,
    data: MetricData | None = None,
    pipeline: str | FactSource = DEFAULT_PIPELINE,
    resampling: Resampling | None = None,
    progress: Progress | None = None,
    **fields: Unpack[DataFields],
) -> SystemComparison:
    """Score two systems and test every difference, item by item, in both of the usual ways.

    The second system's items have the same ids and references, in any order; ``resampling`` is the number of draws and
    the seed. The other arguments, and what is raised, are those of :func:`score`.
    """
    resampling = resampling or Resampling()
    documents = Documents()
    items = check_items(documents.texts(first))
    other_items = in_order_of(items, check_items(documents.texts(second)))
    source = documents.source(pipeline, [*items, *other_items])
    chosen = make_metrics(metrics, resources(source, progress, merged_data(data, fields), evidence=False))
    statistics, other_statistics = collect(items, chosen), collect(other_items, chosen)
    compared = {
        name: compare(metric, statistics[name], other_statistics[name], resampling=resampling)
        for name, metric in chosen.items()
    }
    tests = iter(corrected(chain.from_iterable(compared.values())))
    comparisons = {name: tuple(islice(tests, len(rows))) for name, rows in compared.items()}
    marks = items.marks + other_items.marks
    both = replace(Fingerprint.of(items), empty=empty_candidates([*items, *other_items]), marks=marks)
    signature = signature_of(both, {name: metric.signature() for name, metric in chosen.items()})
    words = [(len(b.candidate.split()), len(a.candidate.split())) for a, b in zip(items, other_items, strict=True)]
    length: dict[str, LengthControl] = {}
    if are_descriptions(words):
        for name, metric in chosen.items():
            length |= controls_of(words, metric.total(other_statistics[name]), metric.total(statistics[name]))
    empty = tuple(
        EmptyGraphs.first(
            of_system, ((map(metric.empty_graphs, found[name]), metric.signature()) for name, metric in chosen.items())
        )
        for of_system, found in ((items, statistics), (other_items, other_statistics))
    )
    drawn: dict[str, Json] = {**resampling.signature(), "correction": "holm"}
    return SystemComparison({**signature, "resampling": drawn}, comparisons, length, empty)


@dataclass(frozen=True, slots=True)
class BestCandidates:
    """One candidate of every image, under the image's own id, with its value of the score ``by``."""

    items: tuple[Item, ...]
    by: str
    values: tuple[float, ...]


def _frequencies_of_images(items: Sequence[Item], images: Sequence[ItemId]) -> DocumentFrequencies | None:
    """Return document frequencies in which each image counts once; of a single image there are none."""
    references = dict(zip(images, (item.references for item in items), strict=True))
    if len(references) < 2:
        return None
    return DocumentFrequencies.from_references(list(map(tokenize_texts, references.values())))


def choose_best(
    items: Sequence[Item],
    images: Sequence[ItemId],
    source: FactSource,
    *,
    data: MetricData | None = None,
    **fields: Unpack[DataFields],
) -> BestCandidates:
    """Keep the candidate of every image with the highest SPIDEr, the first of equals (SPIDEr-max).

    ``images`` has the id of each item's image, ``source`` turns captions into facts. By default each image counts once
    in the document frequencies. With a single image and no document frequencies, CIDEr-D is undefined and SPICE alone
    decides. SPIDEr-max: Labbé, Pellegrini and Pinquier, DCASE 2022.
    """
    # Imported here, as all metrics are: where they are asked for.
    from spicegraph_scorer.metrics.cider import Cider, Spider  # noqa: PLC0415
    from spicegraph_scorer.metrics.spice.metric import Spice  # noqa: PLC0415

    items = check_items(items, empty="zero")
    corpus = Corpus(items)
    if len(images) != len(corpus.items):
        raise InputError(f"{counted(len(corpus.items), 'item')} and {counted(len(images), 'image')} don't pair up")
    given = merged_data(data, fields)
    spice = Spice(source, evidence=False, text=given.spice_text or "written")
    frequencies = _frequencies_of_images(items, images) if given.frequencies is None else given.frequencies
    metric: Metric[Any] = spice if frequencies is None else Spider(spice, Cider(frequencies=frequencies))
    score = metric.total(metric.collect(corpus))[0]
    values = [0.0 if value is None else value for value in score.each]
    best: dict[ItemId, int] = {}
    for index, image in enumerate(images):
        if image not in best or values[index] > values[best[image]]:
            best[image] = index
    chosen = CheckedItems.with_marks([replace(items[i], id=image) for image, i in best.items()], items.marks)
    return BestCandidates(chosen, score.name, tuple(values[index] for index in best.values()))


def resources(
    pipeline: str | FactSource,
    progress: Progress | None = None,
    data: MetricData | None = None,
    *,
    metrics: str | Sequence[str] | None = None,
    evidence: bool = True,
) -> Resources:
    """Return the resources for metrics; the pipeline is loaded lazily, on first use."""
    # Of the metrics that will be made and collect once it is known whether facts are kept; None: they are.

    @cache
    def facts() -> FactSource:
        if isinstance(pipeline, FactCache):
            return pipeline
        if not isinstance(pipeline, str) and not (hasattr(pipeline, "signature") and hasattr(pipeline, "facts")):
            raise InputError(f"pipeline: is {shown(pipeline)}, expected a name or a source of facts")
        needs = None if metrics is None else needs_of(metrics)
        loose = needs is None or any(needed.loose for needed in needs)
        loaded = replace(load_pipeline(pipeline), loose=loose) if isinstance(pipeline, str) else pipeline
        return FactCache(loaded, progress, keep=needs is None or sum(needed.facts for needed in needs) > 1)

    data = data or MetricData()
    if metrics is None or _depend_on_language(metrics):
        data = _with_language(data, pipeline, facts)
    return Resources(facts, progress, data, evidence)


def _depend_on_language(metrics: str | Sequence[str]) -> bool:
    """Return whether a metric parses captions or is made for English; others need no pipeline."""
    return any(kind.english or kind.needs.facts for kind in (METRICS[name].kind for name in metric_names(metrics)))


def _with_language(data: MetricData, pipeline: str | FactSource, facts: Callable[[], FactSource]) -> MetricData:
    """Return data for metrics with the language that the pipeline or the documents are in, where it is not English.

    Raises:
        InputError: the data say another language.
    """
    if pipeline == DEFAULT_PIPELINE:
        return data
    source = facts() if isinstance(pipeline, str) else pipeline
    spoken: str | None = getattr(source, "language", None)
    if spoken in (None, "en"):
        return data  # metrics that parse nothing score any language beside it; SPICE refuses others
    if data.language is None:
        return replace(data, language=spoken)
    check_language(find_language(data.language), spoken, source.signature)
    return data
