"""Words of other languages: nltk's reader of WordNet, the tables of the Open Multilingual Wordnet, and what their lack says."""

from __future__ import annotations

import gc
import pickle
import random
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import nltk
import pytest
from nltk.corpus.reader import WordNetCorpusReader

from nltk_data import write_nltk_data
from spicegraph_languages.open_wordnet import load_open_lexicon
from spicegraph_parser import DataError, InputError, load_lexicon
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Iterator

FRENCH = {
    "chien": ["dog.n.01", "frank.n.02"],
    "canapé": ["sofa.n.01"],
    "divan": ["sofa.n.01"],
    "homme": ["person.n.01", "man.n.01"],
    "lunettes de soleil": ["sunglasses.n.01"],
    "blanc": ["white.a.01"],
    "manger": ["eat.v.01"],
}


def collect_readers() -> None:
    """Let nltk's readers go, which leave their files open."""
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one place where nltk looks for its data."""
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    load_open_lexicon.cache_clear()
    yield tmp_path
    load_open_lexicon.cache_clear()
    collect_readers()


def test_words_have_the_synsets_of_the_english_index(folder: Path) -> None:
    """By numbers that both share, so that words of two languages match."""
    write_nltk_data(folder, {"fra": FRENCH})
    english, french = load_lexicon(), load_lexicon("fr")
    assert french.concept("chien").shares(english.concept("dog"))
    assert french.concept("canapé").shares(french.concept("divan"))
    assert not french.exact_concept("canapé").shares(french.exact_concept("divan"))
    assert french.synsets("lunettes de soleil") <= english.synsets("sunglasses")
    assert french.synsets("blanc") <= english.synsets("white")
    assert french.synsets("manger") <= english.synsets("eat")
    assert french.concept("zzxq").synsets == frozenset()


def test_inflected_forms_and_corrected_senses(folder: Path) -> None:
    """A lemmatizer's mistakes are looked up by their endings; the language's table says what WordNet's has wrong."""
    write_nltk_data(folder, {"fra": FRENCH})
    french = load_lexicon("fra")
    assert french.synsets("chiens") == french.synsets("chien")
    assert french.synsets("blanches") == french.synsets("blanc")
    assert french.synsets("mangé") == french.synsets("manger")
    english = load_lexicon().synsets
    assert french.synsets("homme") == english("man") | english("male"), "and not person, which the table has"
    assert french.synsets("femmes") == english("woman") | english("female")


def test_it_is_loaded_once_travels_by_name_and_names_its_table(folder: Path) -> None:
    write_nltk_data(folder, {"fra": FRENCH, "ita": {"cane": ["dog.n.01"]}}, package="omw-1.4")
    french, italian = load_lexicon("fr"), load_lexicon("it")
    assert load_lexicon("FRA") is french
    assert pickle.loads(pickle.dumps(french)) is french
    assert french.signature.startswith("wordnet3.0-fra-")
    assert italian.signature.startswith("wordnet3.0-ita-")


def test_the_signature_is_that_of_the_table(folder: Path) -> None:
    write_nltk_data(folder, {"fra": FRENCH})
    signature = load_lexicon("fr").signature
    load_open_lexicon.cache_clear()
    collect_readers()
    assert load_lexicon("fr").signature == signature
    load_open_lexicon.cache_clear()
    collect_readers()
    shutil.rmtree(folder / "corpora")
    write_nltk_data(folder, {"fra": {"chien": ["dog.n.01"]}})
    assert load_lexicon("fr").signature != signature


@pytest.mark.parametrize("missing", ["wordnet", "omw-2.0"])
def test_missing_data_are_one_message_with_the_line_that_gets_them(folder: Path, missing: str) -> None:
    write_nltk_data(folder, {"fra": FRENCH})
    shutil.rmtree(folder / "corpora" / missing)
    with pytest.raises(DataError, match=rf"^words in French .* lack {missing}") as raised:
        load_lexicon("fr")
    assert str(raised.value).endswith("python -m nltk.downloader wordnet omw-2.0")


def test_a_language_without_a_table_is_refused(folder: Path) -> None:
    write_nltk_data(folder, {"fra": FRENCH})
    with pytest.raises(
        DataError, match=r"omw-2.0 has no wordnet for German \(deu; there are fra\); the metric spice-exact"
    ):
        load_lexicon("de")
    with pytest.raises(InputError, match="language: 'tlh' is not known"):
        load_lexicon("tlh")


DEBIAN = Path("/usr/share/wordnet")


@pytest.mark.slow
@pytest.mark.skipif(
    not (DEBIAN / "data.noun").exists(),
    reason="Debian's wordnet-base and wordnet-sense-index are not installed (.ci/programs)",
)
def test_the_bundled_english_index_against_nltks_wordnet(folder: Path) -> None:
    """It has all that nltk finds, and the base forms of a word whatever its part of speech: "running" is also the noun run.

    Of 2,000 words two lack something, both the index's own: a base form that is an exception ends its search.
    """
    place = folder / "corpora" / "wordnet"
    shutil.copytree(DEBIAN, place)
    (place / "lexnames").write_text("".join(f"{number:02d}\tname{number}\t1\n" for number in range(45)))
    with pytest.warns(UserWarning, match="multilingual"):
        wordnet = WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)
    assert wordnet.get_version() == "3.0"
    lexicon = load_lexicon()
    words = random.Random(0).sample([word for word in lexicon.words() if word.isalpha()], 2000)
    # Debian builds WordNet from its sources: synsets stand in the same order, some at other places of their files.
    bundled = {synset for word in lexicon.words() for synset in load_wordnet().senses(word)}
    number_of = {}
    for part, file in {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}.items():
        lines = (place / f"data.{file}").read_text("latin-1").splitlines()
        numbers = [int(line[:8]) for line in lines if not line.startswith(" ")]
        ours = sorted(synset.number for synset in bundled if synset.part == part)
        number_of |= {(part, number): other for number, other in zip(numbers, ours, strict=True)}
    same = more = less = 0
    for word in words:
        own = lexicon.synsets(word)
        found = [(synset.pos().replace("s", "a"), synset.offset()) for synset in wordnet.synsets(word)]
        theirs = {number_of[synset] for synset in found}
        same += own == theirs
        more += own > theirs
        less += not own >= theirs
    del wordnet
    collect_readers()
    assert (same, more, less) == (1861, 137, 2)
