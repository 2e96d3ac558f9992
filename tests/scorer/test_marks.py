"""Marks that models leave in captions: which there are, what is under them, and what is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, compare_systems, read_items, score, score_captions
from spicegraph_scorer.core.items import CheckedItems, Fingerprint
from spicegraph_scorer.core.marks import FoundMarks, without_marks
from spicegraph_scorer.readers.checks import check_items, notes_on

if TYPE_CHECKING:
    from pathlib import Path

CLEAN = "A brown dog runs on the grass."

# A caption with a mark, the caption that strip leaves, and the marks that are counted.
MARKED = [
    ("{} <eos> <pad> <pad>", CLEAN, {"<eos>": 1, "<pad>": 2}),
    ("<s> {} </s>", CLEAN, {"<s>": 1, "</s>": 1}),
    ("{}</s></s></s>", CLEAN, {"</s>": 3}),
    ("<bos>{}<eos>", CLEAN, {"<bos>": 1, "<eos>": 1}),
    ("<sos> {}", CLEAN, {"<sos>": 1}),
    ("<start> {} <end>", CLEAN, {"<start>": 1, "<end>": 1}),
    ("startseq {} endseq", CLEAN, {"startseq": 1, "endseq": 1}),
    ("[CLS] {} [SEP] [PAD] [PAD]", CLEAN, {"[cls]": 1, "[sep]": 1, "[pad]": 2}),
    ("[MASK] {}", CLEAN, {"[mask]": 1}),
    ("{} [unused12]", CLEAN, {"[unusedN]": 1}),
    ("<|startoftext|> {} <|endoftext|>", CLEAN, {"<|startoftext|>": 1, "<|endoftext|>": 1}),
    ("<|im_start|>assistant\n{}<|im_end|>", CLEAN, {"<|im_start|>assistant": 1, "<|im_end|>": 1}),
    ("<start_of_turn>model\n{}<end_of_turn>", CLEAN, {"<start_of_turn>model": 1, "<end_of_turn>": 1}),
    (
        "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
        CLEAN,
        {"<|start_header_id|>assistant": 1, "<|end_header_id|>": 1, "<|eot_id|>": 1},
    ),
    ("<｜begin▁of▁sentence｜>{}", CLEAN, {"<｜begin▁of▁sentence｜>": 1}),
    ("<image>\n{}", CLEAN, {"<image>": 1}),
    ("<extra_id_0> {} <loc_17>", CLEAN, {"<extra_id_N>": 1, "<loc_N>": 1}),
    ("[INST] {} [/INST]", CLEAN, {"[inst]": 1, "[/inst]": 1}),
    ("{}<0x0A>", CLEAN, {"bytes": 1}),
    ("A man<0xE2><0x80><0x99>s dog", "A man’s dog", {"bytes": 1}),
    ("A <unk> dog runs.", "A dog runs.", {"<unk>": 1}),
    ("Two people ride bikes on a [UNK].", "Two people ride bikes on a .", {"[unk]": 1}),
    ("a UNK on a < unk >", "a on a", {"unk": 1, "<unk>": 1}),
    ("ĠA Ġbrown Ġdog Ġrun s Ġon Ġthe Ġgrass .", CLEAN, {"Ġ": 7}),
    ("AĠbrownĠdogĠrunsĠonĠtheĠgrass.ĊĊ", CLEAN, {"Ġ": 8}),
    ("a cat Ġon Ġa sofa", "a cat on a sofa", {"Ġ": 2}),
    ("▁A ▁brown ▁dog ▁run s ▁on ▁the ▁grass .", CLEAN, {"▁": 7}),
    ("▁A▁brown▁dog▁runs▁on▁the▁grass.", CLEAN, {"▁": 7}),
    ("A brown dog run ##s on the gra ##ss.", CLEAN, {"##": 2}),
    ("A brown dog run@@ s on the grass.", CLEAN, {"@@": 1}),
    ("A</w> brown</w> dog</w> run s</w> on</w> the</w> grass</w> .", CLEAN, {"</w>": 7}),
    ("A: {}", CLEAN, {"prompt": 1}),
    ("ASSISTANT: {}", CLEAN, {"prompt": 1}),
    ("Assistant: {}", CLEAN, {"prompt": 1}),
    ("### Assistant: {}", CLEAN, {"prompt": 1}),
    ("Caption: {}", CLEAN, {"prompt": 1}),
    ("**Caption:** {}", CLEAN, {"prompt": 1}),
    ("USER: <image>\nDescribe the image. ASSISTANT: {}", CLEAN, {"prompt": 1}),
    ("```\n{}\n```", CLEAN, {"code fence": 2}),
    ('```json\n{{"caption": "{}"}}\n```', CLEAN, {"code fence": 2, "list": 1}),
    ("['{}']", CLEAN, {"list": 1}),
    ("**{}**", CLEAN, {"Markdown": 1}),
    ("*{}*", CLEAN, {"Markdown": 1}),
    ("A **brown dog** runs on __the grass__.", CLEAN, {"Markdown": 2}),
    ("## {}", CLEAN, {"Markdown": 1}),
    ("{}\\n", CLEAN, {"escape": 1}),
    ("A brown dog\\nruns on the grass.", CLEAN, {"escape": 1}),
    ("A man\\u2019s caf\\u00e9 \\ud83d\\ude00", "A man’s café 😀", {"escape": 3}),
    ("A man\\'s dog", "A man's dog", {"escape": 1}),
    ("A manâ€™s cafÃ© â€œopenâ€\x9d ðŸ˜€ Â£5", "A man’s café “open” 😀 £5", {"UTF-8 twice": 6}),
    ("A manâ\x80\x99s dog", "A man’s dog", {"UTF-8 twice": 1}),
    ("A brown dog&nbsp;runs on&#32;the grass.", CLEAN, {"HTML entity": 2}),
    ("Texas A&amp;M", "Texas A&M", {"HTML entity": 1}),
    ("<p>A <b>brown</b> dog runs<br/> on the grass.</p>", CLEAN, {"HTML": 5}),
    ("<img src='x.png'> {}", CLEAN, {"HTML": 1}),
    ("<think>Is it\na dog?</think>\n\n{}", CLEAN, {"<think>": 1}),
    ("It is a dog.</think>{}", CLEAN, {"<think>": 1}),
    ("&amp;lt;eos&amp;gt; {}", CLEAN, {"HTML entity": 4, "<eos>": 1}),
]

UNMARKED = [
    "I <3 NY",
    "a & b; c",
    "an AT&T sign",
    "a shirt with #1 on it",
    "# 8 for Iowa State",
    "# steam train approaching a city",
    "the scale reads 5 > 3",
    "<a man> runs",
    "says *imagine* on one side",
    "person . fictional object * read more",
    "prominently displayed: CHETTO AS F**K",
    '"A dog runs."',
    "'a dog'",
    "`` a word '' on a sign",
    "the little girl ` s ear",
    "a red, black\\white striped tie",
    "A crow\\d of people",
    "plan A: a dog",
    "image : cat , relaxing on the couch",
    "person: a photo",
    "the Ġgantija temples",
    "SÃO LUIZ in white letters",
    "a sign that says [illegible]",
    "zebra number 3 [furthest]",
    "an elephant's trunk, a drunk chipmunk",
    "¾ view of a café — it’s £5",
    "a couch¬",
    "A dog runs.\n\nThe grass is green.",
    "a dog_walker and a snake__case",
    "a ``` b".replace("```", "`"),
    " ".join(["a **surfer** in a **black wetsuit**", *["word"] * 30]),
]


@pytest.mark.parametrize(("text", "clean", "counts"), MARKED, ids=[text for text, *_ in MARKED])
def test_a_marked_caption(text: str, clean: str, counts: dict[str, int]) -> None:
    found = without_marks(text.format(CLEAN))
    assert found == (clean, counts)
    assert without_marks(clean) == (clean, {})


@pytest.mark.parametrize("text", UNMARKED)
def test_no_mark(text: str) -> None:
    assert without_marks(text) == (text, {})


_TOKENS = ("<eos>", "</s>", "<pad>", "[PAD]", "[SEP]", "<|endoftext|>", "<|im_end|>", "<end_of_turn>")
_WORDS = st.lists(
    st.sampled_from(
        [*CLEAN.split(), "I", "<3", "AT&T", "#1", "5", ">", "*", "A:", "trunk", "“red”", "it's", "¾", "(a)"]
    ),
    min_size=1,
)


@given(_WORDS)
def test_captions_without_marks_stay(words: list[str]) -> None:
    text = " ".join(words)
    expected = text.removeprefix("A: ") if len(words) > 1 and words[:2] != ["A:", "A:"] else None
    assert text.startswith("A:") or without_marks(text) == (text, {})
    assert expected is None or without_marks(text)[0] == expected.strip()


@given(st.text(st.characters(codec="ascii", exclude_characters="<[{&\\:#*_`@", exclude_categories=["Cc"])))
def test_without_their_characters_nothing_is_a_mark(text: str) -> None:
    assert "unk" in text.lower() or "seq" in text.lower() or without_marks(text) == (text, {})


@given(st.lists(st.sampled_from(CLEAN.split()), min_size=1), st.lists(st.sampled_from(_TOKENS), min_size=1), st.data())
def test_tokens_anywhere_leave_the_caption(words: list[str], tokens: list[str], data: st.DataObject) -> None:
    mixed = list(words)
    for token in tokens:
        mixed.insert(data.draw(st.integers(0, len(mixed))), token)
    text, found = without_marks(" ".join(mixed))
    assert text == " ".join(words)
    assert sum(found.values()) == len(tokens)


@given(st.text() | st.text("<>|&;#*_`\\ungeosadp[] Ġ▁@:A{}'\"Ãâ€™"))
def test_nothing_is_left_to_take_off(text: str) -> None:
    clean, found = without_marks(text)
    assert bool(found) == (clean != text)
    assert without_marks(clean) == (clean, {})


ITEMS = (
    Item(1, "a brown dog runs <eos> <pad> <pad>", ("A dog runs on the grass.", "A brown dog is running.")),
    Item(2, "two <unk> people ride", ("Two men ride bikes.<|endoftext|>", "Men are riding.")),
)


def test_they_are_refused_in_one_message() -> None:
    with pytest.raises(InputError) as caught:
        score(ITEMS, ["rouge"])
    assert str(caught.value) == (
        "items: 2 of 2 candidates and 1 reference contain what models leave behind, such as "
        "'a brown dog runs <eos> <pad> <pad>' (image_id 1); 'two <unk> people ride' (image_id 2); "
        "<|endoftext|> (image_id 2, reference 1); to take them off, say so: --control-tokens strip; to score them as "
        'words: --control-tokens keep (in Python control_tokens="strip")'
    )


def test_stripped_they_score_as_clean_captions() -> None:
    clean = [
        Item(1, "a brown dog runs", ITEMS[0].references),
        Item(2, "two people ride", ("Two men ride bikes.", "Men are riding.")),
    ]
    stripped = score(ITEMS, ["rouge", "bleu"], control_tokens="strip")
    assert stripped.corpus == score(clean, ["rouge", "bleu"]).corpus
    assert stripped.items == tuple(clean)
    assert stripped.signature["control_tokens"] == {
        "stripped": {"<pad>": 2, "<eos>": 1, "<unk>": 1, "<|endoftext|>": 1},
        "candidates": 2,
        "references": 1,
        "missing_words": 1,
    }
    assert "control_tokens" not in score(clean, ["rouge"]).signature


def test_kept_they_are_words_and_the_signature_says_so() -> None:
    kept = score(ITEMS, ["rouge"], control_tokens="keep")
    assert kept.items == ITEMS
    assert kept.signature["control_tokens"]["kept"]["<pad>"] == 2  # type: ignore[call-overload,index]


def test_the_rule_is_one_of_three() -> None:
    with pytest.raises(InputError, match="control_tokens: expected 'refuse', 'strip' or 'keep', got 'drop'"):
        score(ITEMS, ["rouge"], control_tokens="drop")  # type: ignore[arg-type]


def test_what_is_empty_without_marks_is_a_fault() -> None:
    items = [Item(1, "<pad><pad>", ("a dog",)), Item(2, "a dog", ("<eos>", "a dog"))]
    with pytest.raises(InputError) as caught:
        score(items, ["rouge"], control_tokens="strip")
    assert "item 1, without control tokens (image_id 1), candidate: is empty" in str(caught.value)
    assert "item 2, without control tokens (image_id 2), references[0]: is empty" in str(caught.value)
    assert score(items[:1], ["rouge"], control_tokens="strip", empty="zero").corpus == {"ROUGE_L": 0.0}


def test_in_lists() -> None:
    texts, references = [item.candidate for item in ITEMS], [item.references for item in ITEMS]
    with pytest.raises(InputError, match="control_tokens"):
        score_captions(texts, references, ["rouge"])
    result = score_captions(texts, references, ["rouge"], control_tokens="strip")
    assert result.items[0].candidate == "a brown dog runs"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Write candidates with marks, and references."""
    results = [{"image_id": item.id, "caption": item.candidate} for item in ITEMS]
    annotations = [{"image_id": item.id, "caption": text} for item in ITEMS for text in item.references]
    (tmp_path / "eos.json").write_text(json.dumps(results))
    (tmp_path / "coco.json").write_text(json.dumps({"annotations": annotations}))
    return str(tmp_path / "eos.json"), str(tmp_path / "coco.json")


def test_in_files(files: tuple[str, str]) -> None:
    results, references = files
    with pytest.raises(InputError, match=r"eos\.json: 2 of 2 candidates and 1 reference contain"):
        read_items(results, references=references)
    dataset = read_items(results, references=references, control_tokens="strip")
    assert list(notes_on("eos.json", dataset.items)) == [
        "eos.json: 2 of 2 candidates and 1 reference contain what models leave behind, which was taken off: "
        "<pad>, <eos>, <unk>, <|endoftext|>",
        "eos.json: 1 word is missing in captions, where a token such as <unk> stood",
    ]
    kept = read_items(results, references=references, control_tokens="keep")
    assert "which is scored as words: <pad>" in next(notes_on("eos.json", kept.items))
    assert kept.items == ITEMS
    # Items remember what was done, and what was kept can still be taken off.
    assert score(kept, ["rouge"]).corpus == score(ITEMS, ["rouge"], control_tokens="keep").corpus
    assert score(kept.items, ["rouge"], control_tokens="strip").corpus == score(dataset, ["rouge"]).corpus


def test_two_systems_share_a_signature_that_says_so(files: tuple[str, str]) -> None:
    stripped = read_items(files[0], references=files[1], control_tokens="strip").items
    clean = [Item(item.id, item.references[0], item.references) for item in stripped]
    signature = compare_systems(clean, stripped, ["rouge"]).signature
    assert signature["control_tokens"]["stripped"]["<eos>"] == 1  # type: ignore[call-overload,index]


def test_fingerprints_add_up() -> None:
    whole = check_items(ITEMS, control_tokens="strip")
    parts = [Fingerprint.of(check_items([item], control_tokens="strip")) for item in ITEMS]
    both = parts[0] + parts[1]
    assert both.marks.signature() == whole.marks.signature()
    assert Fingerprint.of(whole).digest == both.digest
    assert not FoundMarks()
    assert CheckedItems(ITEMS).marks == FoundMarks()
