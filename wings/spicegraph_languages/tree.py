"""A sentence's tree with its words, as the passes change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.fronts.tree import Columns, Tree

if TYPE_CHECKING:
    from spicegraph_parser.languages import Language
    from spicegraph_parser.spice.parse import Arc

NOMINAL: Final = frozenset({"NOUN", "PROPN", "PRON", "NUM", "SYM", "X"})
NAMING: Final = frozenset({"NOUN", "PROPN"})
VERBAL: Final = frozenset({"VERB", "AUX"})
OBLIQUE: Final = frozenset({"obl", "obl:arg", "obl:mod", "obl:agent", "obl:tmod", "nmod", "dep", "iobj"})
OBJECTS: Final = frozenset({"obj", "iobj"})
SUBJECTS: Final = ("nsubj", "nsubj:pass", "csubj", "csubj:pass", "expl:subj")
SILENT: Final = "punct"  # the label of a word that another word speaks for


class Sentence(Tree):
    """A tree with the words of its positions; ``further`` are arcs beside those of the tree."""

    def __init__(self, columns: Columns, language: Language) -> None:
        super().__init__(columns.heads, columns.labels)
        self.size = len(columns.forms)
        self.forms = ["", *map(str.lower, columns.forms)]
        self.lemmas = ["", *map(str.lower, columns.lemmas)]
        self.universal = ["", *columns.universal]
        self.features = ["", *columns.features]
        self.language = language
        self.further: list[Arc] = []

    def has(self, position: int, feature: str) -> bool:
        """Say whether a word has a feature: Number=Plur."""
        return f"|{feature}|" in f"|{self.features[position]}|"

    def feature(self, position: int, name: str) -> str:
        """Return the value of a word's feature, or nothing."""
        _, found, value = f"|{self.features[position]}".partition(f"|{name}=")
        return value.partition("|")[0] if found else ""

    def silence(self, position: int, head: int) -> None:
        """Let another word speak for one, with all that hangs on it."""
        for child in self.children(position):
            if child != head:
                self.attach(child, head, self.labels[child])
        self.attach(position, head, SILENT)
        self.universal[position], self.features[position] = "PUNCT", "_"

    def case(self, position: int) -> int:
        """Return a noun's first preposition, or 0."""
        cases = self.children(position, "case")
        return cases[0] if cases else 0

    def is_oblique(self, position: int) -> bool:
        """Say whether a word is a noun that a preposition may bind to its head."""
        return self.labels[position] in OBLIQUE and self.universal[position] in NOMINAL

    def subject(self, position: int) -> int:
        """Return a predicate's subject, or 0."""
        own = self.children(position, *SUBJECTS)
        own += [word for label, head, word in self.further if (label, head) == ("nsubj", position)]
        return own[0] if own else 0

    def is_adjective(self, position: int) -> bool:
        """Say whether a word is surely an adjective: one of the table's, or a predicate."""
        return self.forms[position] in self.language.adjectives or bool(self.children(position, "cop"))

    def is_participle(self, position: int) -> bool:
        """Say whether a word is a verb without a person."""
        return self.universal[position] == "VERB" and not self.has(position, "VerbForm=Fin")

    def is_below(self, position: int, ancestor: int) -> bool:
        """Say whether a word is another one, or stands somewhere below it."""
        seen = set()
        while position and position not in seen:
            if position == ancestor:
                return True
            seen.add(position)
            position = self.heads[position]
        return False
