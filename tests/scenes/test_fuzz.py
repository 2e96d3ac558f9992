"""Texts that nobody wrote: captions of the tests, cut, joined and mutated, and templates with any word anywhere."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Final

import pytest

from spicegraph_parser.spice.parse import word_set
from spicegraph_scenes import SCENE_WEIGHTS
from spicegraph_scenes.denial import HEDGES, TRIGGERS
from spicegraph_scenes.parser import SceneParser

_TESTS: Final = Path(__file__).parents[1]
_GOLDEN: Final = _TESTS / "golden" / "scenes"
_TEXTS: Final = 5000
_SIGNS: Final = (
    ",",
    ".",
    ";",
    "(",
    ")",
    '"',
    "“",
    "”",
    "'",
    "--",
    "/",
    "*",
    "#",
    "\n",
    "...",
    "\u200b",
    "é",
    "🐕",
    "%",
)
_WORDS: Final = word_set(
    """a the two 3 of in on with than each other and or but as that which who is are to by it they one dog men boxes
        apples woman's rings red taller running held cuts 3cm LABEL 'OK' about while some there"""
)


def _captions() -> list[str]:
    """Return the captions of this folder's cases, and of the goldens of scenes."""
    marked = [
        line for path in sorted(Path(__file__).parent.glob("*.txt")) for line in path.read_text("utf-8").splitlines()
    ]
    rows = [line for path in sorted(_GOLDEN.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return [re.sub(r"(?<=[a-z])[-?](?=[ .,]|$)", "", line) for line in marked] + [
        json.loads(row)["caption"] for row in rows
    ]


def _texts(captions: list[str], size: int) -> list[str]:
    """Return so many texts made of captions and words, the same ones in every run."""
    rng = random.Random(71)
    small = sorted({*_WORDS, *_SIGNS, *TRIGGERS, *(word for cue, _ in HEDGES for word in cue[0])})

    def mutated(words: list[str]) -> list[str]:
        out = list(words)
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(out) + 1)
            cut = rng.choice((0, 0, 1, 2))
            out[at : at + cut] = rng.sample(small, rng.choice((0, 1, 1, 2)))
        return out

    texts = []
    for _ in range(size):
        first, second = (rng.choice(captions).split() for _ in range(2))
        made = rng.choice(
            (
                first[rng.randrange(len(first)) :],
                first[: rng.randrange(len(first)) + 1],
                [*first[: rng.randrange(len(first)) + 1], *second[rng.randrange(len(second)) :]],
                [*first, *second, *rng.choice(captions).split()],
                mutated(first),
                mutated(mutated(first)),
                rng.choices(small, k=rng.randrange(1, 12)),
                rng.sample(first, len(first)),
            )
        )
        text = " ".join(made)
        texts.append(rng.choice((text, text, text, text.upper(), text.title(), text.lower())))
    return texts


@pytest.mark.model
def test_no_text_is_a_fault() -> None:
    """Of all captions here and 5,000 made of them, neither their graphs nor what scores count of these."""
    captions = _captions()
    texts = [*captions, *_texts(captions, _TEXTS), "", " ", "\n\n", ".", "not", "without", "to", "than", "\udcff"]
    parsed = list(SceneParser(SCENE_WEIGHTS, strict=True).captions(texts))
    assert [caption.text for caption in parsed] == texts
    assert all(caption.every_fact is not None for caption in parsed)
