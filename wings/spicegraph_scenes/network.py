"""The scene parser's network, as it runs: plain numpy, float32.

An encoder like the caption pipeline's reads each sentence; biaffine scores (Dozat and Manning 2017) then label every
ordered pair of words: none, part of a name, attribute, or subject and object of a relation. A word is an object or is
not. The relation of a pair is one of a closed list, chosen from both words and from what attention over the sentence
brings (people name relations that no word of the caption states: "man in a hat" is "man, wear, hat"); where the choice
is not sure, the caption's own verb names it.
``training/scene_train.py`` has the trainable form.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

import numpy as np

from spicegraph_parser.caption_pipeline.encoder import Encoder, Vocabulary, float_product, relu, softmax, stored_weights
from spicegraph_parser.caption_pipeline.layout import Floats, Integers, Layout
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, in_parts, single_threaded
from spicegraph_parser.caption_pipeline.trees import best_choices
from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from spicegraph_parser.caption_pipeline.encoder import MakeProduct

PAIR_LABELS: Final = ("none", "part", "attribute", "relation")
PART, ATTRIBUTE, RELATION, OBJECT = 1, 2, 3, 4
"""Labels of ordered pairs of words: the second word is part of the name that the first one ends, an attribute of it, or
the object of a relation whose subject it is. A word with itself has ``OBJECT``."""

SURE: Final = 0.6
"""Least probability of a name from the closed list where the caption has a verb of its own (``training/scenes.md``)."""
OBJECT_MARGIN: Final = 3.0
"""How far the scores of objects are lowered in descriptions of several sentences; those of relations: ``Wording``.

What is not an object there lacks attributes and relations, too. People draw less of a description than of a caption;
what the margins leave out is faint. Chosen on 100 descriptions of DiscoSG, measured on 200 others
(``training/scenes.md``).
"""

WHOLE: Final = 0.999  # A share that counts as all of a name's words, rounding aside.


class Labels(NamedTuple):
    """Labels of a sentence, words from 0; ``faint``: those below a description's margins."""

    tags: list[str]
    objects: list[int]
    parts: list[tuple[int, int]]
    attributes: list[tuple[int, int]]
    relations: list[tuple[int, int, str]]
    faint: Labels | None = None

    @classmethod
    def empty(cls, *, has_faint: bool = False) -> Labels:
        """Return labels to be filled in."""
        return cls([], [], [], [], [], cls.empty() if has_faint else None)

    def side(self, *, is_clear: bool) -> Labels:
        """Return these labels, or the faint ones, if there are any."""
        return self if is_clear else self.faint or self


@dataclass(frozen=True, slots=True)
class Names:
    """Names of tags and relations by number, and lists of known words."""

    vocabulary: Vocabulary  # tags, and rows of word features
    relations: tuple[str, ...]
    verbs: frozenset[str]  # the first words of these
    objects: Mapping[str, str]  # names that people give in place of the caption's ("cell phone": "cellphone")
    attributes: Mapping[str, str]  # the same of attributes ("wood": "wooden")
    abstract: frozenset[str]  # nouns that name nothing to be seen in a description of several sentences
    undrawn: frozenset[str]  # nouns that captions have and of which people hardly ever draw anything ("side")
    known: frozenset[str]  # words of the captions that the network learned from


class Wording(Protocol):
    """How a language words relations, which the network does not know: their names and how words state them."""

    def stems(self, form: str) -> frozenset[str]:
        """Return the forms by which the name of a relation may have a word."""

    def margin(self, name: str) -> float:
        """Return how far the score of a relation is lowered in descriptions of several sentences."""

    def relation_name(
        self, listed: str, words: Sequence[str], labels: Labels, ends: tuple[int, int], *, is_sure: bool
    ) -> str:
        """Return the name of a relation of which the network's list has the given one."""


class Stated:
    """Says how far words state each relation: which share of the words of its name they have."""

    def __init__(self, relations: Sequence[str], stems: Callable[[str], frozenset[str]]) -> None:
        self._stems = stems
        words = sorted({word for name in relations for word in name.split()})
        self._places = {word: row for row, word in enumerate(words)}
        self._parts = np.zeros((len(words), len(relations)), dtype=np.float32)
        for number, name in enumerate(relations):
            for word in name.split():
                self._parts[self._places[word], number] = 1.0
        self._sizes = self._parts.sum(axis=0)

    def __call__(self, groups: Sequence[Sequence[str]]) -> tuple[Floats, list[int]]:
        """Return (different groups, relations) the share of a name's words that a group has, and each group's row."""
        rows: dict[frozenset[str], int] = {}
        known = self._places.keys()
        stems = [frozenset(known & set().union(*map(self._stems, group))) for group in groups]
        row_of = [rows.setdefault(own, len(rows)) for own in stems]
        present = np.zeros((len(rows), len(known)), dtype=np.float32)
        for row, words in enumerate(rows):
            present[row, [*map(self._places.__getitem__, words)]] = 1.0
        shares: Floats = present @ self._parts
        shares /= self._sizes
        return shares, row_of


class SceneNetwork:
    """Labels of words and pairs of words of sentences, from arrays by name, input before output."""

    def __init__(
        self, weights: Mapping[str, Floats], names: Names, wording: Wording, product: MakeProduct = float_product
    ) -> None:
        self.names = names
        self._wording = wording
        self._weights = weights
        self._encoder = Encoder(weights, names.vocabulary, product)
        labels, rows, columns = weights["pairs"].shape
        self._pairs = weights["pairs"].transpose(1, 0, 2).reshape(rows, labels * columns)
        ends = ("pair_first", "pair_second", "object")
        self._ends = product(np.concatenate([weights[name] for name in ends], axis=1))
        self._ends_bias = np.concatenate([weights[f"{name}.bias"] for name in ends])
        self._bounds = np.cumsum([weights[name].shape[1] for name in ends])[:-1]
        self._relations = np.array(names.relations, dtype=object)
        self._stated = Stated(names.relations, wording.stems)
        self._tags = np.array(names.vocabulary.tags, dtype=object)

    @classmethod
    def read(cls, folder: Path, wording: Wording, product: MakeProduct = float_product) -> Self:
        """Read a network; raises DataError where a file is missing or damaged."""
        try:
            weights, text = ((folder / name).read_bytes() for name in NETWORK_FILES)
            lists = json.loads(text)
            names = Names(
                Vocabulary.from_lists(lists),
                tuple(lists["relations"]),
                frozenset(name.partition(" ")[0] for name in lists["relations"]),
                lists["objects"],
                lists["attributes"],
                *(frozenset(lists[name]) for name in ("abstract", "undrawn", "known")),
            )
            return cls(stored_weights(weights), names, wording, product)
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"the scene parser's network can't be read ({error}); install the package again") from error

    def label(
        self, forms: Sequence[str], lengths: Sequence[int], strictness: Sequence[float], styles: Sequence[int] = ()
    ) -> list[Labels]:
        """Return sentences' labels from words' PTB forms.

        Args:
            forms: words of all sentences.
            lengths: words of each sentence.
            strictness: of each sentence, the share of the margins that counts.
            styles: of each sentence, the number of the conventions by which it is read, as in ``kinds.Kind``; 0 by
                default.
        """
        out = [Labels.empty(has_faint=share > 0) for share in strictness]
        with single_threaded():
            for part, where in in_parts(lengths):
                sizes = np.array(lengths, dtype=np.intp)[part]
                part_forms = [forms[position] for position in where.tolist()]
                strict = np.array(strictness, dtype=np.float32)[part]
                style = np.array(styles, dtype=np.intp)[part] if styles else np.zeros(len(part), dtype=np.intp)
                self._label(part_forms, sizes, strict, style, [out[at] for at in part.tolist()])
        return out

    def _label(
        self, forms: Sequence[str], lengths: Integers, strict: Floats, styles: Integers, out: Sequence[Labels]
    ) -> None:
        """Fill in the labels of sentences, longest first.

        Args:
            forms: words of all sentences.
            lengths: (sentences,) words of each.
            strict: (sentences,) the share of the margins.
            styles: (sentences,) as in ``label``.
            out: each sentence's labels.
        """
        layout = Layout.of(lengths)
        states, tags = self._encoder.encode(self._encoder.words(forms, styles.repeat(lengths)), layout)
        ends = self._ends(states)
        ends += self._ends_bias
        first, second, objects = np.split(ends, self._bounds, axis=1)
        named = np.empty(len(tags), dtype=object)
        named[layout.place] = self._tags[tags]
        sentences: list[Sequence[str]] = []
        start = 0
        for labels, length in zip(out, lengths.tolist(), strict=True):
            inner = slice(start, start + length)
            labels.tags.extend(named[inner].tolist())
            sentences.append(forms[inner])
            start = inner.stop
        is_object = objects[:, 0] > OBJECT_MARGIN * strict[layout.sentence]
        scored = np.nonzero(objects[:, 0] > 0)[0]
        for sentence, word, is_clear in _rows(*(own[scored] for own in (layout.sentence, layout.step, is_object))):
            out[sentence].side(is_clear=is_clear).objects.append(word)
        every, lead = self._pair_labels(first, second, layout)
        pairs = np.nonzero(every)
        kinds, is_drawn = every[pairs], _drawn(every, is_object, strict, layout)[pairs]
        related = kinds == RELATION
        for sentence, head, other, kind, is_clear in _rows(*(own[~related] for own in (*pairs, kinds, is_drawn))):
            labels = out[sentence].side(is_clear=is_clear)
            (labels.parts if kind == PART else labels.attributes).append((head, other))
        where = pairs[0][related], pairs[1][related], pairs[2][related]
        if len(where[0]):
            numbers, is_sure = self._relation_numbers(states, where, sentences, layout)
            columns = (*where, self._relations[numbers], is_sure, is_drawn[related], lead[where])
            for sentence, head, other, name, sure, is_clear, ahead in _rows(*columns):
                words, labels = sentences[sentence], out[sentence]
                name_of = self._wording.relation_name(name, words, labels, (head, other), is_sure=sure)
                is_ahead = is_clear and ahead > strict[sentence] * self._wording.margin(name_of)
                labels.side(is_clear=is_ahead).relations.append((head, other, name_of))

    def _pair_labels(self, first: Floats, second: Floats, layout: Layout) -> tuple[Integers, Floats]:
        """Best labels (sentences, n, n) of pairs of words, and how far a relation's score is ahead of others."""
        sentences, longest = layout.padded.shape
        bilinear = relu(first) @ self._pairs[:-1]
        bilinear += self._pairs[-1]
        width = second.shape[1] + 1
        rows = bilinear[layout.padded].reshape(sentences, longest * (len(PAIR_LABELS) - 1), width)
        columns = np.ones((sentences, longest, width), dtype=np.float32)
        columns[:, :, :-1] = relu(second)[layout.padded]
        scores = np.matmul(rows, columns.transpose(0, 2, 1)).reshape(sentences, longest, -1, longest)
        part, attribute, relation = (scores[:, :, label - 1] for label in (PART, ATTRIBUTE, RELATION))
        others = np.maximum(part, attribute)
        np.maximum(others, 0.0, out=others)
        best = np.where(relation > others, RELATION, np.where(attribute > part, ATTRIBUTE, PART))
        best[(others <= 0) & (relation <= 0)] = 0
        words = np.arange(longest)
        best[:, words, words] = 0
        sentence, step = layout.padding
        best[sentence, step] = 0
        best[sentence, :, step] = 0
        return best, relation - others

    def _relation_numbers(
        self,
        states: Floats,
        pairs: tuple[Integers, Integers, Integers],
        sentences: Sequence[Sequence[str]],
        layout: Layout,
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Return each pair's best relation number, and whether it is sure; stated ones score higher."""
        sentence, head, other = pairs
        lengths = np.array(list(map(len, sentences)))
        subject, target = (
            states[layout.padded[sentence, word]] @ self._weights[name] + self._weights[f"{name}.bias"]
            for word, name in ((head, "relation_first"), (other, "relation_second"))
        )
        query = relu(subject + target)
        # A sentence's words are read once for all of its pairs, which stand together.
        related, firsts, of_pair, counts = np.unique(
            sentence, return_index=True, return_inverse=True, return_counts=True
        )
        at = of_pair, np.arange(len(sentence)) - firsts[of_pair]
        read = states[layout.padded[related]]
        wanted = np.zeros((len(related), counts.max(), read.shape[2]), dtype=np.float32)
        wanted[at] = query @ self._weights["relation_key"].T
        looks = np.matmul(wanted, read.transpose(0, 2, 1))[at] * np.float32(query.shape[1] ** -0.5)
        looks[np.arange(looks.shape[1]) >= lengths[sentence, None]] = -np.inf
        weights = np.zeros((*wanted.shape[:2], looks.shape[1]), dtype=np.float32)
        weights[at] = softmax(looks)
        context = np.matmul(weights, read)[at] @ self._weights["relation_value"]
        context += self._weights["relation_value.bias"]
        hidden = np.concatenate([query, subject * target, relu(context)], axis=1)
        scores = hidden @ self._weights["relations"]
        ends_of = zip(
            sentence.tolist(), np.minimum(head, other).tolist(), np.maximum(head, other).tolist(), strict=True
        )
        inside, near, partly = self._weights["stated"]
        between, row_between = self._stated([sentences[at][low + 1 : high] for at, low, high in ends_of])
        whole, row_whole = self._stated([sentences[at] for at in related.tolist()])
        scores += ((between > WHOLE) * near + between * partly + self._weights["relations.bias"])[row_between]
        scores += ((whole > WHOLE) * inside)[np.array(row_whole)[of_pair]]
        best, highest = best_choices(scores)
        scores -= highest[:, None]
        return best, np.exp(scores, out=scores).sum(axis=1) < 1 / SURE


def _rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of columns of one length, as Python's values."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _drawn(every: Integers, is_object: NDArray[np.bool_], strict: Floats, layout: Layout) -> NDArray[np.bool_]:
    """Return which labelled pairs the margins keep: name parts, and attributes and relations of objects."""
    is_drawn: NDArray[np.bool_] = every > 0
    if strict.any():
        is_left_out = ((strict > 0)[layout.sentence] & ~is_object)[layout.padded]
        is_drawn[is_left_out[:, :, None] & (every != PART)] = False
        is_drawn[is_left_out[:, None, :] & (every == RELATION)] = False
    return is_drawn
