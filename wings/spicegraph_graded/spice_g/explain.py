"""Why a SPICE-G score is what it is: the best partner of every tuple, slot by slot, and changes that would raise it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from spicegraph_graded.spice_g.evidence import Change, GradedTuple
from spicegraph_graded.spice_g.facts import deny, values_of
from spicegraph_graded.spice_g.matching import NO_PARTNER, GradedMatch, Side
from spicegraph_graded.spice_g.texts import Likeness, Meaning, likeness
from spicegraph_graded.spice_g.verdicts import CONTRADICTED, SUPPORTED, Verdicts, judge
from spicegraph_parser.spice.rules import Fact
from spicegraph_scorer.core.metric import Statement

if TYPE_CHECKING:
    from spicegraph_api.v1.scores_pb2 import ItemResult
    from spicegraph_graded.spice_g.vectors import Rows, Vectors
    from spicegraph_parser.spice.graph import SceneTuple
    from spicegraph_parser.spice.index import Concept
    from spicegraph_scorer.core.results import Json

_HEAD: Final = {1: 0, 2: 1, 3: 1}  # the slot that a tuple adds, by its length


class GradedExplanation:
    """Why an item has its score."""

    def __init__(
        self,
        sides: tuple[tuple[GradedTuple, ...], tuple[GradedTuple, ...]],
        changes: tuple[Change, ...],
        match: GradedMatch,
        vectors: Vectors,
        meaning: Likeness | None = None,
    ) -> None:
        self.candidate, self.reference = sides  # the tuples, and what supports them
        self.meaning = meaning  # likeness of the texts as wholes; None where it does not count
        self.changes = changes  # the single changes that would raise the score most, the best first
        self.order = match.texts.order  # what it leaves of the scores, in (0, 1]; changes are for the same order
        self._judge = partial(judge, match, match.texts.candidate, vectors)

    @cached_property
    def verdicts(self) -> Verdicts:
        """Made when they are asked for: they take longer than all else but the changes."""
        return self._judge()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradedExplanation) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.candidate, self.reference, self.changes))

    def statements(self) -> Iterator[Statement]:
        """Yield the verdict on each of the candidate's tuples, once; of an unsupported object only it is wrong."""
        verdicts = {statement.words: statement.verdict for statement in self.verdicts.tuples}
        instead = {verdict.word: verdict.instead for verdict in self.verdicts.words if verdict.instead is not None}
        for graded in {each.words: each for each in self.candidate}.values():
            words, verdict = graded.words, verdicts[graded.words]
            is_wrong = verdict != SUPPORTED and (len(words) == 1 or _are_objects_supported(words, verdicts))
            other = next((instead[part] for part in _parts(words) if part in instead), None)
            if graded.denied_by is not None:
                other = self.reference[graded.denied_by].words[-1]
            yield Statement(words, is_wrong, verdict == CONTRADICTED, other if is_wrong else None)

    def add_to(self, result: ItemResult, metric: str, *, verdicts: bool) -> None:
        """Add the explanation to a result of the contract, with its verdicts where asked."""
        # Imported here: scores need no messages.
        from spicegraph_graded.messages import graded_message, verdicts_message  # noqa: PLC0415

        message = graded_message(metric, (self.candidate, self.reference), self.changes, self.order)
        if verdicts:
            message.verdicts.CopyFrom(verdicts_message(self.verdicts))
        result.graded_matches.append(message)

    def to_dict(self) -> dict[str, Json]:
        """Return JSON values, with the fields of the parts as keys."""
        return {
            "candidate": [asdict(graded) for graded in self.candidate],
            "reference": [asdict(graded) for graded in self.reference],
            "changes": [asdict(change) for change in self.changes],
            "verdicts": self.verdicts.to_dict(),
            "order": self.order,
            "meaning": None
            if self.meaning is None
            else {
                "value": self.meaning.value,
                "candidate": [list(share) for share in self.meaning.candidate],
                "reference": [list(share) for share in self.meaning.references],
            },
        }


def _are_objects_supported(words: tuple[str, ...], verdicts: Mapping[tuple[str, ...], str]) -> bool:
    objects = {(words[0],), (words[-1],)} if len(words) == 3 else {words[:1]}
    return all(verdicts.get(name, SUPPORTED) == SUPPORTED for name in objects)


def _parts(labels: Iterable[str]) -> Iterator[str]:
    """Yield the names in labels, each followed by its words."""
    for name in chain.from_iterable(label.split("/") for label in labels):
        yield name
        yield from name.split()


def explain_match(
    match: GradedMatch, vectors: Vectors, rescore: Rescore, *, meaning: Meaning | None = None, changes: int = 3
) -> GradedExplanation:
    """Explain a match by the tables that it was made with; ``rescore`` scores candidates of other facts."""
    both = chain(match.candidate.tuples, match.reference.tuples)
    rows = vectors.rows(concept.strings for scene_tuple in both for concept in scene_tuple.concepts)
    denials = list(_denials(match, rows))
    nobody = [None] * len(match.reference.tuples)
    sides = (
        tuple(_tuples(match.candidate, match.reference.tuples, rows, denials)),
        tuple(_tuples(match.reference, match.candidate.tuples, rows, nobody)),
    )
    best_changes = changes_of(match, denials, rescore)[:changes] if changes else ()
    texts = match.texts
    whole = None if meaning is None or texts.meaning is None else likeness(meaning, texts.candidate, texts.references)
    return GradedExplanation(sides, best_changes, match, vectors, whole)


def _denials(match: GradedMatch, rows: Rows) -> Iterator[int | None]:
    """Yield for each candidate tuple the reference attribute of the most similar object that excludes it, if any."""
    attributes = [
        (index, scene_tuple.concepts[0], values)
        for index, scene_tuple in enumerate(match.reference.tuples)
        if len(scene_tuple.concepts) == 2 and (values := values_of(scene_tuple.concepts[1].strings))
    ]
    for candidate, denied in zip(match.candidate.tuples, match.candidate.contradicted, strict=True):
        against = [
            (_alike(candidate.concepts[0], owner, rows), -index)
            for index, owner, values in attributes
            if denied and deny(values_of(candidate.concepts[1].strings), values)
        ]
        yield -max(against)[1] if against else None


def _tuples(
    side: Side, others: Sequence[SceneTuple], rows: Rows, denials: Sequence[int | None]
) -> Iterator[GradedTuple]:
    total = float(side.weights.sum())
    for index, scene_tuple in enumerate(side.tuples):
        partner, concepts = int(side.partner[index]), scene_tuple.concepts
        paired = partner != NO_PARTNER
        facing: list[Concept | None] = [None] * len(concepts)  # what the partner has in each slot
        if paired:
            held = others[partner].concepts
            if len(held) == len(concepts):
                facing = [*held]
            elif (len(concepts), len(held)) == (2, 1):  # both slots of an attribute are held against a plain object
                facing = [held[0], held[0]]
            else:
                facing[_HEAD[len(concepts)]] = held[_HEAD[len(held)]]
        yield GradedTuple(
            scene_tuple.strings,
            float(side.weights[index]) / total if total else 0.0,
            float(side.support[index]),
            partner if paired else None,
            tuple(None if b is None else _alike(a, b, rows) for a, b in zip(concepts, facing, strict=True)),
            denials[index],
        )


def _alike(first: Concept, second: Concept, rows: Rows) -> float:
    if first.strings == second.strings:
        return 1.0
    values, others = values_of(first.strings), values_of(second.strings)
    if deny(values, others):
        return 0.0
    if not values.isdisjoint(others):
        return 1.0
    first_vector, second_vector = (rows.vectors[rows.places[concept.strings]] for concept in (first, second))
    return min(max(float(first_vector @ second_vector), 0.0), 1.0)


Rescore = Callable[[Sequence[Sequence[Fact]]], Sequence[float]]  # The F1 of candidates of such facts.

_TRIED: Final = 6  # tuples of each side: those that cost the score most
_PAIRS: Final = 100_000  # of tuples of both sides, in all that is tried: texts of thousands of words have fewer tries
_SAME_OBJECT: Final = 0.5  # from this similarity on, an object of the references is taken for one of the candidate's
_LEAST: Final = 1e-9
_OBJECT_SLOTS: Final = {1: (0,), 2: (0,), 3: (0, 1)}  # of a fact: subject, object, relation


def _named(match: GradedMatch) -> dict[tuple[str, ...], str]:
    """Return the candidate's names for the references' objects, where it has them."""
    candidate, reference = match.candidate, match.reference
    named = {}
    for index in range(reference.nodes.sizes[0]):
        partner = int(reference.partner[index])
        if reference.support[index] >= _SAME_OBJECT and 0 <= partner < candidate.nodes.sizes[0]:
            named[reference.tuples[index].concepts[0].strings] = candidate.tuples[partner].concepts[0].strings[0]
    return named


def _can_replace(scene_tuple: SceneTuple, other: SceneTuple) -> bool:
    return len(other.concepts) == len(scene_tuple.concepts) and other.strings != scene_tuple.strings


def changes_of(match: GradedMatch, denials: Sequence[int | None], rescore: Rescore) -> tuple[Change, ...]:
    """Return score-raising changes, best first; ``denials``: each candidate tuple's contradicting reference tuple."""
    # Each is scored like any candidate, so that gains are exact; they do not add up. Tried are the tuples of both sides
    # that cost the score most, and for the candidate's, what the references have instead: fewer of very long texts.
    candidate, reference = match.candidate, match.reference
    facts, named = facts_of(candidate.tuples), _named(match)
    most = max(1, min(_TRIED, _PAIRS // max(1, len(candidate.tuples) * len(reference.tuples))))
    edits: dict[tuple[str, tuple[str, ...], tuple[str, ...] | None], list[Fact]] = {}  # the first fields of a change
    for index in (reference.weights * (1 - match.reference.support)).argsort(kind="stable")[::-1][:most]:
        added = _fact(reference.tuples[index], named)
        words = added.words
        edits["add", (words[0], words[2], words[1]) if len(words) == 3 else words, None] = [*facts, added]
    for index in (candidate.weights * (1 - match.candidate.support)).argsort(kind="stable")[::-1][:most]:
        dropped = candidate.tuples[index]
        edits["drop", dropped.strings, None] = list(_without(dropped, facts))
        denial = denials[index]
        instead = int(match.candidate.partner[index]) if denial is None else denial
        if instead != NO_PARTNER and _can_replace(dropped, other := reference.tuples[instead]):
            edits["replace", dropped.strings, other.strings] = list(_replaced(dropped, _fact(other, {}), facts))
    now, *scores = rescore([facts, *edits.values()])
    tried = [Change(*edit, score, score - now) for edit, score in zip(edits, scores, strict=True)]
    gaining = [change for change in tried if change.gain > _LEAST]
    return tuple(sorted(gaining, key=lambda change: (-change.gain, change.action, change.words)))


def facts_of(tuples: Iterable[SceneTuple]) -> list[Fact]:
    """Return the facts that a graph's tuples come from, each once."""
    return list(dict.fromkeys(fact for scene_tuple in tuples for _, fact in scene_tuple.evidence))


def _fact(scene_tuple: SceneTuple, named: dict[tuple[str, ...], str]) -> Fact:
    """Return a fact that says a tuple, of objects as the candidate calls them."""
    concepts = scene_tuple.concepts
    if len(concepts) == 3:
        concepts = (concepts[0], concepts[2], concepts[1])
    slots = _OBJECT_SLOTS[len(concepts)] if len(concepts) > 1 else ()
    words = [
        named.get(concept.strings, concept.strings[0]) if slot in slots else concept.strings[0]
        for slot, concept in enumerate(concepts)
    ]
    return Fact(tuple(words), "changed", ())


def _without(dropped: SceneTuple, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield the facts without a tuple; other objects that they name remain."""
    behind = {fact for _, fact in dropped.evidence}
    gone = frozenset(dropped.concepts[0].strings) if len(dropped.concepts) == 1 else frozenset[str]()
    for fact in facts:
        if fact not in behind:
            yield fact
        else:
            for slot in _OBJECT_SLOTS[len(fact.words)]:
                if fact.words[slot] not in gone:
                    yield Fact((fact.words[slot],), fact.rule, ())


def _replaced(old: SceneTuple, new: Fact, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield the facts with a tuple's word replaced; an object's word wherever the object stands."""
    behind = {fact for _, fact in old.evidence}
    if len(old.concepts) > 1:
        for fact in facts:
            yield Fact((*fact.words[:-1], new.words[-1]), fact.rule, ()) if fact in behind else fact
        return
    strings = frozenset(old.concepts[0].strings)
    for fact in facts:
        slots = _OBJECT_SLOTS[len(fact.words)]
        words = [new.words[0] if slot in slots and word in strings else word for slot, word in enumerate(fact.words)]
        yield Fact(tuple(words), fact.rule, ()) if fact in behind else fact
