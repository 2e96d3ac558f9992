"""Readers of judgements: our own formats, the published shapes, and one clear error for everything else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import io

from spicegraph_parser.errors import InputError
from spicegraph_studies.agreement import read_judgements, read_pairs

TOKENS = (
    "1_a.jpg#0\tA dog runs .\n1_a.jpg#1\tOne brown dog is running .\n"
    "2_b.jpg#0\tA cat sleeps .\n2_b.jpg#1\tThe cat is asleep .\n"
)


def write(folder, name, content):
    path = folder / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return str(path)


@pytest.fixture
def tokens(tmp_path):
    return write(tmp_path, "Flickr8k.token.txt", TOKENS)


def test_json_lines_of_rated_captions(tmp_path):
    rows = [
        {"image_id": 7, "candidate": "a dog", "references": ["a cat"], "ratings": [1, 2.5], "system": "x"},
        {
            "image": "b.jpg",
            "caption": "a cat",
            "refs": ["a cat"],
            "rating": 3,
            "metrics": {"CLIPScore": 0.5, "B": None},
        },
        {"hyp": "a bird", "references": ["a cat"], "human_score": None},
        {"id": "THumB-1", "image_id": "c", "candidate": "two", "references": ["a"], "score": -1.5, "P": 4.0},
    ]
    found = read_judgements(write(tmp_path, "rated.jsonl", rows))
    assert (found.format, found.unrated) == ("JSON Lines", 1)
    first, second, third = found.items
    assert (first.image, first.candidate, first.references, first.ratings) == ("7", "a dog", ("a cat",), (1.0, 2.5))
    assert (first.place, first.system) == ("line 1", "x")
    assert (second.image, second.given) == ("b.jpg", {"CLIPScore": 0.5, "B": None})
    assert third.ratings == (-1.5,)


def test_the_rating_field_can_be_named_and_a_list_is_as_good_as_lines(tmp_path):
    rows = [{"image_id": 1, "candidate": "a dog", "references": ["a cat"], "score": 3.5, "P": 4, "R": 3}]
    path = write(tmp_path, "rated.json", json.dumps(rows))
    assert read_judgements(path, rating="P").items[0].ratings == (4.0,)
    with pytest.raises(InputError, match="item 1, Fl: is missing"):
        read_judgements(path, rating="Fl")


def test_captions_without_an_image_belong_to_those_with_the_same_references(tmp_path):
    rows = [{"candidate": c, "references": r, "rating": 1} for c, r in (("a", ["x"]), ("b", ["x"]), ("c", ["y"]))]
    images = [judgement.image for judgement in read_judgements(write(tmp_path, "r.jsonl", rows)).items]
    assert images[0] == images[1] != images[2]


def test_human_judgement_by_image(tmp_path):
    def rated(caption, rating):
        return {"image_id": "1_a", "image_path": "x/1_a.jpg", "caption": caption, "rating": rating}

    content = {
        "1_a": {
            "human_judgement": [
                rated("A cat .", 1.0),
                rated("A cat .", 2.0),
                rated("A dog .", 4.0),
                rated("A cat .", 3.0),
            ],
            "ground_truth": ["A dog runs ."],
            "image_id": "1_a",
        },
        "2_b": {"human_judgement": [rated("A dog .", 2.0), rated("A dog .", None)], "ground_truth": ["A cat sleeps ."]},
    }
    found = read_judgements(write(tmp_path, "flickr8k.json", json.dumps(content)))
    assert [(j.image, j.candidate, j.ratings) for j in found.items] == [
        ("1_a", "A cat .", (1.0, 2.0)),
        ("1_a", "A dog .", (4.0,)),
        ("1_a", "A cat .", (3.0,)),
        ("2_b", "A dog .", (2.0,)),
    ]
    assert found.items[0].references == ("A dog runs .",)
    assert found.unrated == 1


def test_flickr8k_expert_annotations(tmp_path, tokens):
    path = write(tmp_path, "ExpertAnnotations.txt", "1_a.jpg\t2_b.jpg#1\t1\t1\t2\n2_b.jpg\t2_b.jpg#0\t4\t4\t4\n")
    found = read_judgements(path, references=[tokens])
    assert found.format == "Flickr8k annotations"
    assert found.items[0].candidate == "The cat is asleep ."
    assert found.items[0].references == ("A dog runs .", "One brown dog is running .")
    assert [judgement.ratings for judgement in found.items] == [(1.0, 1.0, 2.0), (4.0, 4.0, 4.0)]


def test_flickr8k_crowdflower_annotations(tmp_path, tokens):
    text = "1_a.jpg\t2_b.jpg#1\t0\t0\t3\n2_b.jpg\t2_b.jpg#0\t0.6666666666666666\t2\t1\n1_a.jpg\t1_a.jpg#0\t1\t3\t0\n"
    found = read_judgements(write(tmp_path, "CrowdFlowerAnnotations.txt", text), references=[tokens])
    assert [judgement.ratings for judgement in found.items] == [(0.0,), (0.6666666666666666,), (1.0,)]


COMPOSITE = (
    '"HITId";"Input.image_url";Input.text1;Input.text2;"Answer.Q1Answer";Answer.Q2Answer\n'
    "x;http://h/1_a.jpg;A cat, sleeping;A dog runs .;2;5\n"
    "x;http://h/COCO_val2014_000000000042.jpg;A bus;A car;;4\n"
    ";;;;;\n"
)


def test_composite_tables(tmp_path):
    annotations = {"annotations": [{"image_id": 42, "caption": "A red bus"}, {"image_id": 1, "caption": "x y"}]}
    coco = write(tmp_path, "captions.json", json.dumps(annotations))
    path = write(tmp_path, "8k_correctness.csv", COMPOSITE)
    tokens = write(tmp_path, "t.txt", TOKENS + "COCO_val2014_000000000042.jpg#0\tA red bus\n")
    found = read_judgements(path, references=[tokens])
    assert found.format == "Composite table"
    assert [(j.image, j.candidate, j.ratings) for j in found.items] == [
        ("1_a.jpg", "A cat, sleeping", (2.0,)),
        ("1_a.jpg", "A dog runs .", (5.0,)),
        ("COCO_val2014_000000000042.jpg", "A car", (4.0,)),
    ]
    assert found.unrated == 2
    lines = COMPOSITE.splitlines(keepends=True)
    only_coco = write(tmp_path, "coco_correctness.csv", lines[0] + lines[2])
    assert read_judgements(only_coco, references=[coco]).items[0].references == ("A red bus",)


def test_several_files_are_one_set_with_several_references(tmp_path):
    lines = COMPOSITE.splitlines(keepends=True)
    flickr = write(tmp_path, "8k_correctness.csv", lines[0] + lines[1])
    coco = write(tmp_path, "coco_correctness.csv", lines[0] + lines[2])
    annotations = {"annotations": [{"image_id": 42, "caption": "A red bus"}]}
    banks = [write(tmp_path, "t.txt", TOKENS), write(tmp_path, "captions.json", json.dumps(annotations))]
    found = read_judgements(flickr, coco, references=banks)
    assert [judgement.references[0] for judgement in found.items] == ["A dog runs .", "A dog runs .", "A red bus"]
    assert found.items[2].place == f"{coco}, line 2, caption 2"
    assert (found.format, found.unrated) == ("Composite table", 1)


def matlab(texts, winners):
    """Triplets as MATLAB's struct array of cells."""
    rows = np.empty((1, len(texts)), dtype=[(name, object) for name in ("A", "B", "C", "winner")])
    for index, (row, winner) in enumerate(zip(texts, winners, strict=True)):
        for name, text in zip("ABC", row, strict=True):
            rows[name][0, index] = np.array([[text]], dtype=object)
        rows["winner"][0, index] = winner
    return rows


@pytest.fixture
def pascal(tmp_path):
    """Two pairs with three triplets each, in the recorded shape of the published files."""
    first = [(f"reference {n} ", "a dog", " a cat") for n in range(3)]
    second = [(f"other {n}", "a bus", "a car") for n in range(3)]
    io.savemat(tmp_path / "consensus_pascal.mat", {"triplets": matlab(first + second, [1, 1, -1, -1, 1, -1])})
    images = np.empty((1, 2), dtype=[(name, object) for name in ("image", "B", "C")])
    for index, row in enumerate((("2008_1.jpg", "a dog", "a cat"), ("2008_2.jpg", "a bus", "a car"))):
        for name, text in zip(("image", "B", "C"), row, strict=True):
            images[name][0, index] = text
    io.savemat(tmp_path / "pair_pascal.mat", {"new_input": images, "category": np.array([[2, 4]])})
    return tmp_path


def test_pascal50s(pascal):
    found = read_pairs(str(pascal))
    first, second = found.items
    assert found.format == "PASCAL-50S"
    assert (first.image, first.category, first.captions, first.preferred) == ("2008_1.jpg", "HI", ("a dog", "a cat"), 0)
    assert first.references == ("reference 0", "reference 1", "reference 2")
    assert (second.category, second.preferred) == ("MM", 1)
    assert read_pairs(str(pascal / "consensus_pascal.mat")).items == found.items


def test_pascal50s_with_as_many_votes_for_both_has_no_preference(pascal):
    texts = [("r1", "a", "b"), ("r2", "a", "b"), ("r3", "c", "d"), ("r4", "c", "d")]
    io.savemat(pascal / "consensus_pascal.mat", {"triplets": matlab(texts, [1, -1, -1, -1])})
    assert [pair.preferred for pair in read_pairs(str(pascal)).items] == [None, 1]


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda p: (p / "pair_pascal.mat").unlink(), "pair_pascal.mat: there is no such file"),
        (lambda p: (p / "pair_pascal.mat").write_bytes(b"nothing"), "is not a MATLAB file that can be read"),
        (lambda p: io.savemat(p / "pair_pascal.mat", {"category": [1]}), "contains no variable 'new_input'"),
        (
            lambda p: io.savemat(p / "consensus_pascal.mat", {"triplets": matlab([("r", "a", "b")] * 5, [1] * 5)}),
            "5 triplets don't belong to 2 pairs",
        ),
        (
            lambda p: io.savemat(
                p / "consensus_pascal.mat", {"triplets": matlab([("r", "a", "b"), ("r", "a", "c")] * 2, [1] * 4)}
            ),
            "the triplets of pair 1 hold different candidates",
        ),
        (
            lambda p: io.savemat(p / "consensus_pascal.mat", {"triplets": np.arange(6)}),
            "is not PASCAL-50S as published",
        ),
    ],
)
def test_broken_pascal50s_gives_one_clear_error(pascal, break_it, message):
    break_it(pascal)
    with pytest.raises(InputError, match=message):
        read_pairs(str(pascal))


def test_json_lines_of_pairs(tmp_path):
    rows = [
        {"image_id": 1, "category": "swap", "captions": ["a", "b"], "label": 1, "references": ["c"], "mturk": {}},
        {"captions": ["a", "b"], "preferred": None, "refs": ["c"], "metrics": {"CLIPScore": [0.1, None]}},
    ]
    first, second = read_pairs(write(tmp_path, "pairs.jsonl", rows)).items
    assert (first.image, first.category, first.captions, first.preferred) == ("1", "swap", ("a", "b"), 1)
    assert (second.category, second.preferred, second.given) == ("", None, {"CLIPScore": (0.1, None)})


def test_fenses_sounds_are_pairs_by_category_with_the_sum_of_the_votes(tmp_path):
    sound = {
        "HC": ["a dog barks", "a hound howls", "ground_1", "ground_2", [1, 1, -1, 1]],
        "HI": ["a dog barks", "rain falls", "ground_1", "idx523", [-1, -1, -1, -1]],
        "MM_2": ["a dog", "a cat", "rl", "fc", [1, -1, 0, 0]],
        "raw_name": "1.wav",
        "references": ["a dog barks", "a hound howls"],
    }
    found = read_pairs(write(tmp_path, "audiocaps_eval.json", json.dumps([sound], indent=4)))
    assert found.format == "AudioCaps-Eval, Clotho-Eval (FENSE)"
    assert [(each.category, each.preferred) for each in found.items] == [("HC", 0), ("HI", 1), ("MM", None)]
    assert (found.items[0].image, found.items[2].captions) == ("1.wav", ("a dog", "a cat"))
    sound["HM"] = ["a dog", "a cat", [1]]
    with pytest.raises(InputError, match="item 1, HM: is not a list of two captions, their two sources and a list"):
        read_pairs(write(tmp_path, "bad.json", json.dumps([sound])))


def test_discofoils_descriptions_stand_against_their_corrected_form(tmp_path):
    row = {"image_id": "5", "caption": "Three sheep.", "hall_caption": "Four sheep.", "fixed": "true"}
    row["human_corrected_hall_caption"] = "Three sheep stand."
    found = read_pairs(write(tmp_path, "foil.json", json.dumps([row, row | {"fixed": "false"}])))
    (pair,) = found.items
    assert (pair.image, pair.captions, pair.preferred) == ("5", ("Three sheep stand.", "Four sheep."), 0)
    assert (pair.references, found.unrated, found.format) == (("Three sheep.",), 1, "D-FOIL (DiscoSG)")


def test_polaris_is_a_table_whose_references_are_a_list_in_a_cell(tmp_path):
    head = ",mt,refs,score,imgid\n"
    good = head + """0,"a dog, running","['a dog runs', ""the dog's run""]",0.75,7.jpg\n"""
    (found,) = read_judgements(write(tmp_path, "polaris_test.csv", good)).items
    assert (found.candidate, found.references) == ("a dog, running", ("a dog runs", "the dog's run"))
    assert (found.ratings, found.image) == ((0.75,), "7.jpg")
    bad = head + "0,a dog,__import__('os'),0.5,7.jpg\n1,a dog,['a'],high,7.jpg\n2,,['a'],1,7.jpg\n"
    with pytest.raises(InputError) as error:
        read_judgements(write(tmp_path, "bad.csv", bad))
    for fault in ("row 1, refs: is", "row 2, score: is 'high', expected a number", "row 3, mt: is empty"):
        assert fault in str(error.value)


@pytest.fixture
def annotations(tmp_path):
    rows = [(7, "a dog runs"), (7, "the dog"), (9, "a cat "), (9, "one cat")]
    return write(
        tmp_path,
        "captions.json",
        json.dumps(
            {
                "images": [{"id": 7, "file_name": "COCO_val2014_000000000007.jpg"}, {"id": 9, "file_name": "9.jpg"}],
                "annotations": [{"id": n, "image_id": image, "caption": text} for n, (image, text) in enumerate(rows)],
            }
        ),
    )


def test_sugarcrepes_files_are_one_set_with_a_category_each(tmp_path, annotations):
    pair = {"filename": "000000000007.jpg", "caption": "a dog runs", "negative_caption": "a cat runs"}
    files = [write(tmp_path, f"{name}.json", json.dumps({"0": pair, "1": pair})) for name in ("swap_obj", "add_att")]
    found = read_pairs(*files, annotations=[annotations])
    assert (len(found.items), found.format, found.unrated) == (4, "SugarCrepe, VALSE", 0)
    assert found.title == "swap_obj.json, add_att.json"
    assert [each.category for each in found.items] == ["swap_obj", "swap_obj", "add_att", "add_att"]
    first = found.items[0]
    assert (first.image, first.captions, first.preferred) == ("000000000007.jpg", ("a dog runs", "a cat runs"), 0)
    assert first.references == ("a dog runs", "the dog")


def test_valses_pairs_that_annotators_did_not_confirm_are_left_out_and_counted(tmp_path, annotations):
    pair = {"image_file": "9.jpg", "caption": "a cat", "foil": "a dog", "linguistic_phenomena": "existence"}
    rows = {f"{votes}": pair | {"mturk": {"foil": 3 - votes, "caption": votes}} for votes in range(4)}
    found = read_pairs(write(tmp_path, "existence.json", json.dumps(rows)), annotations=[annotations])
    assert [(each.place, each.category) for each in found.items] == [
        ("pair '2'", "existence"),
        ("pair '3'", "existence"),
    ]
    assert found.unrated == 2


def test_every_foil_stands_against_the_true_caption_of_its_id(tmp_path, annotations):
    rows = [
        {"id": 1, "foil_id": 1, "image_id": 7, "caption": "a dog runs", "foil": False, "target_word": "ORIG"},
        {"id": 1, "foil_id": 2, "image_id": 7, "caption": "a cat runs", "foil": True, "target_word": "dog"},
        {"id": 2, "foil_id": 3, "image_id": 9, "caption": "one cat", "foil": False, "target_word": "ORIG"},
    ]
    path = write(tmp_path, "foil.json", json.dumps({"annotations": rows, "images": []}))
    (found,) = read_pairs(path, annotations=[annotations]).items
    assert (found.captions, found.preferred, found.category) == (("a dog runs", "a cat runs"), 0, "")
    assert found.references == ("a dog runs", "the dog")


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (
            {"0": {"caption": "a", "foil": 3}, "x": [], "1": {"image_file": "11.jpg", "caption": " ", "foil": "b"}},
            [
                "pair '0', foil: is a number, expected a string",
                "pair '0', filename: is missing",
                "pair 'x', caption: is missing",
                "pair '1', caption: is empty",
                "pair '1', image: '11.jpg' has no captions in",
            ],
        ),
        (
            {"annotations": [{"id": 1, "image_id": 7, "caption": "a", "foil": True}, {"id": 2, "foil": "yes"}]},
            ["annotations[0], id: 1 has no true caption", "annotations[1], foil: is 'yes', expected true or false"],
        ),
    ],
)
def test_bad_negatives_give_one_error_that_lists_every_fault(tmp_path, annotations, content, faults):
    path = write(tmp_path, "bad.json", json.dumps(content))
    with pytest.raises(InputError) as error:
        read_pairs(path, annotations=[annotations])
    for fault in faults:
        assert fault in str(error.value)
    with pytest.raises(InputError, match="give them with --annotations"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (
            [
                {"candidate": " ", "references": [], "rating": "good", "image_id": ""},
                {"references": "a", "rating": True},
                {"candidate": "a", "references": ["a"], "rating": [1, "x"], "metrics": 3, "system": 1},
                {"candidate": "a", "references": ["a"]},
                {"candidate": "a", "references": ["a"], "rating": 1, "metrics": {"CLIPScore": "high"}},
            ],
            [
                "line 1, candidate: is empty",
                "line 1, references: contains no reference",
                "line 1, rating: is 'good', expected a number",
                "line 1, image_id: is empty",
                "line 2, candidate: is missing",
                "line 2, references: is a string, expected a list of strings",
                "line 2, rating: is True, expected a number",
                "line 3, rating[1]: is 'x', expected a number",
                "line 3, metrics: is 3, expected an object",
                "line 3, system: is 1, expected a string",
                "line 4, ratings: is missing",
                "line 5, metrics.CLIPScore: is 'high', expected a number or null",
            ],
        ),
        (
            '{"candidate": "a", "references": ["a"], "rating": 1}\n{"candid\n[1]\n',
            ["line 2: is not JSON", "line 3: is [1]"],
        ),
        ("", ["is empty"]),
        ("some text\n", ["contains no rated captions in a format that is known"]),
        (
            '{"a": {"human_judgement": 1}, "b": {"human_judgement": [{"caption": "x"}], "ground_truth": ["y"]}}',
            ["is not a list", "rating: is missing"],
        ),
        ('{"candidate": "a", "references": ["a"], "rating": null}', ["contains no rated caption"]),
        (
            "1_a.jpg\t2_b.jpg#9\t1\t1\t2\n3_c.jpg\t2_b.jpg#0\t1\t1\t2\nx\ty\n",
            ["'2_b.jpg#9' is not in", "'3_c.jpg' has no captions in", "line 3: is not: image, caption id"],
        ),
        (COMPOSITE.replace("2;5", "two;5"), ["line 2, caption 1, Answer.Q1Answer: is 'two', expected a number"]),
        (COMPOSITE.replace("Answer.Q2Answer", "Answer"), ["has no column Answer.Q2Answer"]),
    ],
)
def test_bad_judgements_give_one_error_that_lists_every_fault(tmp_path, tokens, content, faults):
    path = write(tmp_path, "bad", content)
    with pytest.raises(InputError) as error:
        read_judgements(path, references=[tokens])
    for fault in faults:
        assert fault in str(error.value)


def test_published_files_without_references_say_what_they_need(tmp_path, tokens):
    path = write(tmp_path, "ExpertAnnotations.txt", "1_a.jpg\t2_b.jpg#1\t1\t1\t2\n")
    with pytest.raises(InputError, match="contain no reference captions: give them with --references"):
        read_judgements(path)
    with pytest.raises(InputError, match="line 1: is not"):
        read_judgements(path, references=[write(tmp_path, "bad.txt", "no caption\n")])


@pytest.mark.parametrize(
    ("rows", "faults"),
    [
        (
            [
                {"captions": ["a"], "label": 0, "references": ["c"]},
                {"captions": ["a", " "], "label": 2, "references": ["c"]},
                {"label": True, "references": ["c"]},
                {"captions": ["a", "b"], "references": ["c"], "metrics": {"A": 1, "B": [1, "x"]}, "category": 1},
            ],
            [
                "line 1, captions: is not a list of two captions",
                "line 2, captions[1]: is empty",
                "line 2, label: is 2, expected 0 or 1",
                "line 3, captions: is missing",
                "line 3, label: is True, expected 0 or 1",
                "line 4, preferred: is missing",
                "line 4, category: is 1, expected a string",
                "line 4, metrics.A: is not a list of two numbers",
                "line 4, metrics.B[1]: is 'x', expected a number or null",
            ],
        ),
        ("[]", ["contains no pair"]),
        (
            "captions\n",
            [
                "contains no pairs in a format that is known (SugarCrepe, VALSE; FOIL; AudioCaps-Eval, Clotho-Eval (FENSE); D-FOIL (DiscoSG); PASCAL-50S by category (FLEUR, EXPERT); JSON Lines; PASCAL-50S"
            ],
        ),
    ],
)
def test_bad_pairs_give_one_error_that_lists_every_fault(tmp_path, rows, faults):
    with pytest.raises(InputError) as error:
        read_pairs(write(tmp_path, "bad", rows))
    for fault in faults:
        assert fault in str(error.value)


def test_records_without_references_take_those_of_their_image(tmp_path):
    bank = tmp_path / "bank.token"
    bank.write_text("7.jpg#0\ta dog runs\n7.jpg#1\ta brown dog\n")
    rated = tmp_path / "rated.json"
    records = [
        {"image_id": "7", "candidate": "a dog", "rating": 3},
        {"image_id": "8", "candidate": "a cat", "rating": 2, "references": ["cats"]},
    ]
    rated.write_text(json.dumps(records, indent=2))  # a list over several lines
    first, second = read_judgements(str(rated), references=[str(bank)]).items
    assert first.references == ("a dog runs", "a brown dog")
    assert second.references == ("cats",)
    rated.write_text(json.dumps([records[0] | {"image_id": "9"}]))
    with pytest.raises(InputError, match=r"item 1.*'9' has no captions in"):
        read_judgements(str(rated), references=[str(bank)])


def test_pairs_without_references_take_those_of_their_image(tmp_path):
    bank = tmp_path / "bank.token"
    bank.write_text("7.jpg#0\ta dog runs\n")
    pairs = tmp_path / "pairs.json"
    pairs.write_text(json.dumps([{"image_id": "7", "captions": ["a dog", "a cat"], "label": 0}], indent=2))
    (pair,) = read_pairs(str(pairs), annotations=[str(bank)]).items
    assert pair.references == ("a dog runs",)


def test_pairs_by_category_as_fleur_and_expert_have_them(tmp_path):
    """PASCAL-50S: ``label`` is the number of the better caption."""
    row = {"image": "a.jpg", "captions": ["a dog", "a cat"], "label": 1, "references": ["the cat"]}
    content = {"HC": [row], "HI": [{**row, "label": 0}]}
    found = read_pairs(write(tmp_path, "pascal_50s.json", json.dumps(content)))
    assert found.format == "PASCAL-50S by category (FLEUR, EXPERT)"
    assert [(pair.category, pair.preferred, pair.image) for pair in found.items] == [
        ("HC", 1, "a.jpg"),
        ("HI", 0, "a.jpg"),
    ]
    content["HM"] = [{**row, "label": 2}]
    with pytest.raises(InputError, match="HM, item 1, label: is 2, expected 0 or 1"):
        read_pairs(write(tmp_path, "pascal_50s.json", json.dumps(content)))


def test_nebula_and_polaris_as_json(tmp_path):
    rows = [{"imgid": "59cf", "mt": "a large group", "refs": ["a bunch of people"], "score": 0.75}]
    found = read_judgements(write(tmp_path, "nebula_test.json", json.dumps(rows)))
    assert [(each.image, each.candidate, each.ratings) for each in found.items] == [("59cf", "a large group", (0.75,))]


def test_thumbs_references_are_json_lines_under_any_name(tmp_path):
    rated = [{"seg_id": "s1", "SYS": "VinVL", "image": "COCO_1.jpg", "hyp": "a dog", "human_score": 3.5, "P": 4}]
    references = [{"seg_id": "s1", "image": "COCO_1.jpg", "refs": ["a dog runs", "the dog"]}]
    found = read_judgements(
        write(tmp_path, "thumb.jsonl", rated), references=[write(tmp_path, "references.json", references)]
    )
    assert [(each.system, each.references) for each in found.items] == [("VinVL", ("a dog runs", "the dog"))]


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ({"caption": "a dog", "references": ["a"], "grounding": [["a", False]]}, "marked words: spicegraph agree hall"),
        ({"baseline": "a dog", "foil": "a cat", "references": ["a"]}, "captions with foils: spicegraph agree hall"),
        ({"captions": ["a", "b"], "label": 0, "references": ["a"]}, "pairs of captions: spicegraph agree pairs."),
    ],
)
@pytest.mark.parametrize("as_list", [True, False])
def test_a_file_for_another_command_says_which(row, hint, as_list, tmp_path):
    path = write(tmp_path, "set.json", json.dumps([row] * 3) if as_list else [row] * 3)
    with pytest.raises(InputError) as caught:
        read_judgements(path)
    assert f"The file holds {hint}" in str(caught.value).splitlines()[-1]


def test_one_fault_of_every_row_is_one_message(tmp_path):
    rows = [{"image_id": n, "text": "a dog", "references": ["a"], "score": 1} for n in range(60)]
    with pytest.raises(InputError) as caught:
        read_judgements(write(tmp_path, "rated.jsonl", rows))
    assert (
        str(caught.value).splitlines()[0].endswith("rated.jsonl: line 1, candidate: is missing (and in 59 rows more)")
    )
