"""The categories that SPICE scores beside the total, as a table, and those of the user's own, from a TOML file."""
# To add a category of SPICE's: a word list, a line in ``CATEGORIES``, a test case.

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import InputError, expect, expect_list
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import load_wordnet
from spicegraph_scorer.core.categories import ALL, Category

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


COLORS = word_set(
    """black brown blue red yellow pink gray grey green dark light white cream orange purple maroon beige
    violet"""
)  # The attribute words that SPICE 1.0 counts as colours.

NUMERALS = word_set("one two three four five six seven eight nine ten")  # What SPICE 1.0 counts as counts.
DIGITS = word_set("1 2 3 4 5 6 7 8 9 10")  # The same numbers, which SPICE 1.0 matches and does not count.

SIZES = word_set(
    """baby beefy big bony boundless brawny broad colossal compact corpulent curvy elfin emaciated endless
    enormous epic expansive extensive fat fleshy full-size gargantuan gaunt giant gigantic grand great
    heavy hefty huge hulking illimitable immeasurable infinitesimal lanky large lean limitless little
    mammoth massive meager measly microscopic mini miniature minuscule narrow obese outsized oversize
    overweight paltry petite pint-size plump pocket-size portly pudgy puny rotund scanty scraggy scrawny
    short sizable skeletal skimpy skinny slim small squat stocky strapping sturdy tall teensy teeny
    teeny-tiny teeny-weeny thick thickset thin tiny titanic towering trifling trim tubby undersized
    underweight unlimited vast wee whopping wide"""
)  # The attribute words that SPICE 1.0 counts as sizes.

CATEGORIES: Mapping[str, Category] = {
    "Relation": Category(3),
    "Cardinality": Category(2, NUMERALS),
    "Attribute": Category(2),
    "Size": Category(2, SIZES),
    "Color": Category(2, COLORS),
    "Object": Category(1),
}  # Every category beside ``All``, in the order in which SPICE 1.0 prints them.

KINDS: Mapping[str, tuple[int, str]] = {"object": (1, "n"), "attribute": (2, "a"), "relation": (3, "v")}
"""What a category is made of: the length of its tuples, and the part of speech of its words in WordNet."""

MOST_CATEGORIES = 50
MOST_WORDS = 10_000
MOST_ROOTS = 100
LONGEST_NAME = 60
LONGEST_WORD = 200


@dataclass(frozen=True, slots=True)
class CategoryDefinition:
    """A category as its user writes it."""

    name: str  # its key in every result; 1 to 60 printable characters, none of SPICE's own names
    kind: str = "object"  # object, attribute or relation
    words: tuple[str, ...] = ()  # lower- or upper-case words and phrases
    subtree: tuple[
        str, ...
    ] = ()  # synsets (animal.n.01) or words of WordNet 3.0; what has first a sense of these kinds belongs
    synonyms: bool = False  # the words' synonyms belong, too


def make_categories(definitions: Sequence[CategoryDefinition]) -> dict[str, Category]:
    """Return SPICE's categories, and behind them the defined ones; an InputError names every fault.

    >>> list(make_categories([CategoryDefinition("Pet", words=("dog", "cat"))]))[-1]
    'Pet'
    """
    expect_list(definitions, "definitions", "a list of CategoryDefinition")
    for index, given in enumerate(definitions):
        expect(given, CategoryDefinition, f"definitions[{index}]", "a CategoryDefinition")
    faults = [
        f"category {definitions[index].name[:LONGEST_NAME]!a}: {field}: {reason}"
        for index, field, reason in category_faults(definitions)
    ]
    if faults:
        raise InputError("\n".join(faults))
    categories = dict(CATEGORIES)
    for definition in definitions:
        length, part = KINDS[definition.kind]
        words = {" ".join(word.lower().split()) for word in definition.words}
        keys: set[str | int] = set(words)
        if definition.synonyms:
            keys.update(*map(load_lexicon().synsets, words))
        roots = {load_wordnet().find(name, part) for name in definition.subtree}
        categories[definition.name] = Category(length, keys=frozenset(keys), roots=tuple(sorted(roots)))
    return categories


def category_faults(definitions: Sequence[CategoryDefinition]) -> Iterator[tuple[int, str, str]]:
    """Yield everything that is wrong with definitions: which of them, the field, and the reason."""
    if len(definitions) > MOST_CATEGORIES:
        yield MOST_CATEGORIES, "name", f"is one of {len(definitions)} categories, at most {MOST_CATEGORIES} are allowed"
        return
    taken = {ALL, *CATEGORIES}
    for index, definition in enumerate(definitions):
        for field, reason in _faults(definition, taken):
            yield index, field, reason
        taken.add(definition.name)


def _faults(definition: CategoryDefinition, taken: set[str]) -> Iterator[tuple[str, str]]:
    name = definition.name
    if not _is_name(name):
        yield "name", f"is not 1 to {LONGEST_NAME} printable characters without spaces around"
    if name in taken:
        yield "name", "is taken"
    if definition.kind not in KINDS:
        yield "kind", f"is {definition.kind!a}, expected one of {', '.join(KINDS)}"
    if not definition.words and not definition.subtree:
        yield "words", "is empty, and there is no subtree"
    for field, values, most in (("words", definition.words, MOST_WORDS), ("subtree", definition.subtree, MOST_ROOTS)):
        if len(values) > most:
            yield field, f"has {len(values)} entries, at most {most} are allowed"
            continue
        part_of_speech = KINDS[definition.kind][1] if field == "subtree" and definition.kind in KINDS else None
        for index, value in enumerate(values):
            if reason := _value_fault(value, part_of_speech):
                yield f"{field}[{index}]", reason


def _value_fault(value: str, part_of_speech: str | None) -> str:
    """Return what is wrong with a word, or with the name of a synset of a part of speech; nothing if it is sound."""
    if not value.strip() or len(value) > LONGEST_WORD:
        return f"is empty, or longer than {LONGEST_WORD} characters"
    if part_of_speech is not None:
        try:
            load_wordnet().find(value, part_of_speech)
        except InputError as error:
            return str(error)
    return ""


def _is_name(name: str) -> bool:
    return bool(name.strip()) and name == name.strip() and name.isprintable() and len(name) <= LONGEST_NAME


_SHAPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "kind": (str, "a string"),
    "words": (list, "a list of strings"),
    "subtree": ((str, list), "a string or a list of strings"),
    "synonyms": (bool, "true or false"),
}  # The keys of a category in a file, which are the fields of its definition: what they must hold, and that in words.


def _entry_faults(table: object) -> Iterator[str]:
    """Yield what is wrong with the shape of a category: its keys, and the kinds of their values."""
    if not isinstance(table, dict):
        yield "is not a table: expected [NAME] with words or subtree under it"
        return
    for key, value in table.items():
        if key not in _SHAPES:
            yield f"there is no key {key!a}; the keys are {', '.join(_SHAPES)}"
            continue
        types, expected = _SHAPES[key]
        if not isinstance(value, types) or (isinstance(value, list) and not all(isinstance(v, str) for v in value)):
            yield f"{key}: expected {expected}"


def read_categories(path: str) -> dict[str, Category]:
    """Read categories from a TOML file: SPICE's own, and behind them the file's; an InputError names every fault."""
    return make_categories(read_definitions(path))


def read_definitions(path: str) -> tuple[CategoryDefinition, ...]:
    """Read the definitions of a TOML file, as :func:`read_categories` makes them."""
    expect(path, (str, PathLike), "categories", "the path of a file")
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    if not tables:
        raise InputError(f"{path}: contains no category")
    definitions, faults = [], []
    for name, table in tables.items():
        wrong = list(_entry_faults(table))
        faults += [f"category {name!a}: {fault}" for fault in wrong]
        if not wrong:
            subtree = table.get("subtree", ())
            roots = (subtree,) if isinstance(subtree, str) else tuple(subtree)
            given = table.get("kind", "object"), tuple(table.get("words", ())), roots, table.get("synonyms", False)
            definitions.append(CategoryDefinition(name, *given))
    try:
        make_categories(definitions)
    except InputError as error:
        faults += str(error).split("\n")
    if faults:
        raise InputError("\n".join(f"{path}: {fault}" for fault in faults))
    return tuple(definitions)


def categories_digest(categories: Mapping[str, Category]) -> str | None:
    """Return names and hashes of the categories of the user's own, however these were written; ``None`` without any."""
    defined = sorted((name, category) for name, category in categories.items() if CATEGORIES.get(name) != category)
    if not defined:
        return None
    rows = [
        (name, category.length, sorted(map(str, category.keys or ())), category.roots) for name, category in defined
    ]
    digest = hashlib.sha256(msgspec.json.encode(rows)).hexdigest()[:8]
    return "+".join(name for name, _ in defined) + "," + digest
