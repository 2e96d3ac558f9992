"""Where the network is in doubt, whole analyses are compared: what they are, what their patterns are, which one wins."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.caption_pipeline import pipeline_path, reranker
from spicegraph_parser.caption_pipeline.encoder import Encoder, FirstStates, Vocabulary, stored_weights
from spicegraph_parser.caption_pipeline.layout import Layout
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, Network, network_from
from spicegraph_parser.caption_pipeline.reranker import Analyses, Reranker, TreePatterns
from spicegraph_parser.caption_pipeline.trees import is_projective_tree

_TAGS = ("DT", "IN", "NN", "VBZ")
_LABELS = ("case", "det", "nmod", "nsubj", "root", "dobj")
_WORDS = ("a", "cat", "dog", "fork", "sees", "with")
_VOCABULARY = Vocabulary(_TAGS, _LABELS, ({word: row for row, word in enumerate(_WORDS, 1)}, *({} for _ in range(5))))
_SENTENCE = ("a", "dog", "sees", "cat", "with", "fork")
_VERB = ((2, "det"), (3, "nsubj"), (0, "root"), (3, "dobj"), (6, "case"), (3, "nmod"))  # sees ... with a fork
_NOUN = (*_VERB[:5], (4, "nmod"))  # a cat with a fork


def _analyses(*trees: tuple[tuple[int, str], ...], words: tuple[str, ...] = _SENTENCE) -> Analyses:
    tags = {"a": "DT", "sees": "VBZ", "with": "IN"}
    count = len(trees)
    return Analyses(
        np.zeros(count, np.intp),
        np.full(count, len(words)),
        np.array([_WORDS.index(word) + 1 for word in words] * count),
        np.array([_TAGS.index(tags.get(word, "NN")) for word in words] * count),
        np.array([head for tree in trees for head, _ in tree]),
        np.array([_LABELS.index(label) for tree in trees for _, label in tree]),
        np.zeros((count, 4), np.float32),
    )


def _by_word(analyses: Analyses) -> list[set[int]]:
    return [set(own) for own in TreePatterns(_VOCABULARY, 1 << 30).rows(analyses).T.tolist()]


def test_a_phrases_place_is_in_the_patterns_of_what_it_touches() -> None:
    """With another head of "fork", its own patterns, its sister's and both heads' are others; "a" knows nothing of it."""
    words = _by_word(_analyses(_VERB, _NOUN))
    verb, noun = words[:6], words[6:]
    assert [one == other for one, other in zip(verb, noun, strict=True)] == [True, True, False, False, False, False]


def test_an_analysis_has_its_patterns_in_any_company() -> None:
    alone = [_by_word(_analyses(tree)) for tree in (_VERB, _NOUN)]
    assert _by_word(_analyses(_VERB, _NOUN)) == [*alone[0], *alone[1]]


def test_patterns_have_the_same_numbers_for_ever() -> None:
    """Weights are stored by these numbers."""
    rows = TreePatterns(_VOCABULARY, 1 << 20).rows(_analyses(_VERB))
    assert rows.shape == (32, 6)
    assert crc32(rows.astype("<i4").tobytes()) == 2600805854


def test_the_order_of_children_counts() -> None:
    """A hash of the children's labels tells "nsubj, dobj" from "dobj, nsubj"."""
    words = ("dog", "cat", "sees")
    one, other = (
        _by_word(_analyses(((3, first), (3, second), (0, "root")), words=words))[2]
        for first, second in (("nsubj", "dobj"), ("dobj", "nsubj"))
    )
    assert one != other


def _reranker(table: np.ndarray, *scores: float, **more: np.ndarray) -> Reranker:
    weights = {"table": table[:, None], "likely": np.full(1, 0.1, np.float32)}
    weights["scores"] = np.array(scores, np.float32)
    return Reranker({f"reranker.{name}": own for name, own in (weights | more).items()}, _VOCABULARY)


def test_weights_of_patterns_and_the_networks_scores_choose() -> None:
    analyses = _analyses(_VERB, _NOUN)._replace(
        scores=np.array([[-0.1, -0.5, -0.2, 1], [-0.1, -0.9, -0.2, 0]], np.float32)
    )
    table = np.zeros(1 << 16, np.float32)
    assert _reranker(table, 1, 1, 1, 0).best(analyses).tolist() == [0]
    assert _reranker(table, 1, 1, 1, -1).best(analyses).tolist() == [1]
    mine, theirs = (set(part.flat) for part in np.split(TreePatterns(_VOCABULARY, 1 << 16).rows(analyses), 2, axis=1))
    table[min(theirs - mine)] = 0.5
    assert _reranker(table, 1, 1, 1, 0).best(analyses).tolist() == [1]
    whole = np.rint(table * 100).astype(np.int8)
    stored = _reranker(whole, 1, 1, 1, 0, **{"table.scale": np.full((1, 1), 0.01, np.float32)})
    assert stored.best(analyses).tolist() == [1]


def test_equal_analyses_leave_the_networks_own() -> None:
    assert _reranker(np.zeros(1 << 16, np.float32), 1, 1, 1, 0).best(_analyses(_VERB, _NOUN, _VERB)).tolist() == [0]


@pytest.fixture(scope="module")
def network() -> Network:
    return network_from({name: (pipeline_path() / "parser" / name).read_bytes() for name in NETWORK_FILES})


@pytest.mark.model
@given(data=st.data())
def test_analyses_of_doubtful_sentences(network: Network, data: st.DataObject) -> None:
    """Each is a projective tree over its sentence; the first is the network's own; the best one is what is found."""
    known = list(network.vocabulary.rows[0])[:400]
    sizes = sorted(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=6)), reverse=True)
    forms = data.draw(st.lists(st.sampled_from(known), min_size=sum(sizes), max_size=sum(sizes)))
    words, lengths = network.words(forms), np.array(sizes)
    found = network.doubts(words, lengths, 0.1)
    analysis = network.analyse(words, lengths)
    ends = np.cumsum(lengths)
    if found is None:
        return
    assert (np.diff(found.sentence) >= 0).all()
    assert (found.lengths == lengths[found.sentence]).all()
    is_first = np.append(True, np.diff(found.sentence) > 0)
    assert (found.scores[:, 3] == is_first).all()
    assert (found.scores[:, :3] <= 1e-4).all()
    in_analyses = dict.fromkeys(found.sentence.tolist(), False)
    for (start, end), sentence in zip(pairwise([0, *np.cumsum(found.lengths)]), found.sentence.tolist(), strict=True):
        heads = found.heads[start:end]
        assert is_projective_tree(heads[None])[0]
        assert ((found.labels[start:end] == network.vocabulary.labels.index("root")) == (heads == 0)).all()
        here = slice(ends[sentence] - lengths[sentence], ends[sentence])
        assert (found.forms[start:end] == words.forms[here]).all()
        columns = np.stack([found.tags[start:end], heads, found.labels[start:end]])
        in_analyses[sentence] |= columns.tolist() == analysis[:, here].tolist()
    assert all(in_analyses.values())


@pytest.mark.model
def test_lists_of_words_are_not_compared(network: Network) -> None:
    """Nearly every word of theirs could hang on several others; what stands beside them is compared as before."""
    listed = "dog", "cat", "red", "big", "man", "blue", "car", "tree", "horse", "beach", "table", "woman", "small"
    words = [word for at in np.random.default_rng(5).integers(13, size=32) for word in (listed[at], ",")]
    words[-1] = "."
    sentence = ["dogs", "bark", "as", "birds", "chirp", "loud", "while", "metal", "clacking", "rain"]
    lengths = np.array([len(words), len(sentence)])
    found = network.doubts(network.words(words + sentence), lengths, 0.1)
    assert found is not None
    assert set(found.sentence.tolist()) == {1}


@pytest.mark.model
def test_without_its_weights_the_network_speaks_alone() -> None:
    """Files of before version 1.5.0 hold none."""
    folder = pipeline_path() / "parser"
    weights = stored_weights((folder / NETWORK_FILES[0]).read_bytes())
    assert weights["reranker.table"].dtype == np.int8
    kept = {name: own for name, own in weights.items() if not name.startswith("reranker.")}
    with_it = network_from({name: (folder / name).read_bytes() for name in NETWORK_FILES})
    alone = Network(kept, with_it.vocabulary)
    forms = ["dogs", "bark", "as", "birds", "chirp", "loud", "while", "metal", "clacking", "rain"]
    lengths = np.array([len(forms)])
    found = with_it.doubts(with_it.words(forms), lengths, 0.1)
    assert found is not None
    tags, heads, _ = alone.analyse(alone.words(forms), lengths)
    assert heads.tolist() == found.heads[: len(forms)].tolist()
    assert tags.tolist() == found.tags[: len(forms)].tolist()


def test_part_of_a_layout() -> None:
    """Sentences laid out anew, one of them twice: each word is where it was."""
    layout = Layout.of(np.array([4, 2, 2]))
    part = layout.part(np.array([0, 2, 2]), np.array([3, 1, 0]))
    own, source = part.layout, part.source
    assert own.lengths.tolist() == [4, 2, 2]
    assert (layout.step[source] == own.step).all()
    assert layout.sentence[source].tolist() == [(0, 2, 2)[row] for row in own.sentence]
    assert layout.step[source][part.words].tolist() == [3, 1, 0]


def test_ways_from_words() -> None:
    """From a word to its sentence's end and to its beginning, step after step, the longest way first."""
    part = Layout.of(np.array([4, 3])).part(np.array([0, 1]), np.array([3, 1]))
    named = part.layout.sentence * 10 + part.layout.step
    onward, backward = part.way(0), part.way(1)
    assert onward.order.tolist() == [1, 0]
    assert named[onward.words].tolist() == [11, 3, 12]
    assert onward.steps == (2, 1)
    assert (named[onward.before].tolist(), onward.is_first.tolist()) == ([10, 2], [False, False])
    assert backward.order.tolist() == [0, 1]
    assert named[backward.words].tolist() == [3, 11, 2, 10, 1, 0]
    assert backward.steps == (2, 2, 1, 1)
    assert backward.is_first.tolist() == [True, False]
    assert named[backward.before][1] == 12


def test_reading_from_a_word_on_is_reading_all() -> None:
    """What the second layer says where a word's tag is given does not depend on where it begins to read."""
    folder = pipeline_path() / "parser"
    network = network_from({name: (folder / name).read_bytes() for name in NETWORK_FILES})
    weights = stored_weights((folder / "network.npz").read_bytes())
    encoder = Encoder(weights, network.vocabulary)
    sentences = [["dogs", "bark", "as", "birds", "chirp", "loud"], ["metal", "clacking", "rain"]]
    layout = Layout.of(np.array(list(map(len, sentences))))
    first = encoder.first(encoder.words([form for own in sentences for form in own]), layout)
    tag = network.vocabulary.tags.index("VBG")
    for sentence, own in enumerate(sentences):
        for step in range(len(own)):
            part = layout.part(np.array([sentence]), np.array([step]))
            states, tags = encoder.again(first, encoder.second(first, layout), part, np.array([tag]))
            odds = np.eye(len(network.vocabulary.tags), dtype=np.float32)[tag] - first.odds[part.source[step]]
            read_as = part.source, layout.back[part.source][part.layout.back]
            inputs = tuple(values[rows] for values, rows in zip(first.inputs, read_as, strict=True))
            fixed = FirstStates(inputs, first.tags[part.source], first.odds[part.source])
            for values, row, of_odds in zip(inputs, (step, part.layout.back[step]), encoder._of_odds, strict=True):
                values[row] += odds @ of_odds
            all_of_it = encoder.second(fixed, part.layout)
            np.testing.assert_allclose(states, all_of_it.states, atol=1e-5)
            np.testing.assert_allclose(tags, all_of_it.tags, atol=1e-4)


@given(st.integers(1, 1100), st.integers(0, 2**32))
def test_patterns_hashed_together_have_the_hashes_of_each_alone(words: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    columns = [random.integers(0, 50, words) for _ in range(5)]
    columns.append(random.integers(0, 2**64, words, dtype=np.uint64))
    chosen = [tuple(columns[n] for n in random.integers(0, 6, size)) for size in random.integers(1, 8, 9)]
    alone = [reranker._hash(np.full(1, kind), *pattern) for kind, pattern in enumerate(chosen, 1)]
    assert np.array_equal(reranker._hashes_of_patterns(chosen), np.stack(alone))
