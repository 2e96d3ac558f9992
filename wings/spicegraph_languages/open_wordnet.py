"""From a word of another language to its concept: the Open Multilingual Wordnet, through nltk's reader of WordNet.

The tables of that project give words of other languages the synsets of WordNet 3.0, by the numbers that the bundled
English index has: words of two languages match where they share one. nltk's data are not part of this package.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nltk.corpus.reader import CorpusReader, WordNetCorpusReader
from nltk.corpus.util import LazyCorpusLoader

from spicegraph_parser.errors import DataError
from spicegraph_parser.languages import Language, find_language
from spicegraph_parser.spice.index import Concept, load_index

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES: Final = ("omw-2.0", "omw-1.4")  # nltk's packages of tables; the first that is there counts
_DOWNLOAD: Final = f"python -m nltk.downloader wordnet {_TABLES[0]}"
_MISSING: Final = re.compile(r"nltk\.download\('([\w.-]+)'\)")  # in nltk's own message
_MEMORY: Final = 200_000  # words whose concept is kept


class _Synset(NamedTuple):
    """Synset by its number, with the methods that nltk's reader calls."""

    number: int
    part: str

    def pos(self) -> str:
        return self.part


class _Reader(WordNetCorpusReader):  # type: ignore[misc]  # nltk has no types
    """nltk's reader, with synsets by the numbers that stand in the tables: those of WordNet 3.0 as it was published.

    nltk would look each up in the WordNet that is installed. Debian's is built anew from the sources of 3.0: a third of
    the verbs' and half of the adjectives' numbers are others there, and nltk drops those rows.
    """

    def map_wn(self, version: str = "wordnet") -> None:
        """Take the tables' numbers as they are."""

    def of2ss(self, of: str) -> _Synset:
        """Return the synset of a table's id, such as ``02084071-n``."""
        return _Synset(int(of[:8]), of[-1])


class OpenLexicon:
    """The words of one language in the Open Multilingual Wordnet: a :class:`spicegraph_parser.spice.index.Synonyms`.

    A word that its table lacks, such as an inflected form, is looked up by the endings of the language; one whose
    senses the language corrects has the synsets of the English words that stand there.
    """

    __slots__ = ("_corrected", "_language", "_wordnet", "concept", "exact_concept", "signature")

    def __init__(self, language: Language, wordnet: Any, digest: str) -> None:
        self._language = language
        self._wordnet = wordnet
        self._corrected = {word.replace("_", " "): english for word, *english in language.senses}
        self.signature = f"wordnet3.0-{language.wordnet}-{digest}"
        # The concept of a lower-cased word or phrase, and the same without its synonyms.
        self.concept = lru_cache(maxsize=_MEMORY)(lambda phrase: Concept.of((phrase,), self.synsets(phrase)))
        self.exact_concept = lru_cache(maxsize=_MEMORY)(lambda phrase: Concept.of((phrase,), frozenset()))

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return load_open_lexicon, (self._language.code,)  # worker processes load their own copy

    def synsets(self, phrase: str) -> frozenset[int]:
        """Return the synset numbers of a word or phrase, or of the first of its base forms that has some."""
        return next(filter(None, map(self._found, self._forms(phrase.replace("’", "'")))), frozenset())

    def _forms(self, phrase: str) -> Iterator[str]:
        yield phrase
        for ending, other in self._language.endings:
            stem = phrase.removesuffix(ending)
            if len(stem) > 1 and (stem != phrase or not ending):
                yield stem + other

    def _found(self, phrase: str) -> frozenset[int]:
        if phrase in self._corrected:
            return frozenset[int]().union(*map(load_index().synsets, self._corrected[phrase]))
        found = self._wordnet.synsets(phrase.replace(" ", "_"), lang=self._language.wordnet)
        return frozenset(synset.number for synset in found)


def _tables() -> tuple[str, Any]:
    """Return the installed tables' package name and reader, or raise a LookupError."""
    packages = {name: LazyCorpusLoader(name, CorpusReader, r".*/wn-data-.*\.tab", encoding="utf8") for name in _TABLES}
    for package, tables in packages.items():
        with suppress(LookupError):
            tables.fileids()
            return package, tables
    raise LookupError(f"nltk.download('{_TABLES[0]}')")


@cache
def load_open_lexicon(code: str) -> OpenLexicon:
    """Return the lexicon of a language other than English, loaded once per process, as ``load_lexicon`` does."""
    language = find_language(code)
    try:
        package, tables = _tables()
        wordnet = LazyCorpusLoader("wordnet", _Reader, tables)
        wordnet.add_omw()
    except LookupError as error:
        missing = " and ".join(dict.fromkeys(_MISSING.findall(str(error))))
        raise DataError(
            f"words in {language.name} are looked up in nltk's data, which lack {missing}; get them with: {_DOWNLOAD}"
        ) from error
    folders = wordnet.provenances
    if language.wordnet not in folders:
        others = ", ".join(sorted(set(folders) - {"eng"}))
        raise DataError(
            f"{package} has no wordnet for {language.name} ({language.wordnet}; there are {others}); "
            "the metric spice-exact compares words without one"
        )
    with tables.open(f"{folders[language.wordnet]}/wn-data-{language.wordnet}.tab") as table:
        digest = hashlib.sha256(table.read().encode())
    digest.update(repr((sorted(language.senses), language.endings)).encode())
    wordnet.synsets("", lang=language.wordnet)  # reads the table
    return OpenLexicon(language, wordnet, digest.hexdigest()[:8])
