"""Tables of vectors: how they are learned, kept and read, and the one that ships."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pytest

from spicegraph_graded.spice_g.building import build_table, extended_table, word_sets
from spicegraph_graded.spice_g.vectors import Vectors, VectorTable, load_table, load_vectors
from spicegraph_parser.errors import DataError, InputError
from word_facts import WordFacts

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_BYTES = 2 * 2**20


IMAGES = [
    *[("red sofa room", "red couch room", "brown couch lamp")] * 6,
    *[("blue bus street", "blue coach road", "bus road")] * 6,
    *[("red bus street", "red coach street")] * 6,
    *[("blue sofa lamp", "blue couch room")] * 6,
]


def table(**options: int) -> VectorTable:
    return build_table(list(word_sets(IMAGES, WordFacts())), name="toy", **options)


def likeness(vectors: Vectors, one: str, other: str) -> float:
    rows = vectors.rows([(one,), (other,)]).vectors
    return float(rows[0] @ rows[1])


def test_words_for_the_same_thing_are_near_and_values_of_one_kind_are_not() -> None:
    learned = Vectors.of(table(dimensions=3))
    assert likeness(learned, "sofa", "couch") > likeness(learned, "sofa", "bus") + 0.2
    assert likeness(learned, "bus", "coach") > likeness(learned, "red", "blue") + 0.2


def test_the_same_captions_give_the_same_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    table().write(one)
    build_table(list(word_sets(reversed(IMAGES), WordFacts())), name="toy").write(other)
    assert one.read_bytes() == other.read_bytes()


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = table(dimensions=4)
    written.write(tmp_path / "toy.npz")
    read = VectorTable.read(tmp_path / "toy.npz")
    assert (read.signature, read.words, read.images) == (written.signature, written.words, len(IMAGES))
    assert np.array_equal(read.vectors, written.vectors)


def test_every_distinct_caption_is_parsed_once() -> None:
    source = WordFacts()
    assert sum(map(len, word_sets(IMAGES, source))) == sum(map(len, IMAGES))
    assert sorted(source.seen) == sorted({text for image in IMAGES for text in image})


def test_rare_words_are_left_out_and_counted_by_image() -> None:
    learned = table(fewest=7)
    assert "brown" not in learned.words
    counts = dict(zip(learned.words, learned.image_counts.tolist(), strict=True))
    assert counts["red"] == counts["sofa"] == 12


@pytest.mark.parametrize(
    ("images", "name", "message"),
    [
        ([("dog",)], "few", "only 0 words"),
        ([("dog cat mat",)] * 5, "lonely", "several of each image"),
        (IMAGES, "two\nlines", "one line"),
        (IMAGES, " ", "one line"),
    ],
)
def test_captions_that_make_no_table_are_refused(images: list[tuple[str, ...]], name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_table(list(word_sets(images, WordFacts())), name=name)


@pytest.mark.parametrize("content", [b"", b"no table", b"PK\x03\x04 cut off"])
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"table\.npz: cannot be read as a table of vectors"):
        VectorTable.read(path)


def test_a_missing_and_a_damaged_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        VectorTable.read(tmp_path / "none.npz")
    learned = table()
    damaged = VectorTable("toy", learned.images, learned.words, learned.image_counts, learned.vectors[1:])
    damaged.write(tmp_path / "damaged.npz")
    with pytest.raises(DataError, match="damaged"):
        VectorTable.read(tmp_path / "damaged.npz")


def test_an_extended_table_has_the_words_of_both_and_the_mean_of_their_likeness() -> None:
    base, own = (
        table(),
        build_table(list(word_sets([("red sofa rug", "red couch rug", "sofa mat")] * 9, WordFacts())), name="own"),
    )
    both = extended_table(base, own)
    assert (both.name, both.images) == ("own", base.images + own.images)
    assert set(both.words) == {*base.words, *own.words}
    count = {word: int(n) for word, n in zip(both.words, both.image_counts, strict=True)}
    assert (count["sofa"], count["rug"], count["bus"]) == (12 + 9, 9, 12)
    first, second, found = map(Vectors.of, (base, own, both))
    for one, other in (("sofa", "couch"), ("red", "couch")):
        mean = (likeness(first, one, other) + likeness(second, one, other)) / 2
        assert likeness(found, one, other) == pytest.approx(mean, abs=0.02)
    assert likeness(found, "bus", "coach") == pytest.approx(likeness(first, "bus", "coach"), abs=0.02)
    assert likeness(found, "rug", "bus") == 0
    extended = extended_table(load_table(), own)
    assert extended.order == load_table().order
    assert extended.vectors.shape[1] == 192 + own.vectors.shape[1]


def test_the_bundled_table_is_the_one_that_the_documentation_measures() -> None:
    bundled = load_table()
    assert bundled.signature == "coco-train2014-0f67e52e"
    assert bundled.images == 82_783
    assert bundled.vectors.shape == (6_830, 192)
    size = (files("spicegraph_graded") / "spice_g" / "data" / "coco_train2014.npz").stat().st_size  # type: ignore[attr-defined]
    assert size <= LARGEST_BYTES


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [("sofa", "couch", "truck"), ("man", "guy", "oven"), ("ride", "surf", "oven"), ("bike", "bicycle", "sheep")],
)
def test_bundled_vectors_know_words_for_the_same_thing(word: str, near: str, far: str) -> None:
    vectors = load_vectors()
    assert likeness(vectors, word, near) > likeness(vectors, word, far) + 0.2


def test_a_phrase_is_near_its_words_and_an_unknown_one_has_no_direction() -> None:
    rows = load_vectors().rows([("tennis racket",), ("racket",), ("blorf",), ("blorf racket",)])
    assert float(rows.vectors[0] @ rows.vectors[1]) > 0.7
    assert not rows.vectors[2].any()
    assert rows.vectors[3] == pytest.approx(rows.vectors[1])
    assert rows.idf[2] == 1


@pytest.mark.slow
def test_what_unknown_words_need_can_be_built_ahead() -> None:
    unknown = Vectors.of(load_table()).unknown
    later = Vectors.of(load_table()).unknown
    assert {"_by_stem", "_below"}.isdisjoint(vars(unknown))
    assert unknown.make_ready() > 10_000
    assert {"_by_stem", "_below"} <= set(vars(unknown))
    for word in ("wildebeest", "oscilloscopes", "xqzzj"):
        ready, found = unknown.direction(word), later.direction(word)
        assert (ready is None) == (found is None)
        assert ready is None or np.array_equal(ready, found)
