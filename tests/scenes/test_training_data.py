"""The training recipe's choice of captions and reading of parses (``training/`` is scripts, no package)."""

from __future__ import annotations

import gzip
import importlib
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from types import ModuleType

_TRAINING = Path(__file__).parents[2] / "training"

_PARSES = """\
# newdoc
# text = A dog.
1\tA\ta\t_\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\t_\tNN\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\t_\t.\t_\t2\tpunct\t_\t_

# newdoc
# text = Sit! Cats
1\tSit\tsit\t_\tVB\t_\t0\troot\t_\tSpaceAfter=No
2\t!\t!\t_\t.\t_\t1\tpunct\t_\t_

# text = Sit! Cats
1\tCats\tcat\t_\tNNS\t_\t0\troot\t_\t_

# newdoc
# text = no head
1\tno\tno\t_\tDT\t_\t_\t_\t_\t_
2\thead\thead\t_\tNN\t_\t0\troot\t_\t_

# newdoc
# text = being written
1\tbeing\tbe\t_\tVBG\t_\t2\tau"""


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(_TRAINING))
    names = (
        "styles",
        "heldout",
        "captions",
        "silver",
        "lemma_table",
        "scene_data",
        "scene_moulds",
        "scene_phrases",
        "scene_swaps",
    )
    modules = {name: importlib.import_module(name) for name in names}
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    return modules


def test_whole_captions_are_read(training: dict[str, ModuleType], tmp_path: Path) -> None:
    """Captions with a word that has no head, and the one that is just being written, are left out."""
    path = tmp_path / "parsed.conllu"
    path.write_text(_PARSES, encoding="utf-8")
    captions = list(training["silver"].read(path, training["heldout"].Hashes([])))
    assert [caption.text for caption in captions] == ["A dog.", "Sit! Cats"]
    assert [sentence.heads for sentence in captions[1].sentences] == [(0, 1), (0,)]
    assert captions[0].sentences[0].labels == ("det", "root", "punct")


def test_evaluation_captions_are_never_chosen(training: dict[str, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl.gz"
    lines = [{"text": "A dog runs."}, {"candidate": "two cats", "references": ["Cats  sleep", "A bird!"]}]
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    captions = training["captions"]
    evaluation = {training["styles"].plain(text) for text in captions.json_captions(path)}
    offered = ["a dog runs", "Two cats.", "cats sleep !", "a bird", "A fish.", "A fish.", "a horse"]
    hashes = training["heldout"].Hashes([])
    assert sorted(captions.choose(offered, evaluation=evaluation, parsed={"a horse"}, seed=1, hashes=hashes)) == [
        "A fish."
    ]


def test_held_out_texts_are_known_in_every_form(training: dict[str, ModuleType]) -> None:
    held = training["heldout"].Held(["A man rides a brown horse.", "A dog"])
    again = [
        "a man rides a brown horse",
        "A man rides a",
        "The image shows a man rides a brown horse.",
        "At dusk, a man rides a brown horse while birds sing.",
        "a man, rides a brown horse",
        "a dog!",
    ]
    assert [held.covers(text) for text in again] == [True] * 6
    others = ["a man rides", "a man rides a horse", "he sees a dog", "brown horse"]
    assert [held.covers(text) for text in others] == [False] * 4


def test_texts_whose_hashes_are_held_out_are_left_out(training: dict[str, ModuleType], tmp_path: Path) -> None:
    """Whatever their case and punctuation; a text that is allowed stays."""
    heldout = training["heldout"]
    path = tmp_path / "held_out.sha1.gz"
    with gzip.open(path, "wt", encoding="ascii") as lines:
        lines.writelines(f"{heldout.text_hash(text)}\n" for text in ("A dog, asleep.", "two cats"))
    hashes = heldout.Hashes.read([path], allowed=["Two cats!"])
    assert hashes.kept(["a dog asleep", "A  DOG -- asleep!", "two cats", "a dog"]) == ["two cats", "a dog"]
    assert not heldout.Hashes([]).covers("a dog asleep")
    with gzip.open(path, "at", encoding="ascii") as lines:
        lines.write("a dog\n")
    with pytest.raises(ValueError, match=r"held_out.sha1.gz, line 3"):
        heldout.Hashes.read([path])


def _json_rows(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def test_steps_of_the_scene_parser_leave_held_out_texts_out(
    training: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes, graphs, parses = (tmp_path / name for name in ("held.gz", "graphs.jsonl.gz", "coco.conllu.gz"))
    texts = {hashes: training["heldout"].text_hash("a dog") + "\n", parses: _PARSES.replace("A dog", "a dog")}
    texts[graphs] = '{"caption": "A dog", "scene_graph": "( dog )"}\n{"caption": "a cat", "scene_graph": "( cat )"}\n'
    for path, text in texts.items():
        with gzip.open(path, "wt", encoding="utf-8") as out:
            out.write(text)
    empty = tmp_path / "none.jsonl.gz"
    with gzip.open(empty, "wt"):
        pass
    out = tmp_path / "out.jsonl.gz"
    common = ["--without", str(empty), "--held-out-hashes", str(hashes), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["scene_data.py", str(graphs), *common])
    training["scene_data"].main()
    assert [row["text"] for row in _json_rows(out)] == ["a cat"]
    monkeypatch.setattr(sys, "argv", ["scene_phrases.py", str(parses), *common])
    training["scene_phrases"].main()
    assert _json_rows(out) == []


def test_a_share_of_each_kind_is_held_out_by_its_text(training: dict[str, ModuleType]) -> None:
    is_held_out = training["heldout"].is_held_out
    texts = [f"A dog and {number} cats." for number in range(20_000)]
    held = [text for text in texts if is_held_out(text, "coco_cut")]
    assert len(held) == pytest.approx(400, rel=0.2)
    assert all(is_held_out(text.lower().rstrip("."), "coco_cut") for text in held)
    assert not any(is_held_out(text, "unheard of") for text in texts)


def test_captions_in_other_styles(training: dict[str, ModuleType]) -> None:
    styles, dice = training["styles"], random.Random(1)
    text = "A dog, barking, sits on a couch with a (red) ball."
    assert styles.bare(text) == "dog, barking, sits on a couch with a (red) ball"
    assert styles.toolkit(text) == "a dog barking sits on a couch with a red ball"
    assert {styles.cut(text, dice) for _ in range(50)} == {
        "a dog, barking, sits on",
        "a dog, barking, sits on a",
        "a dog, barking, sits on a couch with",
        "a dog, barking, sits on a couch with a",
    }
    assert styles.cut("Birds sing.", dice) is None
    start, _, rest = styles.prompted(text, dice).partition(" a dog")
    assert start in styles.PROMPTS
    assert rest == ", barking, sits on a couch with a (red) ball."


def test_clauses_of_sounds_are_mixed(training: dict[str, ModuleType]) -> None:
    """Each clause keeps its connective, the first begins a caption, and all three forms come up."""
    styles, dice = training["styles"], random.Random(1)
    clauses = styles.Clauses.of(
        ["A man speaks, then a dog barks.", "Rain falls", "Birds sing as wind blows and a door shuts"]
    )
    assert clauses.first == ["A man speaks", "Rain falls", "Birds sing"]
    assert clauses.later == [", then a dog barks", " as wind blows", " and a door shuts"]
    texts = [clauses.mixed(dice) for _ in range(300)]
    assert {text.split(" then")[0].rstrip(",") for text in texts if text.endswith("then a dog barks")} >= set(
        clauses.first
    )
    assert {text.split()[0] for text in texts} == {"A", "Rain", "Birds", "a", "rain", "birds"}
    assert any(text.endswith(".") for text in texts)
    assert all("," not in text for text in texts if text[0].islower())


def test_mixed_captions_hold_no_held_out_caption(training: dict[str, ModuleType]) -> None:
    clauses = training["styles"].Clauses.of(
        ["A man speaks and a dog barks", "Rain falls", "Music plays as a bell rings"]
    )
    held = training["heldout"].Held(["Music plays and a dog barks."])
    dice = random.Random(1)
    mixed = list(training["captions"].without_held(lambda: clauses.mixed(dice), held, 200))
    assert len(mixed) == 200
    assert any("a bell rings and a dog barks" in text for text in mixed)
    assert not any("usic plays and a dog barks" in text for text in mixed)


def test_crossed_captions_go_on_with_the_same_word(training: dict[str, ModuleType]) -> None:
    dice = random.Random(1)
    halves = training["styles"].Halves.of(
        ["a dog on a red sofa", "two cats On grass", "a bird flies", "a man with hats"], dice
    )
    assert {joint for _, joint in halves.first} == {"on", "with"}
    texts = {halves.crossed(dice) for _ in range(100)}
    assert texts == {
        "a dog on a red sofa",
        "a dog On grass",
        "two cats on a red sofa",
        "two cats On grass",
        "a man with hats",
    }


def test_lemma_table_holds_what_rules_get_wrong(training: dict[str, ModuleType]) -> None:
    silver = training["silver"]
    sentence = silver.Sentence(
        words=("Feet", "dogs", "ate"), lemmas=("foot", "dog", "eat"), tags=("NNS", "NNS", "VBD"), heads=(), labels=()
    )
    table = training["lemma_table"].exceptions([silver.Caption("", (sentence,))])
    assert table == {"NNS": {"feet": "foot"}, "V": {"ate": "eat"}}


_DOG = """\
# newdoc
# text = A big brown dog sits.
1\tA\ta\t_\tDT\t_\t4\tdet\t_\t_
2\tbig\tbig\t_\tJJ\t_\t4\tamod\t_\t_
3\tbrown\tbrown\t_\tJJ\t_\t4\tamod\t_\t_
4\tdog\tdog\t_\tNN\t_\t5\tnsubj\t_\t_
5\tsits\tsit\t_\tVBZ\t_\t0\troot\t_\tSpaceAfter=No
6\t.\t.\t_\t.\t_\t5\tpunct\t_\t_

"""


@pytest.mark.parametrize(
    ("bare", "kept"),
    [("0", {"a big brown dog": 4, "a big brown dog sits": 5}), ("1", {"big brown dog": 3, "big brown dog sits": 4})],
)
def test_phrases_are_cut_out_of_captions_with_or_without_their_articles(
    training: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare: str, kept: dict[str, int]
) -> None:
    """A noun with all that hangs on it, and the caption without its period; each with as many tags as words."""
    parses, out = tmp_path / "dog.conllu.gz", tmp_path / "phrases.jsonl.gz"
    parses.write_bytes(gzip.compress(_DOG.encode()))
    hashes = tmp_path / "held_out.sha1.gz"
    hashes.write_bytes(gzip.compress(b""))
    options = ["--bare", bare, "--out", str(out), "--held-out-hashes", str(hashes)]
    monkeypatch.setattr(sys, "argv", ["scene_phrases.py", str(parses), *options])
    training["scene_phrases"].main()
    with gzip.open(out, "rt", encoding="utf-8") as lines:
        assert {" ".join(words): len(tags) for words, tags in map(json.loads, lines)} == kept


def test_nouns_that_captions_lack_may_be_things(training: dict[str, ModuleType]) -> None:
    """A game that is a ball, too, is kept out of long descriptions only; people who drew one decide otherwise."""
    nouns, caption = training["scene_data"].nouns, training["scene_data"].Caption
    lists = nouns([], ["basketball", "kindness", "dog"])
    assert lists["abstract"] == ["basketball", "kindness"]
    assert lists["seldom"] == ["basketball"]
    undrawn = [caption("a man plays basketball", ("a", "man", "plays", "basketball"), (("man",),))] * 3
    assert nouns(undrawn, ["basketball"])["seldom"] == []


def _said(own: Any) -> dict[tuple[str, str], str]:
    return {(own.words[one], own.words[other]): name for (one, other), name in own.relations.items()}


def _caption(training: dict[str, ModuleType], text: str, **relations: str) -> Any:
    """Return a caption whose two objects are its first word and its last one."""
    words = tuple(text.split())
    [name] = relations.values()
    last = len(words) - 1
    return training["scene_data"].Labelled(words, {(0, last): 3, (0, 0): 4, (last, last): 4}, {(0, last): name})


def test_moulds_keep_what_a_caption_says(training: dict[str, ModuleType]) -> None:
    """Put as descriptions put it, a caption keeps its relation, but that a verb that is added names it, too."""
    moulds = training["scene_moulds"]
    cup = _caption(training, "cup on the table", name="on")
    sitting = _caption(training, "cup sitting on the table", name="sit on")
    data = [cup, sitting, sitting]
    mould = moulds.Moulds(data, np.random.default_rng(3))
    made = [mould.moulded(own, own) for own in data for _ in range(100)]
    texts = {" ".join(own.words) for own in made}
    assert len(texts) > 30
    assert "on the table sits cup" in texts
    assert all(_said(own)["cup", "table"] in {"on", "sit on"} for own in made)


def test_the_background_is_drawn(training: dict[str, ModuleType]) -> None:
    """What a caption is about is in the background; what hangs on it is not."""
    caption = _caption(training, "cup on the table", name="on")
    made = training["scene_moulds"].in_background(caption, is_first=True, joint=(",",))
    assert made.words == ("in", "the", "background", ",", "cup", "on", "the", "table")
    assert _said(made) == {("cup", "table"): "on", ("cup", "background"): "in"}


def test_noun_phrases_take_the_place_of_others(training: dict[str, ModuleType]) -> None:
    """With what belongs to them, the article that they need, and nothing that is said of two things."""
    data, swaps = training["scene_data"], training["scene_swaps"]
    words = ("a", "small", "nodule", "in", "the", "left", "lung")
    pairs = {(2, 2): 4, (6, 6): 4, (2, 1): 2, (6, 5): 2, (2, 6): 3}
    own = data.Labelled(words, pairs, {(2, 6): "in"}, 1)
    tags = list(range(7))
    old = swaps.phrases(own, tags)
    assert {start: phrase.words for start, phrase in old.items()} == {1: ("small", "nodule"), 5: ("left", "lung")}
    other = data.Labelled(("Oven", "glove"), {(1, 1): 4, (1, 0): 1}, {}, 1)
    (glove,) = swaps.phrases(other, [8, 9]).values()
    made, numbers = swaps.swapped(own, tags, {1: glove}, old)
    assert " ".join(made.words) == "an oven glove in the left lung"
    assert numbers == [0, 8, 9, 3, 4, 5, 6]
    assert made.pairs == {(2, 2): 4, (2, 1): 1, (6, 6): 4, (6, 5): 2, (2, 6): 3}
    assert (made.relations, made.style) == ({(2, 6): "in"}, 1)
    shared = data.Labelled(words, pairs | {(6, 1): 2}, {}, 1)
    assert not swaps.phrases(shared, tags)
    rows = [(own, tags)] * (swaps.LEAST + 1)
    assert [made for made, _ in swaps.swaps(rows, 2, 1) if made != own] == []
    assert list(swaps.swaps(rows[1:], 2, 1)) == []
