"""Settings of challenges: made from the contract wherever they stand, so that a new one costs four files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.settings import (
    SETTINGS,
    SPLIT_SETTINGS,
    Setting,
    SettingsError,
    changed,
    choices,
    comment,
    expected,
    flag,
    help_text,
    read_settings,
    rules,
    setting_text,
    violations_of,
    with_defaults,
)

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("proto", "service", "wings")
    for kind in ("*.py", "*.proto", "*.j2", "*.js")
    for path in (ROOT / folder).rglob(kind)
    if "_pb2" not in path.name
]
NUMBERS = [name for name, setting in SETTINGS.items() if type(setting.default) is int]


@pytest.mark.parametrize("name", [*NUMBERS, "phase_daily_limit", "phase_total_limit"])
def test_a_setting_stands_in_the_contract_in_the_table_and_where_it_acts(name: str) -> None:
    """With its test these are four files; forms, options, help, storage and checks name no setting."""
    named = re.compile(rf'\bsettings\.{name}\b|"{name}"|^ +optional \w+ {name} =', re.MULTILINE)
    files = {path.name for path in SOURCES if named.search(path.read_text(encoding="utf-8"))}
    assert {"challenge.proto", "settings.py"} < files
    assert len(files) <= (4 if name in {"daily_limit", "total_limit"} else 3), files  # those two, in a table of all


def test_every_field_of_the_contract_has_a_line_in_the_table() -> None:
    assert set(SETTINGS) == {field.name for field in pb.ChallengeSettings.DESCRIPTOR.fields} - {"splits"}
    assert set(SPLIT_SETTINGS) == {field.name for field in pb.ChallengeSplit.DESCRIPTOR.fields if field.has_presence}
    for name in (*SETTINGS, *SPLIT_SETTINGS):
        assert comment(name).endswith(".")
        assert flag(name).startswith("--")
    assert "Default: 2." in help_text("digits")
    assert expected("digits") == "1-9"
    assert expected("error_images") == "10-1000000|never"
    assert choices("leaderboard_visibility") == ("always", "after-close", "organisers")


def test_what_a_form_holds_comes_back_from_the_message() -> None:
    texts = {
        "title": "a title",
        "description": "two\nlines",
        "metrics": "spice, bleu",
        "primary_score": "SPICE",
        "graph_style": "scene",
        "spice_text": "coco",
        "empty": "zero",
        "open_time": "2030-01-01T12:00",
        "close_time": "",
        "daily_limit": "0",
        "total_limit": "7",
        "digits": "4",
        "category_images": "9",
        "error_images": "never",
        "equal_percent": "100",
    }
    settings = pb.ChallengeSettings()
    read_settings(settings, texts)
    assert {name: setting_text(settings, name) for name in texts} == texts
    assert not list(violations_of(settings))
    assert dict(row[:2] for row in rules(settings))["Opens"] == "2030-01-01 12:00 UTC"


def test_rules_are_sentences() -> None:
    plain = dict(row[:2] for row in rules(with_defaults(pb.ChallengeSettings())))
    assert plain["Decimal places"].startswith("Participants see scores rounded to 2 decimal places.")
    assert plain["Images of a category"] == "A category is shown if at least 50 images have it."
    assert plain["Images of an error"] == "An error is shown if at least 10 images have it."
    assert plain["Equal captions (%)"] == "A file is refused if more than 50 % of its captions are the same."
    assert plain["Special tokens"] == "A file with special tokens or markup, such as <eos>, is refused."
    assert plain["Empty captions"] == "A file with an empty caption is refused."
    assert (plain["Opens"], plain["Closes"], plain["SPICE parses"]) == ("at once", "never", "as the metrics say")
    other = with_defaults(pb.ChallengeSettings(error_images=-1, category_images=1))
    assert {"Errors are not shown.", "All categories are shown."} <= {text for _, text, _ in rules(other)}


def test_every_wrong_text_is_named() -> None:
    texts = {"digits": "many", "empty": "sometimes", "open_time": "tomorrow", "daily_limit": "-x", "title": "fine"}
    with pytest.raises(SettingsError) as caught:
        read_settings(pb.ChallengeSettings(), texts)
    assert [field for field, _ in caught.value.violations] == ["digits", "empty", "open_time", "daily_limit"]
    assert "digits: expected 1 to 9, got 'many'" in str(caught.value)


def test_every_number_out_of_bounds_is_named() -> None:
    outside = {name: setting.most + 1 for name, setting in SETTINGS.items() if name in NUMBERS}
    settings = pb.ChallengeSettings(**outside)
    assert [field for field, _ in violations_of(settings)] == NUMBERS
    assert not list(violations_of(with_defaults(pb.ChallengeSettings())))


def test_what_submissions_are_scored_by_never_changes() -> None:
    stored = pb.ChallengeSettings(metrics=["spice"], title="a", splits=[pb.ChallengeSplit(name="val")])
    after = pb.ChallengeSplit(name="val", score_visibility=pb.VISIBILITY_ORGANISERS)
    result = changed(stored, pb.ChallengeSettings(metrics=["spice"], title="b", splits=[after]))
    assert (result.title, result.splits[0].score_visibility) == ("b", pb.VISIBILITY_ORGANISERS)
    assert stored.title == "a"
    other = pb.ChallengeSettings(metrics=["bleu"], splits=[pb.ChallengeSplit(name="test")])
    with pytest.raises(SettingsError) as caught:
        changed(stored, other)
    assert [field for field, _ in caught.value.violations] == ["metrics", "splits[0].name"]


def test_a_setting_has_a_label() -> None:
    labels = [setting.label for setting in (*SETTINGS.values(), *SPLIT_SETTINGS.values())]
    assert len(set(labels)) == len(labels)
    assert all(isinstance(setting, Setting) for setting in SETTINGS.values())
