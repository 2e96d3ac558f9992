"""What happens between collapsing and the rules: quantifying phrases, then pronouns."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.spice.collapse import TABLE_SIZE, original, table_place
from spicegraph_parser.spice.parse import Arc, Parse, word_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from spicegraph_parser.languages import Language

Slot = tuple[str, tuple[int, ...]]  # one slot of a fact: its string, and its words' positions in the caption, from 0

_NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})
_PRONOUN_TAGS = frozenset({"PRP", "PRP$"})
_NAMING_TAGS = _NOUN_TAGS | _PRONOUN_TAGS
# "a lot of trees": the noun after "of" is what the caption shows.
_QUANTIFYING_NOUNS = word_set(
    """lot assortment number couple bunch handful litany sheaf slew dozen series variety multitude wad clutch
    wave mountain array spate string ton range plethora heap sort form kind type version bit pair triple
    total"""
)
_QUANTIFYING_PLURALS = word_set(
    """lots many several plenty tons dozens multitudes mountains loads pairs tens hundreds thousands millions
    billions trillions"""
)
_QUANTIFYING_WORDS = word_set(
    """some all both neither everyone nobody one two three four five six seven eight nine ten hundred thousand
    million billion trillion"""
)
_QUANTIFIERS = _QUANTIFYING_NOUNS | _QUANTIFYING_PLURALS | _QUANTIFYING_WORDS
_OWN = frozenset({"amod", "det"})  # what goes with a phrase that quantifies
_OWN_AND_SUBJECT = _OWN | {"nsubj"}

_HEAD, _DEPENDENT = itemgetter(1), itemgetter(2)
# The places of words, one each, shared by all captions: millions of facts hold them.
_PLACES = tuple((position,) for position in range(256))


class RuleGraph(NamedTuple):
    """A cleaned dependency graph of one sentence, indexed for the rules; positions count its words from 1."""

    forms: Sequence[str]  # of position 1: forms[0]; in other languages than English their names
    tags: Sequence[str]
    children: Mapping[int, Sequence[Arc]]  # a position's outgoing arcs, in the order of ``table_place``
    families: Mapping[str, Sequence[Arc]]  # by relation without subtype ("nmod" for "nmod:on"), by head, then dependent
    slots: Sequence[Slot]  # every word's
    nouns: Mapping[int, Slot]  # those of nouns (NN, NNS, NNP, NNPS), by position
    language: Language

    def slot(self, position: int) -> Slot:
        """Return the slot of the word at a position: its lemma and where it stands in the caption."""
        return self.slots[position - 1]

    def dependents(self, position: int, label: str) -> list[int]:
        """Return the positions that the given relation leads to, in the reference's order."""
        return [dependent for below_label, _, dependent in self.children.get(position, ()) if below_label == label]


def _sort_as_table(children: dict[int, list[Arc]], size: int, sentence: int) -> None:
    """Sort each word's dependents into the reference's order, in place."""
    for head, below in children.items():
        if len(below) > 1:
            order = [(table_place(original(arc[2], size), sentence), rank) for rank, arc in enumerate(below)]
            children[head] = [below[rank] for _, rank in sorted(order)]


def clean_up(parse: Parse, *, offset: int = 0, sentence: int = 0) -> RuleGraph:
    """Return the graph on which the rules work of a collapsed parse; ``offset``: the caption's words in front of it."""
    forms, tags, lemmas = parse.names, parse.tags, parse.lemmas
    size = len(forms)
    end = offset + size
    places: Sequence[tuple[int, ...]] = (
        _PLACES[offset:end] if end <= len(_PLACES) else [(p,) for p in range(offset, end)]
    )
    slots = list(zip(lemmas, places, strict=True))
    present: Collection[int] = ()
    last = max(map(_DEPENDENT, parse.arcs), default=0)
    if last > size:  # words have copies, which stand for the same places
        present = {*range(1, size + 1), *map(_DEPENDENT, parse.arcs)}
        repeats = -(-last // size)
        forms, tags, slots = forms * repeats, tags * repeats, slots * repeats
    arcs = _promote_quantified(parse.arcs, forms, tags)
    if not _PRONOUN_TAGS.isdisjoint(parse.tags):
        pronouns = [position for position, tag in enumerate(parse.tags[1:], 2) if tag in _PRONOUN_TAGS]
        arcs = _resolve_pronouns(arcs, pronouns, tags, parse)
    children, families = _indexed(arcs)
    if sentence or size >= TABLE_SIZE:
        _sort_as_table(children, size, sentence)
    nouns = {
        position: slots[position - 1]
        for position, tag in enumerate(tags, start=1)
        if tag in _NOUN_TAGS and (last <= size or position in present)
    }
    return RuleGraph(forms, tags, children, families, slots, nouns, parse.language)


def _indexed(arcs: Iterable[Arc]) -> tuple[dict[int, list[Arc]], dict[str, list[Arc]]]:
    """Return arcs by their heads, and by their relations without subtype, in the order of heads and dependents."""
    children: dict[int, list[Arc]] = {}
    families: dict[str, list[Arc]] = {}
    ordered = sorted(arcs, key=_DEPENDENT)
    ordered.sort(key=_HEAD)  # two sorts by numbers are faster than one by pairs
    of_head: list[Arc] = []
    last_head = -1
    for arc in ordered:
        label, head, _ = arc
        if head != last_head:
            children[head] = of_head = []
            last_head = head
        of_head.append(arc)
        if ":" in label:
            label = label.partition(":")[0]  # the family
        if label in families:
            families[label].append(arc)
        else:
            families[label] = [arc]
    return children, families


def _promote_quantified(arcs: Sequence[Arc], forms: Sequence[str], tags: Sequence[str]) -> Sequence[Arc]:
    """``a lot of trees`` -> det:qmod(trees, a): the governed noun takes the phrase's place."""
    cases = [
        (preposition, governed)
        for label, governed, preposition in arcs
        if label == "case" and tags[governed - 1] in _NAMING_TAGS and _follows_quantity(forms, preposition)
    ]
    if not cases:
        return arcs
    promoted = _Promotion(arcs, forms, tags)
    for preposition, governed in sorted(cases, key=itemgetter(0)):
        promoted.promote(preposition - 1, governed)
    return [arc for arc in promoted.arcs if arc]


def _follows_quantity(forms: Sequence[str], preposition: int) -> bool:
    word = forms[preposition - 2].lower()
    is_quantity = word in _QUANTIFIERS or word.removesuffix("s").isdigit()
    return is_quantity and forms[preposition - 1].lower() == "of"


class _Promotion:
    """The arcs of a sentence while nouns take the places of the phrases that quantify them."""

    def __init__(self, arcs: Sequence[Arc], forms: Sequence[str], tags: Sequence[str]) -> None:
        self.arcs: list[Arc | None] = list(arcs)
        self._forms, self._tags = forms, tags
        self._above: dict[int, list[int]] = {}
        self._below: dict[int, list[int]] = {}
        for index, (_, upper, lower) in enumerate(arcs):
            self._above.setdefault(lower, []).append(index)
            self._below.setdefault(upper, []).append(index)

    def promote(self, head: int, governed: int) -> None:
        """Let a governed noun replace its phrase's head, which keeps its other dependents."""
        below = [(index, arc) for index in self._below.get(head, ()) if (arc := self.arcs[index])]
        link = next((i for i, (label, _, end) in below if end == governed and label.startswith("nmod:")), None)
        if link is None:
            return
        first = _quantifier_start(self._forms, self._tags, [arc for _, arc in below], head, governed)
        if not first:
            return
        is_noun = self._forms[head - 1].lower() in _QUANTIFYING_NOUNS
        own = _OWN if is_noun else _OWN_AND_SUBJECT
        for index, (label, _, end) in below:
            if index == link or (end < head and label in own):
                self.arcs[index] = None
        self._move_incoming(head, governed)
        self._below.setdefault(governed, []).append(len(self.arcs))
        self.arcs.append(("det:qmod", governed, first))
        self.arcs += [("mwe", first, position) for position in range(first + 1, head + 2)]

    def _move_incoming(self, head: int, governed: int) -> None:
        """Let the arc of the head's first governor lead to the governed noun; the others go."""
        above = ((index, self.arcs[index]) for index in self._above.get(head, ()))
        incoming = sorted((arc[1], index, arc[0]) for index, arc in above if arc and arc[1] != governed)
        for upper, index, label in incoming[:1]:
            self.arcs[index] = label, upper, governed
            self._above.setdefault(governed, []).append(index)
        for _, index, _ in incoming[1:]:
            self.arcs[index] = None


def _quantifier_start(
    forms: Sequence[str], tags: Sequence[str], arcs_below: Sequence[Arc], head: int, governed: int
) -> int:
    """Return where the quantifying phrase with the given head begins, or 0 if it is not one."""
    form = forms[head - 1].lower()
    if form in _QUANTIFYING_NOUNS:
        articles = [
            end
            for label, _, end in arcs_below
            if label == "det" and end < head and forms[end - 1].lower() in {"a", "an"}
        ]
        return min(articles, default=0)
    if form in _QUANTIFYING_WORDS or form.isdigit():
        after = tags[head + 1] if head + 1 < len(tags) else ""
        if after != "DT" and tags[governed - 1] not in _PRONOUN_TAGS:
            return 0
    # The reference counts what stands in front of the head ("with lots") as the phrase's beginning.
    return min([head, *(end for _, _, end in arcs_below)])


def _resolve_pronouns(arcs: Sequence[Arc], pronouns: Iterable[int], tags: Sequence[str], parse: Parse) -> Sequence[Arc]:
    """``a man on his bike``: all arcs of "his" move to "man"."""
    below: dict[int, list[int]] = {}
    for _, head, dependent in arcs:
        below.setdefault(head, []).append(dependent)
    moved: dict[int, int] = {}
    antecedents: dict[bool, int] = {}
    for pronoun in pronouns:
        singular = parse.lemmas[pronoun - 1] in parse.language.singular_pronouns
        if singular not in antecedents:
            antecedents[singular] = _antecedent(below, moved, tags, singular=singular)
        antecedent = antecedents[singular]
        if 0 < antecedent < pronoun:
            moved[pronoun] = antecedent
            below.setdefault(antecedent, []).extend(below.pop(pronoun, []))
            # The antecedent stays the first of its kind; the first of the other kind may be another noun now.
            antecedents = {singular: antecedent}
    return [(label, moved.get(head, head), moved.get(dependent, dependent)) for label, head, dependent in arcs]


def _antecedent(
    below: Mapping[int, Sequence[int]], moved: Mapping[int, int], tags: Sequence[str], *, singular: bool
) -> int:
    """Return the first noun of a breadth-first walk from the first root that agrees in number, or 0."""
    accepted = {"NN", "NNP"} if singular else _NOUN_TAGS
    queue = sorted(moved.get(root, root) for root in below.get(0, ()))[:1]
    seen = {0, *queue}
    for position in queue:
        if tags[position - 1] in accepted:
            return position
        for dependent in sorted(moved.get(child, child) for child in below.get(position, ())):
            if dependent not in seen:
                seen.add(dependent)
                queue.append(dependent)
    return 0
