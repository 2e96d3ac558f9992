"""The drop-in scorers split words as the originals do, and load METEOR's data once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocoevalcap.rouge.rouge import Rouge as OriginalRouge

from spicegraph_compat.pycocoevalcap import Meteor, Rouge
from spicegraph_scorer.metrics import meteor

CAPTION = st.text(alphabet="ab \n\t", min_size=1, max_size=12)


@given(CAPTION, st.lists(CAPTION, min_size=1, max_size=3))
def test_rouge_equals_the_original_with_any_white_space(candidate: str, references: list[str]) -> None:
    ours, _ = Rouge().compute_score({1: references}, {1: [candidate]})
    original, _ = OriginalRouge().compute_score({1: references}, {1: [candidate]})
    assert ours == pytest.approx(original, abs=1e-12)


def test_a_line_s_end_belongs_to_the_last_word() -> None:
    assert Rouge().compute_score({1: ["a dog\n"]}, {1: ["a dog"]})[0] == pytest.approx(0.5)


def test_meteor_loads_its_data_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[None] = []
    load = meteor.load_data

    def counted_load() -> meteor.MeteorData:
        loads.append(None)
        return load()

    monkeypatch.setattr(meteor, "load_data", counted_load)
    scorer = Meteor()
    scores = {scorer.compute_score({1: ["a dog runs"]}, {1: ["a dog"]})[0] for _ in range(3)}
    assert len(scores) == 1
    assert len(loads) <= 1
