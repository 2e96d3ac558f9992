"""Loose words: content words of a caption that no rule of SPICE uses, each tied to the noun that it belongs to.

"A man standing by a red wall" gives SPICE no tuple with "stand", where the parse ties the wall to the man; "two of
the dogs" none with "two". Graded matching wants them. SPICE's own scene graphs never hold them: ``merge`` leaves
them out unless it is asked for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spicegraph_parser.parse import Caption, Parse

__all__ = ["LOOSE", "loose_facts", "without_loose"]

LOOSE = "loose"
"""The ``rule`` of a loose word's fact."""

_CONTENT = frozenset({"NN", "VB", "JJ", "CD"})  # the first two letters of a PTB tag
_EMPTY = frozenset({"be", "have", "do"})
_NEGATIONS = frozenset({"no", "not", "never"})
_OBJECT_SLOTS = {1: 1, 2: 1, 3: 2}  # by the length of a fact


def loose_facts(caption: Caption, facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield a fact for every content word or negation of a caption that none of its facts stands at.

    The word becomes an attribute of its own subject, of the noun it hangs on, however far up, or of a noun that
    hangs on it; without any, an object.
    """
    used = {token for fact in facts for slot in fact.tokens for token in slot}
    nouns: dict[int, str] | None = None
    offset = 0
    for parse in caption.sentences:
        for position, tag in enumerate(parse.tags, 1):
            token = offset + position - 1
            if token in used:
                continue
            lemma = parse.lemmas[position - 1]
            if lemma in _NEGATIONS or (tag[:2] in _CONTENT and lemma not in _EMPTY):
                if nouns is None:
                    nouns = dict(_nouns(facts))
                noun = _noun_of(parse, position, offset - 1, nouns)
                word = (lemma, (token,))
                owner = [] if noun is None or nouns[noun] == lemma else [(nouns[noun], (noun,))]
                words, tokens = zip(*owner, word, strict=True)
                yield Fact(words, LOOSE, tokens)
        offset += len(parse.tags)


def without_loose(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return a caption's facts without those of loose words, which stand last."""
    end = len(facts)
    while end and facts[end - 1].rule == LOOSE:
        end -= 1
    return facts if end == len(facts) else facts[:end]


def _nouns(facts: Sequence[Fact]) -> Iterator[tuple[int, str]]:
    """Yield the token and the string of every object."""
    for words, _, tokens in facts:
        for slot in range(_OBJECT_SLOTS[len(words)]):
            for token in tokens[slot]:
                yield token, words[slot]


def _noun_of(parse: Parse, position: int, shift: int, nouns: Mapping[int, str]) -> int | None:
    """Return the token of the noun that a word belongs to; ``shift`` turns positions into tokens."""
    heads = {dependent: head for _, head, dependent in parse.arcs}
    at, left = position, len(parse.tags)
    while at and left:
        if at != position and at + shift in nouns:
            return at + shift
        for label, head, dependent in parse.arcs:
            if head == at and label.startswith("nsubj") and dependent + shift in nouns:
                return dependent + shift
        at, left = heads.get(at, 0), left - 1
    return next((d + shift for _, head, d in parse.arcs if head == position and d + shift in nouns), None)
