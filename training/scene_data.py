"""Graphs drawn by people as labels of ordered pairs of words, for training the scene parser.

From the command line: label captions once, and write them as JSON lines for ``scene_train.py``.
"""

import argparse
import gzip
import itertools
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import NamedTuple

from heldout import Hashes, add_hashes
from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.caption_pipeline.network import NETWORK_FILES, analyse_sentences, network_from
from spicegraph_parser.export.graph_text import read_graph_text
from spicegraph_parser.ptb import plain_words
from spicegraph_parser.ptb import words as ptb_words
from spicegraph_parser.spice.parse import normalise
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scenes.network import ATTRIBUTE, OBJECT, PART, RELATION

HELD_BACK = 19  # one caption in so many is held back to choose settings
DIGITS = {"2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven", "8": "eight", "9": "nine"}
ALIASES = {"he": "man", "she": "woman", "they": "people", "both": "two", "wood": "wooden", "guy": "person"}
ALIKE = 0.85  # least similarity of a misspelt word and the graph's


class Caption(NamedTuple):
    """A caption, its words, and the tuples of its graph: (object), (object, attribute), (subject, object, relation)."""

    text: str
    words: tuple[str, ...]
    tuples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A sentence with the label of each ordered pair of words that has one, and the relations by pair.

    ``style`` is by whose conventions: 0 those of FACTUAL's captions, 1 and 2 those of captions and of sentences of
    descriptions that were labelled by hand (``style_of``).
    """

    words: tuple[str, ...]
    pairs: dict[tuple[int, int], int]
    relations: dict[tuple[int, int], str]
    style: int = 0


def read(path: Path) -> list[Caption]:
    """Read captions with their graphs, one JSON object per line (``caption``, ``scene_graph``); counts become words."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Caption(
            row["caption"],
            tuple(_words(normalise(row["caption"]))),
            tuple(tuple(DIGITS.get(word, word) for word in words) for words in _facts(row["scene_graph"])),
        )
        for row in rows
    ]


def _facts(graph: str) -> Iterator[tuple[str, ...]]:
    yield from (fact.words for fact in read_graph_text(graph)) if graph else ()  # a caption that denies all has none


def _words(text: str) -> Sequence[str]:
    plain = plain_words(text)
    return ptb_words(text, variant="spice") if plain is None else plain


def is_held_back(text: str) -> bool:
    """Say whether a training caption is held back to choose settings: by a hash of its lower-cased words."""
    return zlib.crc32(" ".join(text.lower().split()).encode()) % HELD_BACK == 0


@cache
def _keys(word: str) -> frozenset[str]:
    lower = word.lower()
    lower = ALIASES.get(lower, DIGITS.get(lower, lower))
    return frozenset((lower, plural_lemma(lower), verb_lemma(lower)))


@cache
def _same(word: str, other: str) -> bool:
    if _keys(word) & _keys(other):
        return True
    may = min(len(word), len(other)) > 3 and abs(len(word) - len(other)) < 3 and word[0] == other[0]
    return may and SequenceMatcher(None, word.lower(), other).ratio() >= ALIKE


Span = tuple[int, ...]


def spans(words: Sequence[str], name: str) -> list[Span]:
    """Return where a node's name stands in a caption; failing that, where its last word does."""
    parts = name.removesuffix(" of").split() or [name]
    size = len(parts)
    found = [
        tuple(range(start, start + size))
        for start in range(len(words) - size + 1)
        if all(map(_same, words[start : start + size], parts))
    ]
    if not found:
        joined = "".join(parts)
        found = [
            tuple(range(start, start + width))
            for width in (1, 2, 3)
            for start in range(len(words) - width + 1)
            if "".join(words[start : start + width]).lower().replace("-", "") == joined.replace("-", "")
        ]
    if not found and size > 1:
        found = [(position,) for position, word in enumerate(words) if _same(word, parts[-1])]
    return found


def label(caption: Caption) -> Labelled:
    """Return the labels of a caption's pairs of words; what does not stand in the caption has none."""
    words = caption.words
    pairs: dict[tuple[int, int], int] = {}
    relations: dict[tuple[int, int], str] = {}
    places = {name: spans(words, name) for row in caption.tuples for name in row[:2]}

    def mark(span: Span) -> int:
        head = span[-1]
        for position in span[:-1]:
            pairs[head, position] = PART
        return head

    used = set()
    for row in sorted(caption.tuples, key=len, reverse=True):
        chosen = _nearest([places[name] for name in row[:2]])
        if not chosen:
            continue
        heads = [mark(span) for span in chosen]
        if len(row) == 1:
            if row[0] in used:
                continue
        elif heads[0] == heads[1]:
            continue
        elif len(row) == 2:
            pairs[heads[0], heads[1]] = ATTRIBUTE
        else:
            pairs[heads[0], heads[1]] = RELATION
            relations[heads[0], heads[1]] = row[2]
        for name, head in list(zip(row, heads, strict=False))[: 2 if len(row) == 3 else 1]:
            used.add(name)
            pairs[head, head] = OBJECT
    return Labelled(words, pairs, relations)


def _nearest(choices: Sequence[Sequence[Span]]) -> tuple[Span, ...] | None:
    """Return one span of each, those that are nearest to each other and do not overlap."""
    combinations = [
        spans for spans in itertools.product(*choices) if len(spans) < 2 or set(spans[0]).isdisjoint(spans[1])
    ]
    return min(combinations, key=lambda spans: (abs(spans[0][-1] - spans[-1][-1]), spans), default=None)


def rewrites(captions: Iterable[tuple[Labelled, Caption]], *, least: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names that people give to objects, and to attributes, in place of the caption's.

    "cell phone" is a "cellphone" to them; what fewer than ``least`` captions have is left out.
    """
    counts: tuple[dict[str, Counter[str]], dict[str, Counter[str]]] = {}, {}
    for labelled, caption in captions:
        ends = {end for pair in labelled.pairs for end in pair}
        for is_attribute in (False, True):
            names = {row[1] for row in caption.tuples if len(row) == 2} if is_attribute else {
                name for row in caption.tuples for name in row[: max(1, len(row) - 1)] if len(row) != 2
            }  # fmt: skip
            for name in names:
                for span in spans(caption.words, name):
                    if span[-1] in ends:
                        text = " ".join(caption.words[position].lower() for position in span)
                        counts[is_attribute].setdefault(text, Counter())[name] += 1
    out = []
    for own in counts:
        best = {text: counter.most_common(1)[0] for text, counter in own.items()}
        out.append({text: name for text, (name, count) in sorted(best.items()) if name != text and count >= least})
    return out[0], out[1]


UNSEEN = ("abstraction.n.06", "phenomenon.n.01", "event.n.01")
DRAWN = 3, 0.1  # fewest captions in which people draw a noun, and least share of those that have it
OFTEN = 10, 0.5
SELDOM = 0.1
SENSES = 3  # of a noun that captions lack, among which one may be an artifact
HEARD = ("sound.n.01", "sound.n.04", "auditory_communication.n.01", "applause.n.01")
SOUND_SENSES = 2  # of a noun, among which one is heard


def nouns(captions: Iterable[Caption], forms: Iterable[str]) -> dict[str, list[str]]:
    """Return lists of nouns: ``abstract``, of nothing to be seen, and ``drawn``, which people draw as a rule.

    ``seldom`` has those of the abstract ones that somebody drew, or that hardly a caption has and that can be an
    artifact ("basketball": a game, then a ball), ``sounds`` those of the others that can be heard.

    Abstract are abstractions and events in WordNet that people do not draw ("sense", "testament"; but not "people",
    which WordNet calls a group), and what captions have but people hardly ever draw, unless WordNet calls it physical
    ("streetlights"). The drawn ones are singular.
    """
    wordnet = load_wordnet()
    thing, roots = wordnet.find("physical_entity.n.01"), [wordnet.find(name) for name in UNSEEN]
    drawn: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for caption in captions:
        said.update({plural_lemma(word.lower()) for word in caption.words})
        drawn.update({plural_lemma(row[0].rpartition(" ")[2]) for row in caption.tuples})

    def are_drawn(lemma: str, fewest: float, share: float) -> bool:
        return drawn[lemma] >= max(fewest, share * said[lemma])

    abstract = []
    for form in filter(str.isalpha, forms):
        lemma = plural_lemma(form)
        if wordnet.is_kind_of(form, thing) and not wordnet.is_kind_of(form, roots[1]):
            continue
        is_unseen = any(wordnet.is_kind_of(form, root) for root in roots)
        if (is_unseen and not are_drawn(lemma, *DRAWN)) or (
            said[lemma] >= DRAWN[0] and not are_drawn(lemma, 1, SELDOM)
        ):
            abstract.append(form)
    often = sorted(lemma for lemma in drawn if are_drawn(lemma, *OFTEN))
    artifact = wordnet.find("artifact.n.01")

    def can_be_artifact(form: str) -> bool:
        return any(artifact in wordnet.ancestors(sense) for sense in wordnet.senses(form, "n")[:SENSES])

    seldom = [
        form
        for form, lemma in zip(abstract, map(plural_lemma, abstract), strict=True)
        if drawn[lemma] or (said[lemma] < DRAWN[0] and can_be_artifact(form))
    ]
    heard = set(map(wordnet.find, HEARD))

    def can_be_heard(form: str) -> bool:
        senses = wordnet.senses(form, "n")[:SOUND_SENSES]
        return any(heard & {sense, *wordnet.ancestors(sense)} for sense in senses)

    sounds = sorted(filter(can_be_heard, set(abstract).difference(seldom)))
    return {"abstract": abstract, "seldom": seldom, "drawn": often, "sounds": sounds}


def tags_of(captions: Sequence[Caption]) -> Iterator[list[int]]:
    """Yield the numbers of captions' tags by the caption pipeline."""
    network = network_from({name: (pipeline_path() / "parser" / name).read_bytes() for name in NETWORK_FILES})
    lengths = [len(caption.words) for caption in captions]
    forms = [word.lower() for caption in captions for word in caption.words]
    tags = iter(analyse_sentences(network, forms, lengths)[0].tolist())
    return (list(itertools.islice(tags, length)) for length in lengths)


def write(rows: Sequence[tuple[Caption, Labelled]], out: Path, tags: Iterable[list[int]] | None = None) -> None:
    """Write captions as JSON lines: text, words, their tags (``tags_of`` by default), tuples, and labels of pairs."""
    every = tags or tags_of([caption for caption, _ in rows])
    with gzip.open(out, "wt", encoding="utf-8") as lines:
        for (caption, own), numbers in zip(rows, every, strict=True):
            row = caption._asdict() | {
                "tags": numbers,
                "pairs": [[*pair, kind] for pair, kind in own.pairs.items()],
                "relations": [[*pair, name] for pair, name in own.relations.items()],
            }
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


CAPTION_STYLE, SENTENCE_STYLE = 1, 2


def style_of(words: Sequence[str]) -> int:
    """Return the style of what was labelled by hand: sentences end with a full stop, captions are read without it."""
    return SENTENCE_STYLE if words[-1] == "." else CAPTION_STYLE


def read_labelled(path: Path, *, by_hand: bool = False) -> Iterator[tuple[Labelled, Caption, list[int]]]:
    """Read what ``write`` wrote: labels, captions, and the numbers of tags."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            words = tuple(row["words"])
            pairs = {(one, other): kind for one, other, kind in row["pairs"]}
            relations = {(one, other): name for one, other, name in row["relations"]}
            tuples = tuple(tuple(own) for own in row["tuples"])
            style = style_of(words) if by_hand else 0
            yield Labelled(words, pairs, relations, style), Caption(row["text"], words, tuples), row["tags"]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", type=Path, help="captions with graphs (jsonl.gz)")
    parser.add_argument("--without", type=Path, required=True, help="captions with graphs that are left out")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--allow-held-out", action="store_true", help="keep held-out texts: they have graphs here, too")
    add_hashes(parser)
    arguments = parser.parse_args()
    left_out = {caption.text.lower() for caption in read(arguments.without)}
    hashes = Hashes([]) if arguments.allow_held_out else Hashes.read(arguments.held_out_hashes)
    kept = [caption for caption in read(arguments.graphs) if caption.text.lower() not in left_out]
    write([(caption, label(caption)) for caption in kept if not hashes.covers(caption.text)], arguments.out)


if __name__ == "__main__":
    main()
