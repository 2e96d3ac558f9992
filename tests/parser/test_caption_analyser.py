"""The bundled pipeline without spaCy gives exactly what it gives within spaCy."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.caption_pipeline.analyser import CaptionAnalyser
from spicegraph_parser.errors import DataError
from spicegraph_parser.fronts.schemes import Scheme
from spicegraph_parser.fronts.spacy import SpacyFrontEnd
from spicegraph_parser.languages import ENGLISH
from spicegraph_parser.pipelines import load_pipeline

if TYPE_CHECKING:
    from spicegraph_parser.spice.parse import Caption

pytestmark = pytest.mark.model

_GOLDEN = Path(__file__).parents[1] / "golden" / "spice" / "spice_parses.jsonl.gz"
_ODD = [
    "",
    " \t\n ",
    "🐶",
    "a dog 🐶🐕‍🦺 on a 🛹",
    "a dog\x00 on a \x00 mat",
    "a dog \ud83d on a (red) mat",
    "A dog  runs. A cat sits! Is it red? Yes.",
    '  A "red"  bus (old)  can\'t 🐶 stop',
    "A  dog, a  cat.",
    "(((((----.....,,,,;;;;''''\"\"\"\"",
    "dog " * 450,
    "Dogs run. " * 120,
]


def _within_spacy(texts: list[str]) -> list[Caption]:
    front = SpacyFrontEnd(spacy.load(pipeline_path()), Scheme.UD1, ENGLISH)
    return list(front.parse(texts))


def test_captions_parse_as_within_spacy() -> None:
    with gzip.open(_GOLDEN, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines][:1500]
    assert list(load_pipeline().parse(texts)) == _within_spacy(texts)


@pytest.mark.parametrize("text", _ODD, ids=[ascii(text[:12]) for text in _ODD])
def test_odd_texts_parse_as_within_spacy(text: str) -> None:
    assert list(load_pipeline().parse([text, "a dog", text])) == _within_spacy([text, "a dog", text])


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=40), min_size=1, max_size=4))
def test_no_text_makes_it_raise(texts: list[str]) -> None:
    """Any code points, surrogates too; and words stand where their spans say."""
    for text, caption in zip(texts, load_pipeline().parse(texts), strict=True):
        shown = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
        for word in (word for parse in caption.sentences for word in parse.words):
            assert shown[word.start : word.end] == word.form


def test_batches_do_not_change_the_result() -> None:
    texts = [f"A {'big ' * (n % 5)}dog and {n} cats sit on a mat." for n in range(40)]
    together = list(load_pipeline().parse(texts))
    assert list(load_pipeline().parse(texts, batch_size=7)) == together
    assert [next(load_pipeline().parse([text])) for text in texts] == together


def test_it_does_not_import_spacy() -> None:
    code = (
        "import sys; from spicegraph_parser import parse_captions; "
        "print(next(parse_captions(['a dog'])).tuples, 'spacy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(('dog',),) False\n"


def test_a_damaged_pipeline_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="install the package again"):
        CaptionAnalyser.from_disk(tmp_path)
