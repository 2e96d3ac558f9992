"""Captions with noun phrases of other captions in place of their own: the same graphs of other things.

A network that reads "a nodule in the left lung" shall read "a rusty hinge in the kitchen sink" alike. Phrases are an
object with what stands before it and belongs to it alone; one takes the place of another whose noun has the same tag.
"""

import argparse
import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

import scene_data
from scene_data import Caption, Labelled
from spicegraph_scenes.network import ATTRIBUTE, OBJECT, PART

SHARE = 0.75  # of the phrases are swapped
LEAST = 20  # phrases of a tag among which one is chosen
_ARTICLES = {"a", "an"}
_BY_NOUN = {"with", "using"}  # what stands behind them belongs to one noun or another by what it is: a handle, a hammer


@dataclasses.dataclass(frozen=True, slots=True)
class Phrase:
    """Words of a noun phrase, the numbers of their tags, and the labels of those before its noun, by their place."""

    words: tuple[str, ...]
    tags: tuple[int, ...]
    labels: tuple[tuple[int, int], ...]


def phrases(own: Labelled, tags: Sequence[int]) -> dict[int, Phrase]:
    """Return the phrases of a caption that can be swapped, by their first word."""
    owners = defaultdict(set)
    for (head, word), kind in own.pairs.items():
        if kind in {PART, ATTRIBUTE}:
            owners[word].add(head)
    out = {}
    for head in [one for (one, _), kind in own.pairs.items() if kind == OBJECT]:
        labels = {word: kind for (one, word), kind in own.pairs.items() if one == head and word < head}
        labels = {word: kind for word, kind in labels.items() if kind in {PART, ATTRIBUTE}}
        start = min(labels, default=head)
        inner = range(start, head)
        alone = all(owners[word] == {head} for word in inner) and head not in owners
        others = any(one in inner or (other in inner and one != head) for one, other in own.pairs)
        if labels.keys() == set(inner) and alone and not others:
            words = tuple(map(_in_lower_case, own.words[start : head + 1]))
            at = tuple((word - start, kind) for word, kind in sorted(labels.items()))
            out[start] = Phrase(words, tuple(tags[start : head + 1]), at)
    return out


def _in_lower_case(word: str) -> str:
    """Return a word as it stands within a caption: capitals stay in abbreviations."""
    return word.lower() if word[1:] == word[1:].lower() else word


def swapped(
    own: Labelled, tags: Sequence[int], new: Mapping[int, Phrase], old: Mapping[int, Phrase]
) -> tuple[Labelled, list[int]]:
    """Return a caption, and its tags, with new phrases in place of its own.

    Args:
        own: the caption.
        tags: the numbers of its tags.
        new: phrases by the first words of those whose place they take.
        old: what ``phrases`` says of the caption.
    """
    words: list[str] = []
    numbers: list[int] = []
    place: dict[int, int] = {}
    pairs: dict[tuple[int, int], int] = {}
    at = 0
    while at < len(own.words):
        phrase = new.get(at)
        if phrase is None:
            place[at] = len(words)
            words.append(own.words[at])
            numbers.append(tags[at])
            at += 1
            continue
        if words and words[-1].lower() in _ARTICLES:
            article = "an" if phrase.words[0][0].lower() in "aeiou" else "a"
            words[-1] = article.capitalize() if words[-1][0].isupper() else article
        start, end = len(words), len(words) + len(phrase.words) - 1
        pairs |= {(end, start + word): kind for word, kind in phrase.labels}
        words += phrase.words
        numbers += phrase.tags
        at += len(old[at].words)
        place[at - 1] = end
    pairs |= {(place[a], place[b]): kind for (a, b), kind in own.pairs.items() if {a, b} <= place.keys()}
    relations = {(place[a], place[b]): name for (a, b), name in own.relations.items()}
    return Labelled(tuple(words), pairs, relations, own.style), numbers


def swaps(rows: Sequence[tuple[Labelled, list[int]]], times: int, seed: int) -> Iterator[tuple[Labelled, list[int]]]:
    """Yield captions with phrases of one another, each so many times; those in which nothing can be swapped are not."""
    random = np.random.default_rng(seed)
    every = [phrases(*row) for row in rows]
    by_tag: dict[int, list[Phrase]] = defaultdict(list)
    for own in every:
        for phrase in own.values():
            by_tag[phrase.tags[-1]].append(phrase)
    for _ in range(times):
        for (own, tags), old in zip(rows, every, strict=True):
            candidates = {start: by_tag[phrase.tags[-1]] for start, phrase in old.items()}
            new = {
                start: several[random.integers(len(several))]
                for start, several in candidates.items()
                if len(several) > LEAST and random.random() < SHARE
            }
            if new:
                yield swapped(own, tags, new, old)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", type=Path, help="captions as scene_hand.py or scene_data.py write them")
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--without-tools", action="store_true", help='leave captions with "with" or "using" out')
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [(own, tags) for own, _, tags in scene_data.read_labelled(options.labelled, by_hand=True)]
    captions = [row for row in rows if row[0].style == scene_data.CAPTION_STYLE]
    if options.without_tools:
        captions = [row for row in captions if _BY_NOUN.isdisjoint(map(str.lower, row[0].words))]
    made = list(swaps(captions, options.times, options.seed))
    texts = [(Caption(" ".join(own.words), own.words, ()), own) for own, _ in made]
    scene_data.write(texts, options.out, [tags for _, tags in made])


if __name__ == "__main__":
    main()
