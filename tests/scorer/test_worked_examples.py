"""Values worked out by hand, of functions that have no test file of their own."""

from __future__ import annotations

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_scorer import DocumentFrequencies, Item, score_tuples
from spicegraph_scorer.core.data import MetricData, merged_data, with_spice_text
from spicegraph_scorer.core.items import in_order_of, to_item
from spicegraph_scorer.core.ngrams import split_at_spaces
from spicegraph_scorer.core.results import ExactSums
from spicegraph_scorer.core.tokens import Corpus, tokenize_texts
from spicegraph_scorer.errors import error_words
from spicegraph_scorer.errors.rules import are_opposite, near_concepts
from spicegraph_scorer.metrics import check_names, needs_of
from spicegraph_scorer.metrics.bleu import Bleu, SentenceBleu
from spicegraph_scorer.metrics.cider import Cider, mean_of
from spicegraph_scorer.metrics.rouge import RougeL
from spicegraph_scorer.readers.checks import Fault, copies_note, input_error, label, shape_notes, shown
from spicegraph_scorer.readers.read import number_in
from spicegraph_scorer.readers.records import given_references, looks_like_one_text, untyped_id

BROWN = (Item(1, "a brown dog", ("a dog", "a brown dog runs")),)


def test_items_of_programs() -> None:
    assert to_item({"image_id": 7, "caption": "a dog", "refs": ["the dog"]}, 0) == Item(7, "a dog", ("the dog",))
    assert to_item(("a dog", ["the dog"]), 0) == Item(0, "a dog", ("the dog",))
    dog, cat = Item(1, "a dog", ("dog",)), Item(2, "a cat", ("cat",))
    assert in_order_of([dog, cat], [cat, dog]) == (dog, cat)
    with pytest.raises(InputError, match="item 2 is only in the first"):
        in_order_of([dog, cat], [dog])


def test_data_and_names() -> None:
    assert merged_data(None, {"categories": {}}) == MetricData(categories={})
    assert [with_spice_text([name], MetricData()).spice_text for name in ("coco", "spice")] == ["coco", "written"]
    assert check_names(["SPICE", "ROUGE_L", "cider"]) == ("spice", "rouge", "cider")
    assert [needs.facts for needs in needs_of(["rouge", "spice"])] == [False, True]


def test_words_and_sums() -> None:
    assert split_at_spaces((f"2{chr(160)}1/2", "cups")) == ("2", "1/2", "cups")
    assert tokenize_texts(["The letter K.", "A man"], together=True)[0] == ("the", "letter", "k")
    assert tokenize_texts(["The letter K."])[0] == ("the", "letter", "k.")
    dog, cat = (DocumentFrequencies.from_references([[(word, "runs")]]) for word in ("dog", "cat"))
    counted = dict(DocumentFrequencies.sum_of([dog, cat]).ngrams())
    assert counted == {"cat": 1, "dog": 1, "runs": 2, "cat runs": 1, "dog runs": 1}
    assert ExactSums.of([(1e100,), (1.0,), (-1e100,), (0.5,)]).columns == ((1.5,),)
    assert ExactSums.of([(1e100,), (1.0,)]).columns == ((1e100, 1.0),)


def test_scores() -> None:
    for metric, values in ((Bleu(), [1, 1, 1, 0.0316]), (SentenceBleu(), [1, 1, 1, 0.8409])):
        scores = metric.total(metric.collect(Corpus(BROWN)))
        assert [score.value for score in scores] == pytest.approx(values, abs=5e-5)
    rouge, cider = RougeL(), Cider()
    items = (Item(1, "a brown dog", ("a dog", "the dog is brown")),)
    assert rouge.total(rouge.collect(Corpus(items)))[0].value == pytest.approx(0.8299, abs=5e-5)
    items = Item(1, "a dog runs", ("a dog runs",)), Item(2, "a cat", ("the cats sleep",))
    assert cider.total(cider.collect(Corpus(items)))[0].each == (7.5, 0.0)
    assert mean_of(1.5, 0.25) == 0.875
    assert mean_of(None, 0.25) is None


def test_errors() -> None:
    result = score_tuples([["car"], ["car", "blue"]], [[["car"], ["car", "red"]]])
    expected = [("color_confused", ("red", "blue")), ("color_missed", ("red", "car"))]
    assert sorted(error_words(result.statistic.match)) == expected
    concept = load_lexicon().concept
    near = near_concepts(concept("puppy"), concept("dog"))
    assert near is not None
    assert (near.how, near.distance) == ("narrower", 1)
    assert (are_opposite("big", "tiny"), are_opposite("big", "large")) == (True, False)


def test_messages() -> None:
    fault = Fault("item 1 (image_id 7)", "caption", "is empty")
    assert str(input_error("a.json", [fault])) == "a.json: item 1 (image_id 7), caption: is empty"
    assert shown("a\x1b[2J" + "b" * 100).startswith("'a\\x1b[2Jbb")
    assert label("line 3", 7) == "line 3 (image_id 7)"
    copies = [Item(number, "a dog", ("a dog", "the dog")) for number in range(5)]
    assert copies_note("a.json", copies) == (
        "a.json: 5 of 5 candidates equal one of their own references; is it the right file?"
    )
    short = [Item(number, "a dog runs", ("dog", "puppy")) for number in range(5)]
    assert list(shape_notes("a.json", short)) == [
        "a.json: 10 of 10 references are one word: SPICE finds neither attributes nor relations in them"
    ]


def test_texts_of_files() -> None:
    assert [number_in(name) for name in ("COCO_val2014_000000000143.jpg", "clip7.mp4", "dog")] == [143, 7, None]
    facts = given_references("facts", "- There is a dog.\n- The dog is brown.\n")
    assert facts == ["There is a dog.", "The dog is brown."]
    assert [untyped_id(text) for text in ("42", "042", "a.jpg")] == [42, "042", "a.jpg"]
    assert looks_like_one_text(["A dog lies on a bed and", "a cat sleeps."])
    assert not looks_like_one_text(["A dog on a bed", "A cat sleeps."])
