"""Further analyses of the sentences that the network is in doubt about.

Each tag and each head that is not the best, but likely, makes one analysis: with a tag given, the network's second
layer reads the sentence again; with a head given, the best tree that has it is searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spicegraph_parser.caption_pipeline.layout import ranges
from spicegraph_parser.caption_pipeline.reranker import Analyses
from spicegraph_parser.caption_pipeline.trees import best_heads, is_projective_tree, log_probabilities

if TYPE_CHECKING:
    from spicegraph_parser.caption_pipeline.layout import Floats, Integers, Layout
    from spicegraph_parser.caption_pipeline.network import Network, Reading, Scored

_MOST_TAGS, _MOST_HEADS = 4, 5  # that are tried in one sentence, the likeliest


class Columns(NamedTuple):
    """Analyses of sentences, all words of one after those of another.

    Attributes:
        sentence: (analyses,) the sentence's number.
        tags: (words,) numbers.
        heads: (words,) from 1 in the sentence; 0 is the root.
        labels: (words,) numbers.
        scores: (analyses, 4) as for :class:`Analyses`.
    """

    sentence: Integers
    tags: Integers
    heads: Integers
    labels: Integers
    scores: Floats


def further_analyses(network: Network, read: Reading, forms: Integers, likely: float) -> Analyses | None:
    """Return the analyses of sentences in doubt, the network's own ones among them.

    Args:
        network: what reads.
        read: what it says by itself of sentences that stand longest first.
        forms: (words,) rows of the vocabulary's forms, sentence after sentence.
        likely: probability of a tag or head from which it is tried.

    Returns:
        None where no sentence is in doubt.
    """
    scored, tags, heads, labels = read.scored, read.tags, read.heads, read.labels
    layout = scored.layout
    log_tags = log_probabilities(scored.tags)
    log_heads = log_probabilities(scored.arcs)
    by_tag = _doubtful_tags(log_tags, tags, layout, likely)
    by_head = _doubtful_heads(log_heads, heads, likely)
    in_doubt = np.union1d(by_tag[0], by_head[0])
    if not in_doubt.size:
        return None
    own = ranges((np.cumsum(layout.lengths) - layout.lengths)[in_doubt], layout.lengths[in_doubt])
    parts = [_columns(scored, (in_doubt, in_doubt), (tags, heads[in_doubt], labels[own]), (log_tags, log_heads))]
    parts[0].scores[:, 3] = 1.0
    if by_head[0].size:
        rows, trees = _trees(log_heads, by_head)
        found = tags, trees, network.label_scores(scored, rows, trees)
        parts.append(_columns(scored, (rows, rows), found, (log_tags, log_heads)))
    if by_tag[0].size:
        sentence, word, tag = by_tag
        part = layout.part(sentence, word)
        again = network.again(read, part, tag)
        again.tags[part.words] = -np.inf
        again.tags[part.words, tag] = 0.0
        log = log_tags[part.source], log_probabilities(again.arcs)
        rows, trees = np.arange(len(sentence)), network.heads(again)
        found = again.tags.argmax(axis=1), trees, network.label_scores(again, rows, trees)
        parts.append(_columns(again, (sentence, rows), found, log))
    return _joined(parts, layout, forms)


def _doubtful_tags(
    log_tags: Floats, best: Integers, layout: Layout, least: float
) -> tuple[Integers, Integers, Integers]:
    """Return sentences, words in them, and tags that are likely but not the best."""
    likely = log_tags >= np.log(least)
    likely[np.arange(len(best)), best] = False
    word, tag = np.nonzero(likely)
    kept = _likeliest(layout.sentence[word], log_tags[word, tag], _MOST_TAGS)
    return layout.sentence[word[kept]], layout.step[word[kept]], tag[kept]


def _doubtful_heads(log_heads: Floats, best: Integers, least: float) -> tuple[Integers, Integers, Integers]:
    """Return sentences, words in them, and heads that are likely but not in the best tree."""
    likely = log_heads >= np.log(least)
    np.put_along_axis(likely, best[:, :, None], values=False, axis=2)
    sentence, word, head = np.nonzero(likely)
    kept = _likeliest(sentence, log_heads[sentence, word, head], _MOST_HEADS)
    return sentence[kept], word[kept], head[kept]


def _trees(log_heads: Floats, given: tuple[Integers, Integers, Integers]) -> tuple[Integers, Integers]:
    """Return sentences and their best trees (trees, n) with a head given, each tree once; at least one sentence's."""
    sentence, word, head = given
    one = np.arange(len(sentence))
    scores = log_heads[sentence]
    scores[one, word] = -np.inf
    scores[one, word, head] = 0.0
    found = np.column_stack([sentence, best_heads(scores)])
    kept = is_projective_tree(found[:, 1:]) & (found[one, 1 + word] == head)
    distinct = np.unique(found[kept], axis=0)
    return distinct[:, 0], distinct[:, 1:]


def _likeliest(sentence: Integers, values: Floats, most: int) -> Integers:
    """Return the places of the greatest values of each sentence, sentence after sentence."""
    order = np.lexsort((-values, sentence))
    ordered = sentence[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    kept: Integers = order[rank < most]
    return kept


def _columns(
    scored: Scored,
    where: tuple[Integers, Integers],
    found: tuple[Integers, Integers, Floats],
    log: tuple[Floats, Floats],
) -> Columns:
    """Return analyses with their scores.

    Args:
        scored: what the network says of the sentences.
        where: (analyses,) each: the sentence's number, and its row in ``scored``.
        found: tags of the words of ``scored``, step after step, heads (analyses, n), and scores of labels
            (words, labels), analysis after analysis.
        log: log probabilities of tags (words, tags), and of heads (sentences, n, 1 + n).
    """
    sentence, rows = where
    words, is_word = scored.layout.words_of(rows)
    tags, heads = found[0][words], found[1][is_word]
    log_labels = log_probabilities(found[2])
    labels, of_labels = log_labels.argmax(axis=1), log_labels.max(axis=1)
    of_tags = log[0][words, tags]
    of_heads = np.take_along_axis(log[1][rows], found[1][:, :, None], axis=2)[:, :, 0][is_word]
    lengths = is_word.sum(axis=1)
    starts = np.cumsum(lengths) - lengths
    scores = np.zeros((len(rows), 4), dtype=np.float32)
    for column, values in enumerate((of_tags, of_heads, of_labels)):
        scores[:, column] = np.add.reduceat(values, starts)
    return Columns(sentence, tags, heads, labels, scores)


def _joined(parts: list[Columns], layout: Layout, forms: Integers) -> Analyses:
    """Put analyses of one sentence together, the network's own first."""
    sentence = np.concatenate([part.sentence for part in parts])
    lengths = layout.lengths[sentence]
    order = np.argsort(sentence, kind="stable")
    words = ranges((np.cumsum(lengths) - lengths)[order], lengths[order])
    tags, heads, labels = (
        np.concatenate([getattr(part, name) for part in parts])[words] for name in ("tags", "heads", "labels")
    )
    starts = np.cumsum(layout.lengths) - layout.lengths
    own = forms[ranges(starts[sentence[order]], lengths[order])]
    scores = np.concatenate([part.scores for part in parts])[order]
    return Analyses(sentence[order], lengths[order], own, tags, heads, labels, scores)
