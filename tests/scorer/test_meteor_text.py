"""METEOR's own view of text, and its two hashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.spice.index import java_hash
from spicegraph_scorer.metrics.meteor.paraphrases import LineHasher
from spicegraph_scorer.metrics.meteor.text import TextOptions, normalize, split_line, tokenize

PREFIXES = {"No": True, "Mr": False}

# Letters, digits and everything that a rule of the normaliser names, so that rules meet often.
MARKS = st.text(st.sampled_from("aBz19 .,'-–—‘’`“”\"|\t\n\x0b\u00a0\u2003éЖ中🐶"), max_size=30)
TEXTS = st.one_of(MARKS, st.text(max_size=30))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a-b-c-d", "a b-c d"),
        ("black-and-white", "black and white"),
        ("don't", "don 't"),
        ("the 1990's", "the 1990 's"),
        ("a,,b 1,000 1,a", "a , ,b 1,000 1 , a"),
        ("wait...what", "wait ... what"),
        ("The U.S. won", "The US won"),
        ("Mr. X. No. 5. No. six.", "Mr. X . No. 5 . No. six ."),
        ("No. Five", "No . Five"),
        ("‘so’ ``he'' said", "' so ' \" he \" said"),
        ("x–y", "x - y"),
        ("naïve 中文", "naïve 中 文"),
    ],
)
def test_normalizer_follows_its_rules(text: str, expected: str) -> None:
    assert normalize(text, prefixes=PREFIXES) == expected


def test_punctuation_can_be_left_out() -> None:
    assert normalize("A dog, isn't it?", prefixes={}, punctuation=False) == "A dog isn t it"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (TextOptions(), ("a", "dog", ".")),
        (TextOptions(punctuation=False), ("a", "dog")),
        (TextOptions(normalize=False), ("A", "dog.")),
        (TextOptions(normalize=False, lowercase=True), ("a", "dog.")),
    ],
)
def test_options_say_what_is_done_to_text(options: TextOptions, expected: tuple[str, ...]) -> None:
    assert tokenize("A dog.", prefixes={}, options=options) == expected


@given(TEXTS)
def test_any_text_has_tokens_without_separators(text: str) -> None:
    tokens = tokenize(text, prefixes=PREFIXES)
    assert all(token and not set(token) & set(" \t\n\r\f") for token in tokens)
    assert tokens == tuple(token.lower() for token in tokens)


@given(st.text("abz019 ", max_size=30))
def test_the_short_way_gives_what_the_normalizer_gives(text: str) -> None:
    assert tokenize(text, prefixes=PREFIXES) == tuple(normalize(text, prefixes=PREFIXES).split())


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("SCORE ||| a ||| b", ["SCORE", "a", "b"]),
        ("SCORE|||a||| ", ["SCORE", "a", ""]),
        ("SCORE ||| a ||||||", ["SCORE", "a"]),
        ("SCORE ||| \x0ba\x1f |||| b", ["SCORE", "a", "| b"]),
    ],
)
def test_lines_are_cut_as_the_program_cuts_them(line: str, fields: list[str]) -> None:
    assert split_line(line) == fields


@pytest.mark.parametrize(
    ("word", "value"),
    [("", 0), ("a", 97), ("Aa", 2112), ("BB", 2112), ("polygenelubricants", 0x80000000), ("🐶", 0xD83D * 31 + 0xDC36)],
)
def test_java_hash_is_javas(word: str, value: int) -> None:
    assert java_hash(word) == value


def test_java_hashes_of_short_words_collide() -> None:
    for one, other in [("an", "c0"), ("is", "k5"), ("on", "q0"), ("xn", "z0")]:
        assert java_hash(one) == java_hash(other)


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=8), min_size=1, max_size=8))
def test_a_phrase_has_the_hash_that_its_words_give(words: list[str]) -> None:
    hasher = LineHasher()
    hashes, lengths = hasher.words(words)
    joined, joined_lengths = hashes[:1], lengths[:1]
    for word in range(1, len(words)):
        joined = hasher.join(joined, joined_lengths, hashes[word : word + 1])
        joined_lengths = joined_lengths + 1 + lengths[word : word + 1]
    whole, whole_lengths = hasher.words([" ".join(words)])
    assert joined.tolist() == whole.tolist()
    assert joined_lengths.tolist() == whole_lengths.tolist()


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=6))
def test_a_line_has_the_same_hash_wherever_it_stands(lines: list[bytes]) -> None:
    hasher = LineHasher()

    def hashes(text: bytes) -> list[int]:
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
        return list(map(int, hasher.lines(text, ends)))

    together = hashes(b"".join(line + b"\n" for line in lines))
    assert together == [hashes(line + b"\n")[0] for line in lines]
    assert len(set(together)) == len(set(lines))
