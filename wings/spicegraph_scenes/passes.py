"""The passes over a sentence that the network has read, in their order: each treats one construction.

A pass is a function of a sentence that returns it with what it decides, and knows of no other pass; its docstring has a
caption, what comes in and what goes out. ``spicegraph parse --graph-style scene --trace`` prints what each of them
changed, and ``training/scenes.md`` has what each brings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.spice.loose import PHRASE_RULE, PREPOSITION_RULE, SCENE_RULE, WORDING_RULE
from spicegraph_scenes import clauses, phrases
from spicegraph_scenes.sentence import said_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from spicegraph_scenes.network import Labels
    from spicegraph_scenes.sentence import Rules, Sentence


class Pass(NamedTuple):
    """A pass: what it does, the rule of the facts that it adds, and of which texts it reads sentences."""

    treat: Callable[[Sentence], Sentence]
    rule: str = PHRASE_RULE
    of_captions: bool = True
    of_descriptions: bool = True

    @property
    def name(self) -> str:
        """The name of the construction."""
        return self.treat.__name__


PASSES: Final = (
    Pass(clauses.not_seen, WORDING_RULE),
    Pass(phrases.verbs_behind_nouns),
    Pass(phrases.noun_phrases),
    Pass(phrases.inside_of_prepositions),
    Pass(phrases.unknown_phrases, of_descriptions=False),
    Pass(phrases.between_phrases, of_descriptions=False),
    Pass(phrases.pictures, of_descriptions=False),
    Pass(phrases.amounts, of_descriptions=False),
    Pass(phrases.apart_from_names),
    Pass(phrases.own_prepositions, PREPOSITION_RULE),
    Pass(clauses.reciprocals, of_descriptions=False),
    Pass(clauses.comparisons, of_descriptions=False),
    Pass(clauses.of_others),
    Pass(clauses.apart_clauses, of_descriptions=False),
    Pass(clauses.main_verbs, of_descriptions=False),
    Pass(clauses.instruments, of_descriptions=False),
    Pass(phrases.shared_adjectives, WORDING_RULE, of_captions=False),
    Pass(clauses.denied_modifiers, WORDING_RULE),
    Pass(clauses.denied_objects, WORDING_RULE),
)
"""All passes; the order decides, as each sees what those before it decided."""


class Change(NamedTuple):
    """What a pass changed of a sentence: what it took away and what it added, as ``sentence.shown`` puts it."""

    name: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each row that was taken away or added."""
        for sign, rows in (("-", self.removed), ("+", self.added)):
            yield from (f"  {self.name}: {sign} {row}" for row in rows)


def run(sentence: Sentence, without: Collection[str] = ()) -> tuple[Sentence, Rules]:
    """Return what the passes make of a sentence, and which rule said what; ``without``: names of passes left out."""
    rules = dict.fromkeys(_rows(sentence.labels), SCENE_RULE)
    for before, own, after in _steps(sentence, without):
        if after.labels is not before.labels:
            for row in _rows(after.labels):
                rules.setdefault(row, own.rule)
        sentence = after
    return sentence, rules


def changes(sentence: Sentence) -> Iterator[Change]:
    """Yield what each pass changes of a sentence, in order, those that change nothing left out."""
    for before, own, after in _steps(sentence):
        old, new = list(shown(before)), list(shown(after))
        removed, added = (
            tuple([row for row in rows if row not in others]) for rows, others in ((old, new), (new, old))
        )
        if removed or added:
            yield Change(own.name, removed, added)


def _steps(sentence: Sentence, without: Collection[str] = ()) -> Iterator[tuple[Sentence, Pass, Sentence]]:
    for own in PASSES:
        is_on = own.of_captions if sentence.is_alone else own.of_descriptions
        if is_on and not (without and own.name in without):
            after = own.treat(sentence)
            yield sentence, own, after
            sentence = after


def _rows(labels: Labels) -> set[object]:
    """Return the words, pairs and relations of which labels say something, faintly or not."""
    own = {*said_of(labels), *labels.attributes, *labels.relations}
    return own | _rows(labels.faint) if labels.faint else own
