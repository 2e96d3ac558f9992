"""CHAIR: objects by the published synonyms, counts by hand, instances, and what a wrong file is refused for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spicegraph_graded.chair import CLASSES, Chair, mentions, read_instances
from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, score
from spicegraph_scorer.core.tokens import Corpus

if TYPE_CHECKING:
    from pathlib import Path

    from spicegraph_graded.chair import ChairStatistic

ITEMS = (
    Item(1, "A man rides a horse near two dogs.", ("a woman on a horse", "a rider and a puppy")),
    Item(2, "a cat sits on a couch, a kitten on a chair", ("a sofa in a room",)),
    Item(3, "nothing to see here", ("a red umbrella", "an umbrella on the beach")),
    Item(4, "a blue sky", ("clouds",)),
)


def collect(*items: Item) -> list[ChairStatistic]:
    return Chair().collect(Corpus(items))


@pytest.mark.parametrize(
    ("caption", "objects"),
    [
        ("Two policemen and three women with wallets", ["person", "person", "handbag"]),
        ("a teddy bear and a bear", ["teddy bear", "bear"]),
        ("baby elephants beside an adult zebra", ["elephant", "zebra"]),
        ("a passenger train on the train tracks", ["train"]),
        ("a man in a bow tie", ["person", "tie"]),
        ("a toilet seat", ["toilet"]),
        ("a toilet with its seat up", ["toilet"]),
        ("an empty seat", ["chair"]),
        ("hot dogs, wine glasses and knives", ["hot dog", "wine glass", "knife"]),
        ("a dining table under a street light", ["dining table", "traffic light"]),
        ("skis, scissors and buses", ["skis", "scissors", "bus"]),
        ("a motor bike with a cheesecake", []),  # behind two spaces in the published list
        ("stop, sign here", []),
        ("a hydrant; geese, mice, oxen", ["fire hydrant", "bird", "mouse", "cow"]),
    ],
)
def test_objects_are_found_by_the_published_words(caption: str, objects: list[str]) -> None:
    assert [found.object for found in mentions(caption)] == objects


def test_there_are_eighty_classes() -> None:
    assert len(set(CLASSES.values())) == 80


def test_spans_are_those_of_the_text() -> None:
    caption = "Two Puppies by a  Street Light"
    assert [caption[slice(*found.span)] for found in mentions(caption)] == ["Puppies", "Street Light"]


def test_a_letter_whose_lower_case_is_longer_does_not_move_spans() -> None:
    caption = "A dog in \u0130zmir sees a cat"
    assert [caption[slice(*found.span)] for found in mentions(caption)] == ["dog", "cat"]


def test_counts_are_those_of_the_definition() -> None:
    """By hand: 3 mentions right; cat, couch, kitten, chair, of which 3 are not there; the others mention nothing."""
    totals = {found.name: found for found in Chair().total(collect(*ITEMS))}
    assert totals["CHAIRi"].value == pytest.approx(3 / 7)
    assert totals["CHAIRi"].each == (0, 0.75, 0, 0)
    assert totals["CHAIRs"].value == pytest.approx(1 / 4)
    assert totals["CHAIR_Recall"].value == pytest.approx(4 / 5)
    assert totals["CHAIR_Recall"].each == (1, 1, 0, None)


def test_sums_give_the_same_scores() -> None:
    statistics = collect(*ITEMS)
    sums = Chair().columns(statistics).sum(axis=0, keepdims=True)
    assert {name: float(values[0]) for name, values in Chair().from_sums(sums).items()} == {
        found.name: found.value for found in Chair().total(statistics)
    }
    assert np.isnan(Chair().from_sums(np.zeros((1, 6)))["CHAIRi"]).all()


def test_an_explanation_names_what_is_hallucinated_and_what_is_missing() -> None:
    found = Chair().explain(collect(ITEMS[1])[0])
    assert found is not None
    assert [(one.words, one.object) for one in found.mentions if one.hallucinated] == [
        ("cat", "cat"),
        ("kitten", "cat"),
        ("chair", "chair"),
    ]
    assert Chair().explain(collect(ITEMS[2])[0]).to_dict() == {"mentions": [], "missing": ["umbrella"]}  # type: ignore[union-attr]


def instances(path: Path, **changed: object) -> str:
    data = {
        "categories": [{"id": 17, "name": "cat"}, {"id": 62, "name": "chair"}],
        "images": [{"id": one.id} for one in ITEMS],
        "annotations": [{"image_id": 2, "category_id": 17}, {"image_id": 2, "category_id": 17}],
        **changed,
    }
    path.write_text(json.dumps(data))
    return str(path)


def test_outlined_objects_are_there(tmp_path: Path) -> None:
    given = read_instances(instances(tmp_path / "instances.json"))
    result = score(ITEMS, ["chair"], instances=given)
    assert result.corpus["CHAIRi"] == pytest.approx(1 / 7)
    assert given.digest in str(result.signature)
    with pytest.raises(InputError, match="the instances lack 1 of the images that are scored: 9"):
        score([Item(9, "a dog", ("a dog",))], ["chair"], instances=given)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"images": None}, "it has no list 'images'"),
        ({"categories": [{"id": 1, "name": "unicorn"}]}, "'unicorn' is missing"),
        ({"annotations": [{"image_id": 1, "category_id": 99}]}, "99 is missing"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_instances(instances(tmp_path / "instances.json", **changed))
