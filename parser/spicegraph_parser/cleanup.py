"""What happens between collapsing and the rules: quantifying phrases, then pronouns."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.parse import Edge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_parser.parse import Parse, Word

__all__ = ["RuleGraph", "Slot", "clean_up"]

Slot = tuple[str, tuple[int, ...]]
"""One slot of a fact: its string and the positions of its words in the caption, from 0."""

_NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})
_SINGULAR_NOUN_TAGS = frozenset({"NN", "NNP"})
_PRONOUN_TAGS = frozenset({"PRP", "PRP$"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SINGULAR_PRONOUNS = _words(
    "one he him his himself she her hers herself it its itself i me my mine myself",
)
# "a lot of trees": the noun after "of" is what the caption shows.
_QUANTIFYING_NOUNS = _words(
    """lot assortment number couple bunch handful litany sheaf slew dozen series variety multitude wad clutch
    wave mountain array spate string ton range plethora heap sort form kind type version bit pair triple
    total""",
)
_QUANTIFYING_PLURALS = _words(
    """lots many several plenty tons dozens multitudes mountains loads pairs tens hundreds thousands millions
    billions trillions""",
)
_QUANTIFYING_WORDS = _words(
    """some all both neither everyone nobody one two three four five six seven eight nine ten hundred thousand
    million billion trillion""",
)
_QUANTIFIERS = _QUANTIFYING_NOUNS | _QUANTIFYING_PLURALS | _QUANTIFYING_WORDS
_ARTICLES = frozenset({"a", "an"})
_PHRASE_INNER = frozenset({"amod", "det"})

_BY_POSITION = itemgetter(1, 2)  # head, then dependent


class RuleGraph(NamedTuple):
    """A cleaned dependency graph of one sentence, indexed for the rules. Positions count its words from 1.

    ``children`` maps a position to its outgoing edges in word order. ``families`` maps a relation without its
    subtype (``nmod`` for ``nmod:on``) to its edges, ordered by head, then dependent. ``slots`` holds every
    word's slot (the one of position 1 is ``slots[0]``), ``nouns`` those of the nouns (NN, NNS, NNP, NNPS) by
    position.
    """

    words: Sequence[Word]
    children: Mapping[int, Sequence[Edge]]
    families: Mapping[str, Sequence[Edge]]
    slots: Sequence[Slot]
    nouns: Mapping[int, Slot]

    def tag(self, position: int) -> str:
        """Return the PTB tag of the word at a position."""
        return self.words[position - 1].tag

    def slot(self, position: int) -> Slot:
        """Return the slot of the word at a position: its lemma and where it stands in the caption."""
        return self.slots[position - 1]

    def dependents(self, position: int, label: str) -> list[int]:
        """Return the positions that the given relation leads to, in word order."""
        return [edge.dependent for edge in self.children.get(position, ()) if edge.label == label]


def clean_up(parse: Parse, *, offset: int = 0) -> RuleGraph:
    """Return the graph of a collapsed parse on which the rules work.

    Args:
        parse: the sentence, with collapsed dependencies.
        offset: number of words of the caption in front of this sentence.
    """
    words = parse.words
    tags = [word.tag for word in words]
    edges = _promote_quantified(parse.edges, words)
    if not _PRONOUN_TAGS.isdisjoint(tags):
        edges = _resolve_pronouns(edges, words)
    children: dict[int, list[Edge]] = {}
    families: dict[str, list[Edge]] = {}
    for edge in sorted(edges, key=_BY_POSITION):
        label, head, _ = edge
        children.setdefault(head, []).append(edge)
        families.setdefault(label.partition(":")[0] if ":" in label else label, []).append(edge)
    slots = [(word.lemma, (position,)) for position, word in enumerate(words, start=offset)]
    nouns = {position: slots[position - 1] for position, tag in enumerate(tags, start=1) if tag in _NOUN_TAGS}
    return RuleGraph(words, children, families, slots, nouns)


def _promote_quantified(edges: Sequence[Edge], words: Sequence[Word]) -> Sequence[Edge]:
    """``a lot of trees`` -> det:qmod(trees, a): the governed noun takes the phrase's place.

    The head of the phrase keeps what else hangs on it, as in the reference.
    """
    cases = [
        edge
        for edge in edges
        if edge.label == "case"
        and words[edge.dependent - 1].form.lower() == "of"
        and _is_quantifier(words[edge.dependent - 2].form.lower())
    ]
    if not cases:
        return edges
    changed: list[Edge | None] = list(edges)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for index, edge in enumerate(edges):
        above.setdefault(edge.dependent, []).append(index)
        below.setdefault(edge.head, []).append(index)
    for _, governed, preposition in sorted(cases, key=itemgetter(2)):
        head = preposition - 1
        own = [(index, own_edge) for index in below.get(head, ()) if (own_edge := changed[index])]
        link = next((i for i, e in own if e.dependent == governed and e.label.startswith("nmod:")), None)
        if link is None:
            continue
        first = _quantifier_start(words, min([head, *(e.dependent for _, e in own)]), head, governed)
        if not first:
            continue
        for index, edge in own:
            if index == link or edge.label in _PHRASE_INNER:
                changed[index] = None
        for index in above.get(head, ()):
            moved = changed[index]
            if moved and moved.head != governed:
                changed[index] = Edge(moved.label, moved.head, governed)
                above.setdefault(governed, []).append(index)
        below.setdefault(governed, []).append(len(changed))
        changed.append(Edge("det:qmod", governed, first))
        changed += [Edge("mwe", first, position) for position in range(first + 1, head + 2)]
    return [edge for edge in changed if edge]


def _is_quantifier(form: str) -> bool:
    """Say whether a word in front of "of" can head a quantifying phrase."""
    return form in _QUANTIFIERS or form.removesuffix("s").isdigit()


def _quantifier_start(words: Sequence[Word], leftmost: int, head: int, governed: int) -> int:
    """Return where the quantifying phrase with the given head begins, or 0 if it is none.

    ``leftmost`` is the first word of the head and what hangs on it.
    """
    form = words[head - 1].form.lower()
    if form in _QUANTIFYING_NOUNS:
        first = head - 1
        while first > 0 and words[first - 1].tag.startswith("J"):
            first -= 1
        return first if first > 0 and words[first - 1].form.lower() in _ARTICLES else 0
    if form in _QUANTIFYING_WORDS or form.isdigit():
        after = words[head + 1].tag if head + 1 < len(words) else ""
        if after != "DT" and words[governed - 1].tag not in _PRONOUN_TAGS:
            return 0
    # The reference counts what stands in front of the head ("with lots") as the phrase's beginning.
    return leftmost


def _resolve_pronouns(edges: Sequence[Edge], words: Sequence[Word]) -> Sequence[Edge]:
    """``a man on his bike``: all edges of "his" move to "man"."""
    pronouns = [position for position, word in enumerate(words[1:], 2) if word.tag in _PRONOUN_TAGS]
    below: dict[int, list[int]] = {}
    for _, head, dependent in edges:
        below.setdefault(head, []).append(dependent)
    moved: dict[int, int] = {}
    antecedents: dict[bool, int] = {}
    for pronoun in pronouns:
        singular = words[pronoun - 1].lemma in _SINGULAR_PRONOUNS
        if singular not in antecedents:
            antecedents[singular] = _antecedent(below, moved, words, singular=singular)
        antecedent = antecedents[singular]
        if 0 < antecedent < pronoun:
            moved[pronoun] = antecedent
            below.setdefault(antecedent, []).extend(below.pop(pronoun, []))
            # The antecedent stays the first of its kind; the first of the other kind may be another noun now.
            antecedents = {singular: antecedent}
    return [Edge(label, moved.get(head, head), moved.get(dependent, dependent)) for label, head, dependent in edges]


def _antecedent(
    below: Mapping[int, Sequence[int]], moved: Mapping[int, int], words: Sequence[Word], *, singular: bool
) -> int:
    """Return the first noun of a breadth-first walk from the first root that agrees in number, or 0.

    ``below`` gives the dependents of every position, ``moved`` where resolved pronouns went.
    """
    accepted = _SINGULAR_NOUN_TAGS if singular else _NOUN_TAGS
    queue = sorted(moved.get(root, root) for root in below.get(0, ()))[:1]
    seen = {0, *queue}
    for position in queue:
        if words[position - 1].tag in accepted:
            return position
        for dependent in sorted(moved.get(child, child) for child in below.get(position, ())):
            if dependent not in seen:
                seen.add(dependent)
                queue.append(dependent)
    return 0
