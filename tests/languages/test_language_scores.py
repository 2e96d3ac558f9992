"""SPICE in French, and French candidates against English references: words, categories, signatures, and what is refused."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import nltk
import pytest

from nltk_data import write_nltk_data
from spicegraph_languages.open_wordnet import load_open_lexicon
from spicegraph_parser import Fact, InputError, load_lexicon
from spicegraph_parser.spice.shared import load_shared
from spicegraph_scorer import Item, score
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.metrics.spice.languages import categories_in
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.readers.checks import notes_on
from wings import needs_graded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_scorer import Result

FACTS = {
    "un chien brun sur un canapé": [("chien", "brun"), ("chien", "canapé", "sur"), ("chien",), ("canapé",)],
    "un chien rouge sur un divan": [("chien", "rouge"), ("chien", "divan", "sur"), ("chien",), ("divan",)],
    "deux chiens": [("chien", "deux"), ("chien",)],
}
FRENCH = FunctionSource.of_table("table", {text: tuple(Fact(w, "x", ()) for w in rows) for text, rows in FACTS.items()})
BROWN, RED, TWO = FACTS


def _values(result: Result) -> dict[str, float | None]:
    return {score.name: score.value for score in result.runs[0].scores}


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """French words that the tests use, in the one place where nltk looks for its data."""
    folder = tmp_path_factory.mktemp("nltk_data")
    words = {"chien": ["dog.n.01"], "canapé": ["sofa.n.01"], "divan": ["sofa.n.01"], "courir": ["run.v.01"]}
    write_nltk_data(folder, {"fra": words})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nltk.data, "path", [str(folder)])
        load_open_lexicon.cache_clear()
        load_shared.cache_clear()
        yield
    load_open_lexicon.cache_clear()
    load_shared.cache_clear()
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        import gc

        gc.collect()


def test_synonyms_of_the_language_match() -> None:
    items = [Item(1, BROWN, (RED,))]
    result = score(items, ["spice", "spice-exact"], pipeline=FRENCH, language="fr")
    assert result.corpus["SPICE"] == pytest.approx(3 / 4)
    assert result.corpus["SPICE-exact"] == pytest.approx(1 / 4)
    assert _values(result)["SPICE_Color"] == 0
    assert score(items, pipeline=FRENCH).corpus["SPICE"] == pytest.approx(1 / 4), "the English index has no divan"


def test_the_signature_names_language_and_wordnet() -> None:
    result = score([Item(1, BROWN, (RED,))], pipeline=FRENCH, language="fra")
    signature = result.signature["metrics"]["spice"]  # type: ignore[index, call-overload]
    assert signature["language"] == "fr"
    assert signature["lexicon"] == load_lexicon("fr").signature
    english = score([Item(1, BROWN, (RED,))], pipeline=FRENCH, language="en")
    assert english.signature == score([Item(1, BROWN, (RED,))], pipeline=FRENCH).signature
    assert "language" not in english.signature["metrics"]["spice"]  # type: ignore[index, call-overload, operator]


def test_the_language_is_that_of_the_pipeline_if_it_says_so() -> None:
    spoken = FunctionSource(FRENCH.signature, FRENCH.facts, "fr")
    assert score([Item(1, BROWN, (RED,))], pipeline=spoken).corpus["SPICE"] == pytest.approx(3 / 4)
    with pytest.raises(
        InputError, match=r"language de: the pipeline table reads French; name one for German, such as de_"
    ):
        score([Item(1, BROWN, (RED,))], pipeline=spoken, language="de")


@pytest.mark.parametrize("evidence", [True, False])
@pytest.mark.model
def test_french_against_english_references(evidence: bool) -> None:
    """Objects and attributes by synset, relations by their verb, or a table of prepositions."""
    items = [Item(1, BROWN, ("a brown dog on a couch",)), Item(2, TWO, ("two dogs",))]
    result = score(items, pipeline=FRENCH, language="fr", reference_language="en", evidence=evidence)
    assert result.corpus["SPICE"] == 1
    assert _values(result)["SPICE_Color"] == 1
    assert _values(result)["SPICE_Cardinality"] == 1
    signature = result.signature["metrics"]["spice"]  # type: ignore[index, call-overload]
    assert signature["reference language"] == "en"
    assert signature["reference pipeline"].startswith("en_caption")


def test_relations_are_shared_by_verb_or_preposition() -> None:
    french, english = load_shared("fr"), load_shared("en")
    assert french.concept("courir sur").shares(english.concept("run through"))
    assert french.concept("sur").shares(english.concept("onto"))
    assert not french.concept("sur").shares(english.concept("under"))
    assert not french.concept("sur").shares(english.concept("inch")), "of which 'in' is a synonym"


@pytest.mark.parametrize("language", ["fr", "es", "de", "it", "pt", "cs"])
def test_categories_of_a_language(language: str) -> None:
    english = categories_in("en")
    own = categories_in(language)
    assert list(own) == list(english)
    red = {"fr": "rouge", "es": "rojo", "de": "rot", "it": "rosso", "pt": "vermelho"}.get(language)
    keys = own["Color"].keys
    assert keys is not None
    assert (red in keys) if red else not load_lexicon().concept("red").keys.isdisjoint(keys)


@pytest.mark.parametrize(
    ("metrics", "languages", "reason"),
    [
        (["spice", "meteor"], {"language": "fr"}, "meteor: is made for English, not for fr; spice, spice-exact, bleu"),
        pytest.param(["spice-g"], {"language": "fr"}, "spice-g: is made for English", marks=needs_graded),
        (["bleu"], {"language": "fr", "reference_language": "en"}, "bleu: compares words"),
        (["spice-exact"], {"language": "fr", "reference_language": "en"}, "spice-exact matches equal words"),
        (["spice"], {"reference_language": "fr"}, "references in another language than candidates are English"),
        (["spice"], {"language": "tlh"}, "language: 'tlh' is not known; known are cs, de, en"),
    ],
)
def test_what_is_refused(metrics: list[str], languages: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        score([Item(1, BROWN, (RED,))], metrics, pipeline=FRENCH, **languages)  # type: ignore[arg-type]


def test_the_default_pipeline_reads_english() -> None:
    with pytest.raises(InputError, match=r"language fr: the pipeline en_caption\S+ reads English; .* fr_core_news_sm"):
        score([Item(1, BROWN, (RED,))], language="fr")


def test_candidates_in_another_language_than_the_named_one_are_noted() -> None:
    french = [Item(1, "un chien sur la plage", ("un chien",)), Item(2, "deux hommes dans la rue", ("un chien",))]
    english = [Item(3, "a dog is on the beach", ("un chien",))]
    assert not list(notes_on("x", french, language="fr"))
    assert list(notes_on("x", [*french, *english], language="fr")) == [
        "x: 1 of 3 candidates seems to be English, not French"
    ]


def test_one_spice_is_made_for_its_language() -> None:
    assert Spice(FRENCH).language == "en"
    assert Spice(FRENCH).lexicon is load_lexicon()
