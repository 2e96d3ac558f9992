"""Facts from graphs as text and from given parses; several candidates an image; SPIDEr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, read_items, score
from spicegraph_scorer.readers.parses import given_parses, graph_texts, read_parses
from spicegraph_scorer.scoring import choose_best

if TYPE_CHECKING:
    from spicegraph_parser import CaptionPipeline

EXAMPLE = Path(__file__).parents[2] / "examples" / "other_parsers"
AUDIO = Path(__file__).parents[2] / "examples" / "audio"


@pytest.fixture(scope="module")
def pipeline() -> CaptionPipeline:
    return load_pipeline()


@pytest.mark.model
def test_a_graph_scores_like_the_caption_it_came_from(pipeline: CaptionPipeline) -> None:
    caption, graph = "A man rides a brown horse.", "( man , ride , horse ) , ( horse , is , brown )"
    source = graph_texts(pipeline)
    result = score([Item(1, caption, (graph,)), Item(2, graph, (caption, graph))], pipeline=source)
    assert [row["SPICE"] for row in result.item_scores()] == [1.0, 1.0]
    assert result.signature["metrics"]["spice"]["pipeline"] == f"{pipeline.signature}+graphs"  # type: ignore[index, call-overload]
    mixed = list(source.facts(["( dog )", "a cat", "( dog )", "a car (red)"]))
    assert [facts[0].words for facts in mixed] == [("dog",), ("cat",), ("dog",), mixed[3][0].words]
    assert mixed[3] == next(pipeline.facts(["a car (red)"]))


def test_given_parses_score_without_a_pipeline() -> None:
    parses = read_parses(str(EXAMPLE / "parses.conllu"))
    items = read_items(str(EXAMPLE / "captions.jsonl")).items
    result = score(items, pipeline=parses)
    first, second = result.item_scores()
    assert first["SPICE_categories"]["Relation"]["tp"] == 1  # type: ignore[index, call-overload]
    assert second["SPICE_categories"]["Cardinality"]["f"] == 1.0  # type: ignore[index, call-overload]
    assert parses.signature.startswith("parses-")
    with pytest.raises(InputError, match="caption 'a dog': has no parse"):
        score([Item(1, "a dog", ("a dog",))], pipeline=parses)


def test_parses_that_contradict_each_other_or_are_none(tmp_path: Path) -> None:
    row = "1\tdogs\tdog\t_\t{}\t_\t0\troot\t_\t_\n\n"
    twice = tmp_path / "twice.conllu"
    twice.write_text("# text = dogs\n" + row.format("NNS") + "# text = dogs\n" + row.format("VBZ"))
    with pytest.raises(InputError, match="the caption 'dogs' has two different parses"):
        read_parses(str(twice))
    (tmp_path / "empty").write_text("")
    with pytest.raises(InputError, match="contains no parse"):
        read_parses(str(tmp_path / "empty"))


def test_spaces_of_a_caption_do_not_matter_for_its_parse() -> None:
    parses = given_parses({"a dog": ()}, "x")
    assert list(parses.facts([" a  dog\n"])) == [()]


@pytest.mark.model
def test_the_best_candidate_is_that_of_highest_spider(pipeline: CaptionPipeline) -> None:
    references = {"a": ("a dog runs on the beach",), "b": ("two red cars on a road", "cars")}
    texts = {"a": ["a cat", "a dog runs on the beach", "a dog"], "b": ["two red cars on a road"]}
    items = [Item(f"{i}#{n}", text, references[i]) for i in texts for n, text in enumerate(texts[i])]
    images = [i for i in texts for _ in texts[i]]
    choice = choose_best(items, images, pipeline)
    assert [(item.id, item.candidate) for item in choice.items] == [("a", texts["a"][1]), ("b", texts["b"][0])]
    assert choice.by == "SPIDEr"
    spider = score(choice.items, ("spider", "cider", "spice"), pipeline=pipeline)
    assert [row["SPIDEr"] for row in spider.item_scores()] == list(choice.values)
    corpus = spider.corpus
    assert corpus["SPIDEr"] == (corpus["CIDEr"] + corpus["SPICE"]) / 2  # type: ignore[operator]


@pytest.mark.model
def test_with_one_image_spice_decides(pipeline: CaptionPipeline) -> None:
    items = [Item("7#1", "a cat", ("a dog",)), Item("7#2", "a dog", ("a dog",))]
    choice = choose_best(items, [7, 7], pipeline)
    assert (choice.by, choice.items[0].candidate, choice.values) == ("SPICE", "a dog", (1.0,))


@pytest.mark.model
def test_audio_captions(pipeline: CaptionPipeline) -> None:
    dataset = read_items(str(AUDIO / "predictions.csv"), references=str(AUDIO / "references.csv"))
    result = score(dataset.items, ("spice", "cider", "spider"), pipeline=pipeline)
    assert len(dataset.items) == 8
    assert result.corpus["SPIDEr"] == (result.corpus["CIDEr"] + result.corpus["SPICE"]) / 2  # type: ignore[operator]
    by_id = {item.id: row["SPICE"] for item, row in zip(dataset.items, result.item_scores(), strict=True)}
    assert by_id["dog.wav"] > by_id["wrong.wav"] == 0.0  # type: ignore[operator]
