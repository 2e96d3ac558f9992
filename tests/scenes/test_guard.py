"""A fault of the scene parser in one text of many, made by patching a stage that reads texts."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

import pytest

from spicegraph_parser import DataError, load_pipeline
from spicegraph_scenes import SCENE_WEIGHTS, parser
from spicegraph_scenes.guard import SceneFaultWarning
from spicegraph_scenes.parser import SceneParser
from spicegraph_scenes.sentence import Sentence

pytestmark = pytest.mark.model

_FAULTY = "A man rides a horse without a saddle."
_OTHERS = ["A dog sleeps on a sofa.", "A cat without a collar sits on a mat.", ""] * 700


def _fail_on_horses(monkeypatch: pytest.MonkeyPatch, stage: str, error: type[Exception] = IndexError) -> None:
    """Let a stage of the parser fail where what it reads has a horse."""
    own = getattr(parser, stage)

    def failing(*arguments: Any, **options: Any) -> Any:
        given = arguments[0]
        if "horse" in repr(given.words if isinstance(given, Sentence) else getattr(given, "forms", given)):
            raise error("what has a horse")
        return own(*arguments, **options)

    monkeypatch.setattr(parser, stage, failing)


@pytest.mark.parametrize("stage", ["kind_of", "scopes", "run", "facts_of"])
def test_a_fault_in_one_text_costs_its_passes_alone(
    stage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a batch of thousands; it is logged by its hash, and one warning counts all."""
    wanted = list(load_pipeline("scene").captions(_OTHERS))
    texts = [*_OTHERS[:1000], _FAULTY, *_OTHERS[1000:], _FAULTY]
    _fail_on_horses(monkeypatch, stage)
    with pytest.warns(SceneFaultWarning, match="drew 2 texts without passes") as warned, caplog.at_level(logging.ERROR):
        found = list(load_pipeline("scene").captions(texts))
    assert len(warned) == 1
    assert [caption.tuples for caption in found if caption.text != _FAULTY] == [own.tuples for own in wanted]
    drawn = {("man",), ("horse",), ("man", "horse", "ride"), ("horse", "saddle", "without"), ("saddle",)}
    assert set(found[1000].tuples) <= drawn
    assert {("man",), ("horse",), ("man", "horse", "ride")} <= set(found[1000].tuples)
    assert [word.form for word in found[1000].sentences[0].words] == _FAULTY.replace(".", " .").split()
    assert len(caplog.records) == 2
    assert hashlib.sha256(_FAULTY.encode()).hexdigest() in caplog.text
    assert "saddle" not in caplog.text


def test_a_strict_parser_raises_its_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_on_horses(monkeypatch, "run")
    with pytest.raises(IndexError, match="what has a horse"):
        list(SceneParser(SCENE_WEIGHTS, strict=True).captions([*_OTHERS, _FAULTY]))


def test_what_the_user_can_mend_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a table that is missing."""
    _fail_on_horses(monkeypatch, "run", DataError)
    with pytest.raises(DataError, match="what has a horse"):
        list(load_pipeline("scene").captions([*_OTHERS, _FAULTY]))
