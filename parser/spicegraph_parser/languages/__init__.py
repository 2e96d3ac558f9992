"""What the rules must know of a language: a table of words, by ``Language``'s fields. English is one of them.

The rules read dependencies, which Universal Dependencies write alike in every language, and only ask this table which
words are prepositions in one with an article, quantities, agents, pronouns and denials. A package registers others in
the entry-point group ``spicegraph.languages``: ``tables``, files by code; ``wording``, a function that rewrites a tree
for the rules; and ``lexicon``, a function that loads the words of a language.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spicegraph_parser.errors import InputError, expect

if TYPE_CHECKING:
    from collections.abc import Callable

Words = frozenset[str]
Phrases = frozenset[tuple[str, ...]]
Endings = tuple[tuple[str, str], ...]
Forms = Mapping[str, str]  # forms and their lemma; the table has the lemma in front: "bleu bleue bleus"


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language's table: lemmas in lower case."""

    code: str  # ISO 639-1, as spaCy names languages
    wordnet: str  # ISO 639-3, as the Open Multilingual Wordnet names them
    name: str
    have: str  # the relation of an owner to what it has
    copulas: Words  # "be"
    singular_pronouns: Words  # "he", "his"
    negations: Words  # "no", "not", "never"
    without: Words  # prepositions that deny their noun: "without"
    articles: Words = frozenset()
    light: Words = frozenset()  # verbs that say nothing where no rule uses them: "be", "have", "do"
    of: Words = frozenset()  # prepositions between a quantity and what there is so much of: "of"
    agents: Words = frozenset()  # prepositions in front of the one who acts: "by"
    quantities: Words = frozenset()  # nouns that say how much of something there is: "pair", "group"
    alternatives: Words = frozenset()  # coordinators that go on with a denial: "or", "nor"
    contractions: Mapping[str, str] = field(default_factory=dict)  # with an article in them, and what they are: du de
    phrases: Phrases = frozenset()  # prepositions of several words: "à côté de"
    progressives: Phrases = frozenset()  # in front of an infinitive that then is the verb: "en train de"
    names: Phrases = frozenset()  # nouns of several words: "planche de surf"
    partitive: Words = frozenset()  # written as a preposition, an article in front of an object: "du", "des"
    of_verbs: Words = frozenset()  # verbs behind which such a word is a preposition all the same: "jouer"
    # What small models often have wrong: forms of words that captions use, by class, and their lemmas.
    nouns: Forms = field(default_factory=dict)
    verbs: Forms = field(default_factory=dict)  # finite ones that are also written like a noun or an adjective
    participles: Forms = field(default_factory=dict)
    adjectives: Forms = field(default_factory=dict)
    prenominal: Words = frozenset()  # adjectives that stand in front of their noun
    lemmas: Mapping[str, str] = field(default_factory=dict)  # of forms of any class
    infinitives: tuple[str, ...] = ()  # endings: a verb's lemma with another one is wrong
    verb_endings: Mapping[str, str] = field(default_factory=dict)  # of forms, and of the infinitive in their place
    colours: Words = frozenset()  # attributes of SPICE's category of that name; none: those that WordNet knows as such
    counts: Words = frozenset()
    sizes: Words = frozenset()
    senses: Phrases = frozenset()  # words with the English ones whose synsets they have, in place of WordNet's for them
    prepositions: Phrases = frozenset()  # with the English ones that they are: "sur on"; of English "onto on"
    endings: Endings = ()  # of words that WordNet lacks: the ending, and what stands in its place

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return find_language, (self.code,)  # one table a process, also where parses go to others


def find_language(code: str) -> Language:
    """Return a language by its code of two letters or of three.

    Raises:
        InputError: it has no table; the message names those that have one.

    Example:
        >>> find_language("eng").code, find_language("fr").wordnet
        ('en', 'fra')
    """
    expect(code, str, "language", "a code such as fr")
    name = code.lower()
    if name in _ENGLISH:
        return ENGLISH
    tables = language_tables()
    if name not in tables:
        known = ", ".join(sorted({table.stem for table in tables.values()}))
        raise InputError(f"language: {code!r} is not known; known are {known}")
    return _read(tables[name])


@cache
def load_registered(part: str) -> Any:
    """Load a part of a package of languages: its ``tables``, ``wording`` or ``lexicon``; ``None`` without a package."""
    return next((point.load() for point in entry_points(group="spicegraph.languages", name=part)), None)


@cache
def language_tables() -> Mapping[str, Path]:
    """Return the file of each language's table, by every code that the language is asked for with."""
    return _ENGLISH | (load_registered("tables") or {})


@cache
def _read(table: Path) -> Language:
    lines: dict[str, str] = tomllib.loads(table.read_text(encoding="utf-8"))
    values = {field.name: _KINDS[field.type](lines[field.name]) for field in fields(Language) if field.name in lines}
    return Language(**values)


# From the text of a table's line to its value, by the type of its field.
_KINDS: Final[Mapping[Any, Callable[[str], Any]]] = {
    "str": str,
    "Words": lambda text: frozenset(text.split()),
    "Phrases": lambda text: frozenset(tuple(phrase.split()) for phrase in text.split(",")),
    "Endings": lambda text: tuple((end.strip("-"), "".join(rest)) for end, *rest in map(str.split, text.split(","))),
    "Mapping[str, str]": lambda text: dict(pair.split() for pair in text.split(",")),
    "Forms": lambda text: {form: row.split()[0] for row in text.split(",") for form in row.split()},
    "tuple[str, ...]": lambda text: tuple(text.split()),
}

_ENGLISH: Final = dict.fromkeys(("en", "eng"), Path(__file__).with_name("en.toml"))
ENGLISH: Final = _read(_ENGLISH["en"])
