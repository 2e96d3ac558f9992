"""The caption pipeline's network, as it runs (``training/network.py`` trains it): tags, heads and labels of sentences.

Heads come from biaffine scores (Dozat and Manning 2017), labels from both ends of an edge, over the states of
``encoder.py``; where that leaves doubt, whole analyses are compared (``reranker.py``).
"""

from __future__ import annotations

import json
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has no stubs

from spicegraph_parser.caption_pipeline.encoder import Encoder, Vocabulary, float_product, relu, stored_weights
from spicegraph_parser.caption_pipeline.layout import Floats, Integers, Layout, LayoutPart, ranges
from spicegraph_parser.caption_pipeline.reranker import Analyses, Reranker
from spicegraph_parser.caption_pipeline.trees import best_choices, best_heads, is_projective_tree, log_probabilities
from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from spicegraph_parser.caption_pipeline.encoder import FirstStates, MakeProduct, SecondStates, Weights, WordNumbers

_ENDS = ("arc_child", "arc_head", "label_child", "label_head")


class Network:
    """Tags, heads and labels for sentences given as words; ``product`` makes the large products."""

    def __init__(self, weights: Weights, vocabulary: Vocabulary, product: MakeProduct = float_product) -> None:
        self.vocabulary = vocabulary
        self._weights = weights
        self._encoder = Encoder(weights, vocabulary, product)
        self.words = self._encoder.words
        self._ends = product(np.concatenate([weights[name] for name in _ENDS], axis=1))
        self._ends_bias = np.concatenate([weights[f"{name}.bias"] for name in _ENDS])
        self._end_bounds = np.cumsum([weights[name].shape[1] for name in _ENDS])[:-1]
        self._root_label = vocabulary.labels.index("root")
        self._reranker = Reranker(weights, vocabulary) if "reranker.table" in weights else None

    def analyse(self, words: WordNumbers, lengths: Integers) -> Integers:
        """Return tags, heads and labels (3, words) of sentences of ``lengths``, of which the longest stands first."""
        read = self._read(words, lengths)
        in_order, is_word = read.scored.layout.words_of(np.arange(len(lengths)))
        chosen = np.stack([read.tags[in_order], read.heads[is_word], read.labels.argmax(axis=1)])
        if self._reranker is None:
            return chosen
        analyses = further_analyses(self, read, words.forms, self._reranker.likely)
        if analyses is not None:
            best = self._reranker.best(analyses)
            starts = (np.cumsum(analyses.lengths) - analyses.lengths)[best]
            there = ranges(starts, analyses.lengths[best])
            sentence = analyses.sentence[best]
            here = ranges((np.cumsum(lengths) - lengths)[sentence], lengths[sentence])
            chosen[:, here] = analyses.tags[there], analyses.heads[there], analyses.labels[there]
        return chosen

    def doubts(self, words: WordNumbers, lengths: Integers, likely: float) -> Analyses | None:
        """Return the analyses of the sentences in doubt; tags and heads are tried from a probability ``likely`` on."""
        return further_analyses(self, self._read(words, lengths), words.forms, likely)

    def _read(self, words: WordNumbers, lengths: Integers) -> Reading:
        layout = Layout.of(lengths)
        first = self._encoder.first(words, layout)
        second = self._encoder.second(first, layout)
        scored = self._scored(second.states, second.tags, layout)
        heads = best_heads(scored.arcs)
        labels = self.label_scores(scored, np.arange(len(lengths)), heads)
        return Reading(first, second, scored, scored.tags.argmax(axis=1), heads, labels)

    def again(self, read: Reading, part: LayoutPart, tags: Integers) -> NetworkScores:
        """Return the scores of tags and heads in a part's sentences, where its words have the given tags."""
        return self._scored(*self._encoder.again(read.first, read.second, part, tags), part.layout)

    def _scored(self, states: Floats, tags: Floats, layout: Layout) -> NetworkScores:
        ends = self._ends(states)
        ends += self._ends_bias
        relu(ends[:, : self._end_bounds[1]])
        arc_child, arc_head, label_child, label_head = np.split(ends, self._end_bounds, axis=1)
        return NetworkScores(layout, tags, self._arc_scores(arc_child, arc_head, layout), label_child, label_head)

    def _arc_scores(self, children: Floats, parents: Floats, layout: Layout) -> Floats:
        """Return scores of heads (sentences, n, 1 + n) from vectors (words, width) of words at either end."""
        # The padding of a shorter sentence is never a word's head, and each piece of it hangs on what stands before it:
        # that changes neither which trees there are nor which of them is the best.
        bilinear = children @ self._weights["arc_scores"]
        bilinear += self._weights["arc_scores.bias"]
        sentences, longest = layout.padded.shape
        heads = np.empty((sentences, 1 + longest, parents.shape[1]), dtype=np.float32)
        heads[:, 0] = self._weights["root_arc"]
        heads[:, 1:] = parents[layout.padded]
        scores: Floats = np.matmul(bilinear[layout.padded], heads.transpose(0, 2, 1), dtype=np.float32)
        sentence, step = layout.padding
        scores[sentence, :, step + 1] = -np.inf
        scores[sentence, step] = -np.inf
        scores[sentence, step, step] = 0.0
        return scores

    def label_scores(
        self, scored: NetworkScores, rows: Integers, heads: Integers, known: tuple[Floats, Integers] | None = None
    ) -> Floats:
        """Return scores (words, labels) of edges to the words of sentences ``rows`` from given heads (analyses, n)."""
        # ``known``: scores of other heads (analyses, n), which are kept for the edges that are the same.
        words, is_word = scored.layout.words_of(rows)
        above = np.where(heads > 0, heads - 1, 0)
        parents = np.take_along_axis(scored.layout.padded[rows], above, axis=1)[is_word]
        is_root = heads[is_word] == 0
        if known is not None:
            changed = np.flatnonzero((heads != known[1])[is_word])
            words, parents, is_root = words[changed], parents[changed], is_root[changed]
        parent = scored.parents[parents]
        parent[is_root] = self._weights["root_label"]
        child = scored.children[words]
        edges = np.empty((len(words), 2 * parent.shape[1]), dtype=np.float32)
        np.multiply(child, parent, out=edges[:, parent.shape[1] :])
        relu(np.add(child, parent, out=edges[:, : parent.shape[1]]))
        scores = edges @ self._weights["labeller"]
        scores += self._weights["labeller.bias"]
        scores[:, self._root_label] = -np.inf  # only a root's edge can be labelled so, and not otherwise
        scores[is_root] = -np.inf
        scores[is_root, self._root_label] = 0.0
        if known is not None:
            known[0][changed] = scores
            return known[0]
        return scores


class Reading(NamedTuple):
    """The network's own analysis: its layers' scores, and the resulting tags, heads and label scores."""

    first: FirstStates
    second: SecondStates
    scored: NetworkScores
    tags: Integers  # (words,) step after step
    heads: Integers  # (sentences, n)
    labels: Floats  # (words, labels) scores, sentence after sentence


class NetworkScores(NamedTuple):
    """The network's scores for a batch of sentences; words step after step."""

    layout: Layout
    tags: Floats  # (words, tags) scores
    arcs: Floats  # (sentences, n, 1 + n) scores of heads; head 0 is the root
    children: Floats  # (words, width) words as the lower ends of labelled edges
    parents: Floats  # (words, width) words as the upper ends


# Further analyses of the sentences in doubt: each tag and each head that is not the best, but likely, makes one. With a
# tag given, the second layer reads the sentence again; with a head given, the best tree that has it is searched.
_MOST_TAGS, _MOST_HEADS = 4, 5  # that are tried in one sentence, the likeliest
# Where more heads are likely than a sentence has words, and more than these, it is a list of words: there is nothing to
# choose from, and its many long analyses would take most of the time.
_LISTED_HEADS: Final = 36


def further_analyses(network: Network, read: Reading, forms: Integers, likely: float) -> Analyses | None:
    """Return the analyses of sentences in doubt, the network's own ones among them; ``None`` where there are none."""
    scored, tags, heads, labels = read.scored, read.tags, read.heads, read.labels
    layout = scored.layout
    log_tags = log_probabilities(scored.tags)
    log_heads = log_probabilities(scored.arcs)
    likely_tags, likely_heads = log_tags >= np.log(likely), log_heads >= np.log(likely)
    likely_tags[np.arange(len(tags)), tags] = False
    np.put_along_axis(likely_heads, heads[:, :, None], values=False, axis=2)
    is_list = np.count_nonzero(likely_heads, axis=(1, 2)) > np.maximum(layout.lengths, _LISTED_HEADS)
    likely_tags[is_list[layout.sentence]] = False
    likely_heads[is_list] = False
    by_tag = _doubtful_tags(likely_tags, log_tags, layout)
    by_head = _doubtful_heads(likely_heads, log_heads)
    in_doubt = np.union1d(by_tag[0], by_head[0])
    if not in_doubt.size:
        return None
    starts = np.cumsum(layout.lengths) - layout.lengths
    words_in_doubt = ranges(starts[in_doubt], layout.lengths[in_doubt])
    # The network's own analyses come first, so that of equals they stay.
    parts = [
        _columns(scored, (in_doubt, in_doubt), (tags, heads[in_doubt], labels[words_in_doubt]), (log_tags, log_heads))
    ]
    parts[0][-1][:, 3] = 1.0
    if by_head[0].size:
        rows, trees = _trees(log_heads, by_head)
        of_own = labels[ranges(starts[rows], layout.lengths[rows])], heads[rows]
        analysed = tags, trees, network.label_scores(scored, rows, trees, of_own)
        parts.append(_columns(scored, (rows, rows), analysed, (log_tags, log_heads)))
    if by_tag[0].size:
        sentence, word, tag = by_tag
        part = layout.part(sentence, word)
        again = network.again(read, part, tag)
        again.tags[part.words] = -np.inf
        again.tags[part.words, tag] = 0.0
        log = log_tags[part.source], log_probabilities(again.arcs)
        rows, trees = np.arange(len(sentence)), best_heads(again.arcs)
        analysed = again.tags.argmax(axis=1), trees, network.label_scores(again, rows, trees)
        parts.append(_columns(again, (sentence, rows), analysed, log))
    sentences, tags, above, named, scores = map(np.concatenate, zip(*parts, strict=True))
    return _by_sentence(Analyses(sentences, layout.lengths[sentences], forms, tags, above, named, scores), starts)


def _by_sentence(analyses: Analyses, starts: Integers) -> Analyses:
    """Put the analyses of one sentence together, the network's own first; ``starts``: of each sentence's forms."""
    order = np.argsort(analyses.sentence, kind="stable")
    words = ranges((np.cumsum(analyses.lengths) - analyses.lengths)[order], analyses.lengths[order])
    sentence, lengths = analyses.sentence[order], analyses.lengths[order]
    own_forms = analyses.forms[ranges(starts[sentence], lengths)]
    tags, heads, labels = (column[words] for column in (analyses.tags, analyses.heads, analyses.labels))
    return Analyses(sentence, lengths, own_forms, tags, heads, labels, analyses.scores[order])


def _doubtful_tags(
    is_likely: NDArray[np.bool_], log_tags: Floats, layout: Layout
) -> tuple[Integers, Integers, Integers]:
    """Return sentences, words in them, and the likeliest of their tags that are likely but not the best."""
    word, tag = np.nonzero(is_likely)
    kept = _likeliest(layout.sentence[word], log_tags[word, tag], _MOST_TAGS)
    return layout.sentence[word[kept]], layout.step[word[kept]], tag[kept]


def _doubtful_heads(is_likely: NDArray[np.bool_], log_heads: Floats) -> tuple[Integers, Integers, Integers]:
    """Return sentences, words in them, and the likeliest of their heads that are likely but not in the best tree."""
    sentence, word, head = np.nonzero(is_likely)
    kept = _likeliest(sentence, log_heads[sentence, word, head], _MOST_HEADS)
    return sentence[kept], word[kept], head[kept]


def _trees(log_heads: Floats, given: tuple[Integers, Integers, Integers]) -> tuple[Integers, Integers]:
    """Return sentences and their best trees (trees, n) with a head given, each tree once; at least one sentence's."""
    sentence, word, head = given
    numbers = np.arange(len(sentence))
    scores = log_heads[sentence]
    scores[numbers, word] = -np.inf
    scores[numbers, word, head] = 0.0
    candidates = np.column_stack([sentence, best_heads(scores)])
    kept = is_projective_tree(candidates[:, 1:]) & (candidates[numbers, 1 + word] == head)
    distinct = np.unique(candidates[kept], axis=0)
    return distinct[:, 0], distinct[:, 1:]


def _likeliest(sentence: Integers, values: Floats, most: int) -> Integers:
    """Return the places of the greatest values of each sentence, sentence after sentence."""
    order = np.lexsort((-values, sentence))
    ordered = sentence[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    kept: Integers = order[rank < most]
    return kept


def _columns(
    scored: NetworkScores,
    where: tuple[Integers, Integers],
    analysed: tuple[Integers, Integers, Floats],
    log: tuple[Floats, Floats],
) -> tuple[Integers, Integers, Integers, Integers, Floats]:
    """Return the sentences, tags, heads, labels and scores of analyses, as :class:`Analyses` has them."""
    # ``where``, (analyses,) each: the sentence's number, and its row in ``scored``.
    # ``analysed``: tags of the words of ``scored``, heads (analyses, n), scores of labels (words, labels).
    # ``log``: log probabilities of tags (words, tags), and of heads (sentences, n, 1 + n).
    sentence, rows = where
    words, is_word = scored.layout.words_of(rows)
    tags, heads = analysed[0][words], analysed[1][is_word]
    log_labels = log_probabilities(analysed[2])
    labels, of_labels = best_choices(log_labels)
    of_tags = log[0][words, tags]
    of_heads = np.take_along_axis(log[1][rows], analysed[1][:, :, None], axis=2)[:, :, 0][is_word]
    lengths = is_word.sum(axis=1)
    starts = np.cumsum(lengths) - lengths
    scores = np.zeros((len(rows), 4), dtype=np.float32)
    for column, values in enumerate((of_tags, of_heads, of_labels)):
        scores[:, column] = np.add.reduceat(values, starts)
    return sentence, tags, heads, labels, scores


# Words of a sentence and of the parts in which what is longer is parsed: the words of a sentence are read one after the
# other, those of parts together; its scores are n * n, and a search of the best tree takes n * n * n steps.
_LONGEST, _PART = 128, 64
_LISTED: Final = 32  # the same of lists, in which a third of the words are these: their words lean on their neighbours
_COMMAS, _CONJUNCTIONS = frozenset({",", ";", ":"}), frozenset({"and", "or"})
_SENTENCES_AT_ONCE: Final = 256  # more share what each step costs; their numbers no longer fit a core's own cache
_LONG_AT_ONCE: Final = 8  # of the same length, however long
_SCORES_AT_ONCE: Final = 1 << 16  # of heads, n * n a sentence: a long sentence's do not pad many short ones


def cut_sentences(words: Sequence[str], lengths: Sequence[int]) -> Sequence[int]:
    """Return the lengths of sentences of ``words`` after cutting those that are too long for the network."""
    if not lengths or max(lengths) <= _LISTED:
        return lengths
    cut, end = list[int](), 0
    for length in lengths:
        start, end = end, end + length
        joining = sum(word in _COMMAS or word in _CONJUNCTIONS for word in words[start:end])
        longest, most = (_LISTED, _LISTED) if 3 * joining >= length else (_LONGEST, _PART)
        while length > longest and end - start > most:
            cut.append(_part(words[start : start + most + 1]))
            start += cut[-1]
        cut.append(end - start)
    return cut


def _part(words: Sequence[str]) -> int:
    """Return how many of these words, not all, are a part of a sentence; it ends behind a comma, if there is one."""
    most = len(words) - 1
    places = (
        place for place in range(most, most // 2, -1) if words[place - 1] in _COMMAS or words[place] in _CONJUNCTIONS
    )
    return next(places, most)


def analyse_sentences(network: Network, forms: Iterable[str], lengths: Sequence[int]) -> Integers:
    """Return tags, heads and labels (3, words) of sentences, given by their words' PTB forms, and their lengths."""
    # Tags and labels are numbers in the vocabulary; heads count from 1 in their sentence, and 0 is the root. Company
    # does not change a sentence's analysis.
    # Equal sentences are analysed once: samples for one image, and machines' descriptions, have many in common.
    stream = iter(forms)
    sentences = [tuple(islice(stream, length)) for length in lengths]
    numbers = {sentence: number for number, sentence in enumerate(dict.fromkeys(sentences))}
    sizes = np.array(list(map(len, numbers)), dtype=np.intp)
    words = list(chain.from_iterable(numbers))
    analysed = np.empty((3, len(words)), dtype=np.intp)
    with single_threaded():
        for part, where in in_parts(sizes):
            analysed[:, where] = network.analyse(network.words([words[at] for at in where.tolist()]), sizes[part])
    if len(numbers) < len(sentences):
        order = np.array(list(map(numbers.__getitem__, sentences)), dtype=np.intp)
        analysed = analysed[:, ranges((np.cumsum(sizes) - sizes)[order], sizes[order])]
    return analysed


def single_threaded() -> AbstractContextManager[object]:
    """Keep numpy to one thread within this."""
    # The products are small: threads of the linear algebra library wait for each other, ten times slower on a busy
    # machine; several cores are better used by several processes.
    return _blas().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]  # it has no stubs


_blas = cache(ThreadpoolController)


def in_parts(lengths: Sequence[int] | Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield the sentences that go through a network together, longest first, and their words, counted through all."""
    sizes = np.array(lengths, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(-sizes, kind="stable")
    start = 0
    while start < len(order):
        longest = int(sizes[order[start]])
        alike = int((sizes[order[start : start + _LONG_AT_ONCE]] == longest).sum())  # nothing of them is padded
        part = order[start : start + max(alike, min(_SENTENCES_AT_ONCE, _SCORES_AT_ONCE // longest**2))]
        yield part, ranges(starts[part], sizes[part])
        start += len(part)


_WEIGHTS: Final = "network.npz"
_VOCABULARY: Final = "vocabulary.json"
NETWORK_FILES: Final = (_WEIGHTS, _VOCABULARY)


def network_from(files: Mapping[str, bytes], product: MakeProduct = float_product) -> Network:
    """Build a network from the contents of ``NETWORK_FILES``; ``product`` makes its large products."""
    try:
        lists = json.loads(files[_VOCABULARY])
        return Network(stored_weights(files[_WEIGHTS]), Vocabulary.from_lists(lists), product)
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise DataError(f"the caption pipeline's network is damaged ({error}); install the package again") from error
