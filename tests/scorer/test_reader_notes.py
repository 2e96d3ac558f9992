"""What readers say of items that can be scored, and of delimiters and ids that people write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.readers import checks, parse_columns, read_items
from spicegraph_scorer.readers.checks import is_english, language_note, notes_on
from spicegraph_scorer.readers.parses import is_graph

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"
OTHERS = {
    "Arabic": "رجل يركب الموج",
    "Chinese": "一个男人在冲浪。",
    "Dutch": "Een vrouw zit op een bank in het park.",
    "French": "des enfants jouent au football",
    "German": "Ein roter Bus fährt die Straße entlang.",
    "Hindi": "एक आदमी लहर पर सवारी कर रहा है।",
    "Indonesian": "Dua anjing bermain di salju.",
    "Italian": "Un uomo cavalca un'onda.",
    "Japanese": "男性が波に乗っている。",
    "Korean": "한 남자가 파도를 타고 있다.",
    "Polish": "Dwa psy bawią się w śniegu.",
    "Portuguese": "crianças jogando futebol",
    "Russian": "Мужчина катается на волне.",
    "Spanish": "Un hombre con una tabla de surf en la playa.",
    "Swedish": "Två hundar leker i snön.",
    "Turkish": "Karda oynayan iki köpek.",
    "Vietnamese": "Một người đàn ông đang lướt sóng.",
}
ENGLISH = (
    "no left turn sign",
    "a red bus",
    "tv on a wall",
    "dog dog dog dog",
    "zebra",
    "A zebra-striped sofa!",
    "5 : 30",
    "",
    "a los angeles dodgers player",
    "man in a hat",
)


@pytest.mark.parametrize("language", OTHERS)
def test_captions_in_other_languages_are_seen(language: str) -> None:
    assert not is_english(OTHERS[language])


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_not_taken_for_another_language(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize("name", ["human", "retrieval"])
def test_no_example_caption_is_taken_for_another_language(name: str) -> None:
    items = read_items(str(EXAMPLES / f"{name}.json"), references=str(EXAMPLES / "captions_without_first.json")).items
    assert [text for item in items for text in (item.candidate, *item.references) if not is_english(text)] == []
    assert list(notes_on(name, items)) == []


def test_captions_that_programs_write_for_missing_ones_are_seen() -> None:
    items = [Item(place, text, ("a bus",)) for place, text in enumerate(("nan", "None", " NaN ", "nan bread", "a bus"))]
    assert list(notes_on("mine.csv", items)) == [
        "mine.csv: 3 candidates read as text such as nan or None: are captions missing?"
    ]


def _items(others: int, count: int) -> list[Item]:
    texts = [OTHERS["German"]] * others + ["A man rides a wave."] * (count - others)
    return [Item(place, text, ("a bus",)) for place, text in enumerate(texts)]


@pytest.mark.parametrize(("others", "count"), [(1, 1), (1, 10), (100, 1000), (3000, 3000)])
def test_a_tenth_of_the_candidates_in_another_language_gives_a_note_with_their_number(others: int, count: int) -> None:
    note = language_note("mine.json", _items(others, count))
    assert note is not None
    assert note.startswith(f"mine.json: {others:,} of {count:,} candidate")


def test_graphs_in_rare_words_are_no_other_language_and_captions_beside_them_are() -> None:
    graph = "( qilin , zuo , pipa ) , ( pipa , hong , erhu )"
    items = [Item(1, graph, ("a bus",)), Item(2, "a bus stops", ("a bus",))]
    assert language_note("mine.json", items) is not None
    assert list(notes_on("mine.json", items, is_graph=is_graph)) == []
    mixed = [*items, Item(3, OTHERS["German"], ("a bus",))]
    assert list(notes_on("mine.json", mixed, is_graph=is_graph)) == [
        "mine.json: 1 of 3 candidates does not seem to be English; all metrics here are made for English"
    ]


def test_plain_captions_are_seen_without_the_lexicon(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_lexicon() -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(checks, "load_lexicon", load_lexicon)
    items = read_items(str(EXAMPLES / "human.json"), references=str(EXAMPLES / "captions_without_first.json")).items
    assert language_note("mine.json", items) is None


@pytest.mark.parametrize(("others", "count"), [(0, 10), (1, 11), (99, 1000)])
def test_a_few_candidates_in_another_language_give_no_note(others: int, count: int) -> None:
    assert language_note("mine.json", _items(others, count)) is None


@pytest.mark.parametrize("given", ["|", "#", "tab", "\\t"])
def test_a_table_is_read_with_the_delimiter_that_is_given(tmp_path: Path, given: str) -> None:
    character = {"tab": "\t", "\\t": "\t"}.get(given, given)
    path = tmp_path / "t.csv"
    path.write_text(character.join(("id", "candidate", "ref_1")) + "\n" + character.join(("1", "a, b; c", "a dog")))
    found = read_items(str(path), columns=parse_columns(None, delimiter=given))
    assert found.items == (Item(1, "a, b; c", ("a dog",)),)


@pytest.mark.parametrize("given", ["", "||", '"', "\n"])
def test_what_is_no_delimiter_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="--delimiter: expected one character"):
        parse_columns(None, delimiter=given)


def test_a_delimiter_of_a_format_without_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"image_id": 1, "test": "a dog", "refs": ["a dog"]}]')
    with pytest.raises(InputError, match="is JSON, which has no columns: --delimiter is for tables"):
        read_items(str(path), columns=parse_columns(None, delimiter="|"))


@pytest.mark.parametrize(
    ("ids", "reason"),
    [((1, "1"), "is a string here, and a number in"), (("1", 1), "is a number here, and a string in")],
)
def test_one_id_as_a_number_and_as_a_string_is_a_fault(
    tmp_path: Path, ids: tuple[int | str, int | str], reason: str
) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"id": one, "candidate": "a dog", "references": ["a dog"]} for one in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=f"line 2 .*, id: {reason} line 1"):
        read_items(str(path))


def test_ids_that_only_look_like_one_number_are_different(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"id": one, "candidate": "a dog", "references": ["a dog"]} for one in (1, "01", "1 ")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [item.id for item in read_items(str(path)).items] == [1, "01", "1 "]


LONG = "a dog and a cat and a man and a horse stand near the red table in the small kitchen with a big window"


@pytest.mark.parametrize(
    ("candidate", "references", "note"),
    [
        (
            LONG,
            ("a dog and a cat", "a kitchen"),
            "candidates have 24 words on average, references 4: BLEU, ROUGE-L and",
        ),
        ("a dog runs", ("dog", "a puppy"), "5 of 10 references are one word: SPICE finds neither attributes nor rela"),
        ("a dog runs", ("a puppy", "a puppy"), "5 of 5 items have a reference twice, which counts twice in CIDEr"),
    ],
)
def test_what_makes_scores_say_little(candidate: str, references: tuple[str, ...], note: str) -> None:
    items = [Item(number, candidate, references) for number in range(5)]
    (found,) = notes_on("a.json", items)
    assert found.startswith(f"a.json: {note}")
    assert list(notes_on("a.json", items[:4])) == [], "so few may be so by chance"


def test_usual_captions_have_no_notes() -> None:
    items = [Item(n, "a man rides a horse", ("a man on a horse", "a rider", "horse")) for n in range(2)]
    items += [Item(n, "a man rides a horse", ("a man on a horse", "a rider", "a horse")) for n in range(2, 10)]
    assert list(notes_on("a.json", items)) == []


def _notes(*candidates: str, reference: str = "A cat sits on a red sofa.") -> list[str]:
    items = [Item(number, text, (f"{reference} {number}",)) for number, text in enumerate(candidates)]
    return [note for note in notes_on("x", items) if "BLEU" not in note]


def test_phrases_that_open_captions_are_said() -> None:
    texts = [
        "The image shows a cat on a sofa.",
        "The image shows a dog in a park.",
        "In this picture, a man rides a horse.",
        "This photo depicts two birds on a wire.",
        "a bus on a street",
    ]
    assert _notes(*texts) == [
        "x: 4 of 5 candidates open with words such as 'The image shows', which count as part of the caption; "
        "references do not"
    ]
    assert _notes(*texts[2:], "a red bus", "a blue bus") == []
    assert _notes(*texts, reference="The image shows a cat") == []


def test_captions_that_are_all_the_same_are_said() -> None:
    assert _notes(*["a cat on a mat"] * 6) == ["x: 6 of 6 candidates are the same: 'a cat on a mat'"]
    assert _notes(*["a cat on a mat"] * 4) == []


def test_further_lines_are_said() -> None:
    texts = ["A cat on a sofa.\n\nIt is a sunny day.", "a dog\n", "a bus on a street", "two birds", "a man"]
    assert _notes(*texts) == ["x: 1 of 5 candidates have several lines, which all count as the caption"]


def test_refusals_are_said() -> None:
    expected = "x: 1 of 2 candidates say that the model can't answer, which is scored as a caption"
    assert expected in _notes("I'm sorry, I can't help with that.", "a dog runs")
    assert _notes(*(f"a dog with {number} legs" for number in range(200)), "I am unable to see an image above.") == []
