"""Lemmas as SPICE's reference pipeline writes them, lower-cased: endings by rule, everything else by a table."""

# The reference changes plural nouns and verbs by their endings, right or wrong ("graffiti" as a plural becomes
# "graffitus"), and a few closed classes ("an" -> "a", "his" -> "he"). What the rules here get wrong is in the table,
# which ``training/lemma_table.py`` reads off the silver parses.

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

LEMMA_FILE: Final = "exceptions.json"  # of a pipeline's lemmatizer folder
_KEEPS_S: Final = re.compile(r"(?:ss|[^a]us|^.?.)$")
_DROPS_ES: Final = re.compile(r"(?:ss|sh|ch|x|zz|[^o]us|[^aeiou]o)es$")
_DOUBLED: Final = re.compile(r"([bdgmnprt])\1$")
# What stands before "ing" or "ed" had an "e" when it ends like "danc(e)", "bottl(e)", "curs(e)",
# "graduat(e)", "clos(e)", "rid(e)"; but not when it ends like "bring", "rain", "open", "visit", "dress".
_WANTED_E: Final = re.compile(
    r"(?:[^aeiou][bcdfgkpstz]l|[cvuz]|[rnl]s|ous|[aiou]s|[^aeiou]g|[iu]at"
    r"|(?:^|[^aeiou])[aiou][bcdgkmnprstz]|rang|[aeo]ng|[iu]r|[iuo]l)$"
)
_HAD_NO_E: Final = re.compile(
    r"(?:[^hla]ng|(?<![iu])[aeiou][aeiou][^csvzg]|en|er|it|on|or|op|et|el|al|il|oul|ss|zz|ck|tt)$"
)


def plural_lemma(form: str) -> str:
    """Return the singular of a lower-cased plural noun, by its ending."""
    if form.endswith("men"):
        return form[:-3] + "man"
    if form.endswith("i"):
        return form[:-1] + "us"
    if not form.endswith("s") or _KEEPS_S.search(form):
        return form
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    return form[:-2] if _DROPS_ES.search(form) else form[:-1]


def verb_lemma(form: str) -> str:
    """Return the base of a lower-cased verb, by its ending."""
    for ending, base in _VERB_ENDINGS:
        if form.endswith(ending) and any(letter in "aeiouy" for letter in form[: -len(ending)]):
            return base(form)
    return form


def _from_stem(stem: str) -> str:
    """Return a verb's base form from its stem before "ing" or "ed"."""
    if _DOUBLED.search(stem):
        return stem[:-1]
    if _HAD_NO_E.search(stem) or not _WANTED_E.search(stem):
        return stem
    return stem + "e"


_VERB_ENDINGS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("ing", lambda form: _from_stem(form[:-3])),
    ("ed", lambda form: form[:-3] + "y" if form.endswith("ied") else _from_stem(form[:-2])),
    ("s", lambda form: form if form.endswith("ss") else plural_lemma(form)),
)


def kind_of(tag: str) -> str:
    """Return the lemma class of a PTB tag: ``V`` for all verbs, else the tag."""
    return "V" if tag.startswith("V") else tag


def rule_lemma(form: str, kind: str) -> str:
    """Return the lemma of a lower-cased form by rule alone."""
    return plural_lemma(form) if kind == "NNS" else verb_lemma(form) if kind == "V" else form


@dataclass(frozen=True, slots=True)
class Lemmas:
    """Lemmas by form and tag; ``exceptions``: irregular lemmas by lemma class and form."""

    exceptions: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, folder: Path) -> Lemmas:
        """Read the table of a pipeline's folder."""
        try:
            return cls.decode((folder / "lemmatizer" / LEMMA_FILE).read_bytes())
        except OSError as error:
            raise DataError(f"the caption pipeline is damaged ({error}); install the package again") from error

    @classmethod
    def decode(cls, table: bytes) -> Lemmas:
        """Read a table, the contents of :data:`LEMMA_FILE`."""
        try:
            return cls(msgspec.json.decode(table, type=dict[str, dict[str, str]]))
        except msgspec.MsgspecError as error:
            raise DataError(f"the caption pipeline is damaged ({error}); install the package again") from error

    def lemma(self, form: str, tag: str) -> str:
        """Return the lower-cased lemma of a form with a PTB tag."""
        lower = form.lower()
        kind = kind_of(tag)
        known = self.exceptions.get(kind, {}).get(lower)
        return rule_lemma(lower, kind) if known is None else known


@lru_cache(maxsize=1)
def bundled_lemmas() -> Lemmas:
    """Return the table of the bundled pipeline; read once per process."""
    return Lemmas.read(pipeline_path())
