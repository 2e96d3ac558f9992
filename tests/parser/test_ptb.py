"""Penn Treebank tokens equal those of the Java tokenizers, on goldens captured from them."""

from __future__ import annotations

import gzip
import json
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.ptb import plain_words, split_sentences, tokenize, tokenize_lines, words
from spicegraph_parser.ptb.scan import _longest, _scanners

GOLDEN = Path(__file__).parents[1] / "golden" / "ptb"
LINE_BREAKS = "\n\r\x0b\x0c\u2028\u2029"


def golden(name: str, source: str | None = None) -> list[dict]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [case for case in map(json.loads, lines) if source in (None, case.get("source"))]


@pytest.mark.parametrize(("source", "count"), [("random", 1973), ("pattern", 1958), ("odd", 629)])
def test_coco_tokens_equal_java(source, count):
    """Every text that CoreNLP 3.4.1 saw alone has its tokens, lower-cased as the COCO toolkit has them."""
    cases = golden("ptb_a_dev", source)
    assert len(cases) == count
    got = {case["text"]: [word.lower() for word in words(case["text"])] for case in cases}
    assert got == {case["text"]: case["tokens_raw"] for case in cases}


@pytest.mark.parametrize(("source", "count"), [("random", 689), ("pattern", 598), ("odd", 629)])
def test_spice_tokens_offsets_and_sentences_equal_java(source, count):
    """Tokens of CoreNLP 3.6.0 keep their case and know their code points; sentences end where its do."""
    cases = golden("ptb_b_dev", source)
    assert len(cases) == count
    for case in cases:
        tokens = tokenize(case["text"], variant="spice")
        wanted = [(text, *offsets) for text, offsets in zip(case["tokens"], case["offsets"], strict=True)]
        assert (case["text"], tokens) == (case["text"], wanted)
        assert split_sentences(tokens) == case["sentence_lengths"]


def test_batches_equal_java():
    """Captions that Java read as one text have the tokens that what follows gives them."""
    cases = golden("ptb_a_batch_dev")
    assert len(cases) == 84
    for case in cases:
        got = [[word.lower() for word in line] for line in tokenize_lines(case["texts"])]
        assert got == case["tokens_raw"]


def test_a_batch_differs_from_its_captions_alone():
    """The batch goldens test something: some captions have other tokens alone."""
    texts = [text for case in golden("ptb_a_batch_dev") for text in case["texts"]]
    differing = [
        text
        for case in golden("ptb_a_batch_dev")
        for text, line in zip(case["texts"], tokenize_lines(case["texts"]), strict=True)
        if words(text) != line
    ]
    assert 0 < len(differing) < len(texts) / 10


@pytest.mark.parametrize("variant", ["coco", "spice"])
def test_edited_captions_equal_java(variant):
    """Captions with random edits, random signs and random fragments have Java's tokens."""
    cases = golden(f"edited_{variant}")
    got = tokenize_lines([case["text"] for case in cases], variant=variant)
    assert len(cases) == 3200
    differing = [
        (case["text"], tokens, case["tokens"])
        for case, tokens in zip(cases, got, strict=True)
        if tokens != case["tokens"]
    ]
    assert differing == []


# One line for each construction; the tokens are those that CoreNLP 3.4.1 prints.
CONSTRUCTIONS = {
    "a toilet.next to it": "a toilet.next to it",
    "a well-known man- here": "a well-known man - here",
    "a tub/shower and w/ a/b/c/d": "a tub/shower and w / a/b/c / d",
    "I can't, cannot and gonna": "I ca n't , can not and gon na",
    "dogs' dog's we've it'll.": "dogs ' dog 's we 've it 'll .",
    "rock 'n' roll o'clock po'boy": "rock 'n' roll o'clock po ` boy",
    '"hi" " hi "': "`` hi '' '' hi ''",
    "Mr. K. on St. Rd. here": "Mr. K. on St. Rd. here",
    "on Main Rd. The car": "on Main Rd. . The car",
    "in the U.S. The car": "in the U.S. . The car",
    "bikes., no. 5, no. Yes": "bikes. , no. 5 , no . Yes",
    "1,000 at 12:35, .5 -18 $5": "1,000 at 12:35 , .5 -18 $ 5",
    "2 1/2 and 1/22/2014": "2\u00a01/2 and 1/22/2014",
    "(a) [b] {c} :) x": "-LRB- a -RRB- -LSB- b -RSB- -LCB- c -RCB- :-RRB- x",
    "a&b A&P &amp; C++": "a & b A&P & C++",
    "see http://a.bc/d. #tag @me": "see http://a.bc/d . #tag @me",
    "done.. done... --- ?!": "done . . done ... -- ?!",
    "don\u2019t \u201chi\u201d \u2014 \u2026 caf\u00e9": "do n't `` hi '' -- ... caf\u00e9",
}


@pytest.mark.parametrize("text", CONSTRUCTIONS)
def test_construction(text):
    """Each construction falls into the tokens that Java gives."""
    assert " ".join(words(text)) == CONSTRUCTIONS[text]


def test_variants_differ_where_the_versions_do():
    """The later version keeps a known name's mark, and a run of equal signs."""
    assert words("Yahoo! a==b") == ["Yahoo", "!", "a", "=", "=", "b"]
    assert words("Yahoo! a==b", variant="spice") == ["Yahoo!", "a", "==", "b"]


PLAIN_WORDS = st.sampled_from(
    ["a", "A", "dog", "Dog", "K", "St", "etc", "Mass", "mass", "cannot", "Gonna", "no", "I", "ve", "can", "not"]
)
PLAIN_TEXTS = st.lists(st.tuples(PLAIN_WORDS, st.sampled_from([" ", ", ", "  ", ",  ", ". ", ".  "])), max_size=6)


def by_the_rules(text, variant):
    """Tokenize by the rules alone, at every character that is no space."""
    for_words, for_signs = _scanners(variant, ascii_only=text.isascii())
    position, written = 0, []
    while position < len(text):
        if text[position] == " ":
            position += 1
            continue
        position, token = _longest(for_words if text[position].isalnum() else for_signs, text, position)
        written.append(token)
    return written


@given(PLAIN_TEXTS, PLAIN_WORDS, st.sampled_from(["", ".", " .", ". ", ". A dog", ". . .", ".,", "'s", "-dog", "  "]))
def test_the_short_way_is_the_rules(parts, last, end):
    """Plain captions have the tokens that the rules alone give, also where the rest needs the rules."""
    text = "".join(word + gap for word, gap in parts) + last + end
    for variant in ("coco", "spice"):
        assert words(text, variant=variant) == by_the_rules(text, variant)
        assert [token.text for token in tokenize(text, variant=variant)] == by_the_rules(text, variant)
    ends = [place for place, word in enumerate(plain_words(text) or (), 1) if word == "."]
    if ends:
        assert list(accumulate(split_sentences(tokenize(text, variant="spice"))))[: len(ends)] == ends


@given(st.text(max_size=60), st.sampled_from(["coco", "spice"]))
def test_any_text_has_tokens_in_order(text, variant):
    """No text raises; tokens lie in the text, in order, apart; sentences share them out."""
    tokens = tokenize(text, variant=variant)
    assert words(text, variant=variant) == [token.text for token in tokens]
    ends = [0, *(token.end for token in tokens)]
    assert all(
        end <= token.start < token.end <= len(text) and token.text for end, token in zip(ends, tokens, strict=False)
    )
    assert sum(split_sentences(tokens)) == len(tokens)


@given(st.lists(st.text(max_size=20), max_size=5))
def test_lines_keep_their_number(lines):
    """Every line has its list, whatever it holds; no token has a line break in it."""
    found = tokenize_lines(lines)
    assert len(found) == len(lines)
    assert not any(set(token) & set(LINE_BREAKS) for line in found for token in line)


@given(st.text(max_size=40).filter(lambda text: not set(text) & set(LINE_BREAKS)))
def test_a_single_line_is_a_text(text):
    """Of one line nothing follows, so it has the tokens that it has alone."""
    assert tokenize_lines([text]) == [words(text)]


@pytest.mark.parametrize("text", ["", " ", "\t", "\u00a0", "\u200b", "\U0001f642\U0001f642"])
def test_nothing_to_take_gives_no_tokens(text):
    """Blank text and emoji have no tokens."""
    assert tokenize(text) == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece", ["a,", "a.", "a-", "a'", "a@", "<a ", "<!a", "%a.", "www.a.", "K. ", "5 ", "(", "\U0001f642", "\u00e9,"]
)
def test_hostile_text_takes_no_time(piece):
    """Repeating what several rules could begin with takes seconds at most, not hours."""
    text = piece * (20_000 // len(piece))
    assert all(0 <= token.start < token.end <= len(text) for token in tokenize(text))


def test_what_the_functions_give():
    """Tokens know their place; quotes stay with their sentence; a line's tokens may depend on the next one."""
    assert words("A dog's toy (red), etc.") == ["A", "dog", "'s", "toy", "-LRB-", "red", "-RRB-", ",", "etc.", "."]
    assert tokenize("can't") == [("ca", 0, 2), ("n't", 2, 5)]
    assert plain_words("A red, old bus. It stops.") == ["A", "red", ",", "old", "bus", ".", "It", "stops", "."]
    assert plain_words("A dog's toy") is None
    assert tokenize_lines(["The letter K.", "A man"]) == [["The", "letter", "K", "."], ["A", "man"]]
    assert words("The letter K.") == ["The", "letter", "K."]
    assert split_sentences(tokenize('No. "Yes." She left', variant="spice")) == [2, 4, 2]
