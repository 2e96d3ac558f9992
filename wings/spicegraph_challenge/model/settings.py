"""The settings of a challenge: defaults, bounds and words. Everything else of a setting the contract says.

The command line's options, the form in a browser, the rules on a challenge's page and the checks of a request are all
made from the descriptor of :class:`ChallengeSettings`, its comments, and the tables here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from spicegraph_api.challenge.v1 import challenge_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from google.protobuf.descriptor import EnumDescriptor
    from google.protobuf.message import Message

_MOST = 1_000_000
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_UNSPECIFIED = "UNSPECIFIED"
_NEVER = "never"
_SWITCH = ("yes", "no")
_FIXED = "never changes, so that all submissions are scored alike"
_ABOUT, _SCORED, _WHEN, _SEEN = "What it is about", "How it is scored", "When, and how often", "What participants see"


@dataclass(frozen=True, slots=True)
class Setting:
    """Details of a setting that the contract lacks: label, default, bounds."""

    label: str
    part: str  # of the form
    flag: str = ""  # on the command line; empty: the name with hyphens
    default: int | str | bool = ""  # of a text or a choice: what pages and help show as that
    least: int = 0
    most: int = _MOST  # or the characters of the longest text
    words: Mapping[str, int] = field(default_factory=dict)  # for numbers, which may lie outside of the bounds
    fixed: bool = False  # since submissions are scored by it
    rules: Mapping[str, str] = field(default_factory=dict)  # sentences of a challenge's rules by value; "": any other


SETTINGS: Mapping[str, Setting] = {
    "title": Setting("Title", _ABOUT, most=200),
    "description": Setting("Description", _ABOUT, most=10_000),
    "metrics": Setting("Metrics", _SCORED, default="coco", fixed=True),
    "primary_score": Setting("Ranked by", _SCORED, "rank-by", most=100),
    "secondary_score": Setting("Then ranked by", _SCORED, "then-by", most=100),
    "graph_style": Setting(
        "Scene graphs",
        _SCORED,
        default="spice",
        fixed=True,
        rules={"spice": "as SPICE", "scene": "as people draw them"},
    ),
    "spice_text": Setting(
        "SPICE parses",
        _SCORED,
        fixed=True,
        rules={"written": "captions as written", "coco": "the tokens of the COCO toolkit", "": "as the metrics say"},
    ),
    "empty": Setting(
        "Empty captions",
        _SCORED,
        default="refuse",
        fixed=True,
        rules={"refuse": "A file with an empty caption is refused.", "zero": "An empty caption scores 0."},
    ),
    "control_tokens": Setting(
        "Special tokens",
        _SCORED,
        default="refuse",
        fixed=True,
        rules={
            "refuse": "A file with special tokens or markup, such as <eos>, is refused.",
            "strip": "Special tokens and markup, such as <eos>, are removed before scoring.",
            "keep": "Special tokens and markup, such as <eos>, are scored as words.",
        },
    ),
    "open_time": Setting("Opens", _WHEN, "opens"),
    "close_time": Setting("Closes", _WHEN, "closes"),
    "daily_limit": Setting("Submissions a day", _WHEN, "daily", 5),
    "total_limit": Setting("Submissions in all", _WHEN, "total", 20),
    "public_board": Setting("Public leaderboard", _SEEN, default=False),
    "digits": Setting(
        "Decimal places",
        _SEEN,
        default=2,
        least=1,
        most=9,
        rules={"": "Participants see scores rounded to {} decimal places. The final ranking is by exact scores."},
    ),
    "category_images": Setting(
        "Images of a category",
        _SEEN,
        default=50,
        least=1,
        rules={"1": "All categories are shown.", "": "A category is shown if at least {} images have it."},
    ),
    "error_images": Setting(
        "Images of an error",
        _SEEN,
        default=10,
        least=10,
        words={_NEVER: -1},
        rules={_NEVER: "Errors are not shown.", "": "An error is shown if at least {} images have it."},
    ),
    "equal_percent": Setting(
        "Equal captions (%)",
        _SEEN,
        "equal",
        50,
        1,
        100,
        rules={"": "A file is refused if more than {} % of its captions are the same."},
    ),
    "different_percent": Setting(
        "Different captions (%)",
        _SEEN,
        "different",
        25,
        0,
        100,
        rules={"": "A file is refused if it has fewer different captions than {} % of the number of images."},
    ),
}
"""The settings of a challenge in the order of forms, pages and ``--help``."""

SPLIT_SETTINGS: Mapping[str, Setting] = {
    "score_visibility": Setting("Scores shown", _SEEN, "scores", "always"),
    "leaderboard_visibility": Setting("Leaderboard shown", _SEEN, "leaderboard", "always"),
    "phase_open_time": Setting("Phase opens", _WHEN, "phase-opens"),
    "phase_close_time": Setting("Phase closes", _WHEN, "phase-closes"),
    "phase_daily_limit": Setting("Phase limit a day", _WHEN, "phase-daily", 0),
    "phase_total_limit": Setting("Phase limit in all", _WHEN, "phase-total", 0),
}
"""The settings of each split, which is a phase of a challenge where it has dates and limits of its own."""

NO_ERRORS = SETTINGS["error_images"].words[_NEVER]


class SettingsError(Exception):
    """Texts that are not settings: ``violations`` are pairs of a field and the reason."""

    def __init__(self, violations: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {reason}" for field, reason in violations))
        self.violations = violations


def flag(name: str) -> str:
    """Return a setting's option on the command line."""
    return f"--{_setting(name).flag or name.replace('_', '-')}"


def help_text(name: str) -> str:
    """Return a setting's help: the contract's comment, and the default."""
    setting = _setting(name)
    default = _number_text(setting, setting.default) if isinstance(setting.default, int) else setting.default
    return comment(name) + (f" Default: {default}." if default else "")


@cache
def comment(name: str) -> str:
    """Return the contract's comment on a setting."""
    comments = json.loads((files("spicegraph_api.challenge.v1") / "comments.json").read_text(encoding="utf-8"))
    text: str = comments["ChallengeSettings" if name in SETTINGS else "ChallengeSplit"][name]
    return text


def choices(name: str) -> tuple[str, ...]:
    """Return the words of a setting that is a choice; none of others."""
    kind = descriptor(name).enum_type
    if descriptor(name).type == FieldDescriptor.TYPE_BOOL:
        return _SWITCH
    return () if kind is None else tuple(_word(kind, value.name) for value in kind.values if value.number)


def expected(name: str) -> str:
    """Return which values a setting has: ``10-1000000|never``; empty: any text."""
    setting, kind = _setting(name), descriptor(name)
    if choices(name):
        return "|".join(choices(name))
    if kind.type == FieldDescriptor.TYPE_INT32:
        return "|".join([f"{setting.least}-{setting.most}", *setting.words])
    return "TIME" if is_moment(name) else "SCORE" if name.endswith("_score") else "TEXT"


def is_moment(name: str) -> bool:
    """Whether a setting is a point in time."""
    return descriptor(name).message_type is not None


def descriptor(name: str) -> FieldDescriptor:
    """Return a setting's field in the contract."""
    kind = pb.ChallengeSettings if name in SETTINGS else pb.ChallengeSplit
    return kind.DESCRIPTOR.fields_by_name[name]


def _setting(name: str) -> Setting:
    return SETTINGS.get(name) or SPLIT_SETTINGS[name]


def _word(kind: EnumDescriptor, name: str) -> str:
    """Return the word for an enum's value: ``after-close`` for ``VISIBILITY_AFTER_CLOSE``."""
    prefix = kind.values_by_number[0].name.removesuffix(_UNSPECIFIED)
    return name.removeprefix(prefix).lower().replace("_", "-")


def read_settings(message: Message, texts: Mapping[str, str]) -> None:
    """Set fields of a message from texts, as a form or the command line has them; without one, most stay absent."""
    violations = []
    for name, text in texts.items():
        kind = descriptor(name)
        try:
            if kind.is_repeated:
                getattr(message, name)[:] = [part.strip() for part in text.split(",") if part.strip()]
            elif kind.type == FieldDescriptor.TYPE_STRING:
                setattr(message, name, text.replace("\r\n", "\n"))  # browsers send lines with carriage returns
            elif text.strip() or choices(name) == _SWITCH or is_moment(name):
                _put(message, name, _read(name, text.strip()))
        except ValueError as error:
            violations.append((name, str(error)))
    if violations:
        raise SettingsError(violations)


def _read(name: str, text: str) -> Timestamp | int:
    """Return the value that a text of a moment, a choice or a number stands for."""
    if is_moment(name):
        return _read_moment(text)
    return _read_choice(name, text) if choices(name) else _read_number(_setting(name), text)


def _read_moment(text: str) -> Timestamp:
    moment = Timestamp()  # 1970 means none
    try:
        if text not in {"", _NEVER}:
            read = datetime.fromisoformat(text)
            moment.FromDatetime(read if read.tzinfo else read.replace(tzinfo=UTC))
    except ValueError as error:
        raise ValueError(f"expected a time such as 2030-06-01T12:00, got {text!a}") from error
    return moment


def _read_choice(name: str, text: str) -> int:
    kind = descriptor(name).enum_type
    if text not in choices(name):
        raise ValueError(f"expected {_listed(list(choices(name)))}, got {text!a}")
    if kind is None:
        return text == "yes"
    return next(value.number for value in kind.values if value.number and _word(kind, value.name) == text)


def _read_number(setting: Setting, text: str) -> int:
    if text in setting.words:
        return setting.words[text]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        number = "a number" if setting.most == _MOST else f"{setting.least} to {setting.most}"
        raise ValueError(f"expected {_listed([number, *setting.words])}, got {text!a}")
    return int(text)


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def setting_text(message: Message, name: str) -> str:
    """Return a setting as a form and the command line write it; empty where it is absent and has no default."""
    kind, value, setting = descriptor(name), getattr(message, name), _setting(name)
    if kind.is_repeated:
        return ", ".join(value)
    if kind.message_type is not None:
        return value.ToDatetime().strftime("%Y-%m-%dT%H:%M") if value.seconds else ""
    if kind.enum_type is not None:
        known = kind.enum_type.values_by_number.get(value)
        return _word(kind.enum_type, known.name) if value and known is not None else str(setting.default)
    if kind.type == FieldDescriptor.TYPE_STRING:
        return str(value)
    return _number_text(setting, value if message.HasField(name) else setting.default)


def _number_text(setting: Setting, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return next((word for word, number in setting.words.items() if number == value), str(value))


_ABSENT = {
    "open_time": "at once",
    "close_time": _NEVER,
    "primary_score": "the first score",
    "secondary_score": "the earlier submission",
}


def rules(settings: pb.ChallengeSettings) -> Iterator[tuple[str, str, str]]:
    """Yield the rules of a challenge: the label of a setting, its value in words, and the contract's comment."""
    for name, setting in SETTINGS.items():
        if setting.part == _ABOUT:
            continue
        value = value_text(settings, name) or _ABSENT.get(name, "")
        sentence = setting.rules.get(value, setting.rules.get("", "{}"))
        yield setting.label, sentence.format(value), comment(name)


def value_text(message: Message, name: str) -> str:
    """Return a setting as people are shown it; empty where it is absent and has no default."""
    text = setting_text(message, name)
    if name.endswith("_limit") and text == "0":
        return "any number"
    return text.replace("T", " ") + " UTC" if text and is_moment(name) else text


def with_defaults(settings: pb.ChallengeSettings) -> pb.ChallengeSettings:
    """Return settings in which every number has a value: its own, or the default."""
    complete = pb.ChallengeSettings()
    complete.CopyFrom(settings)
    for name, setting in SETTINGS.items():
        if isinstance(setting.default, int) and not complete.HasField(name):  # type: ignore[arg-type]
            setattr(complete, name, setting.default)
    return complete


def masked(
    stored: pb.ChallengeSettings, change: pb.ChallengeSettings, names: Collection[str]
) -> tuple[pb.ChallengeSettings, pb.ChallengeSettings]:
    """Apply an update mask: return the stored settings with named ones reset, and the named changes."""
    named = {*names}
    violations = [("update_mask", f"there is no setting {name!a}") for name in sorted(named - {*SETTINGS, "splits"})]
    present = {kind.name for kind, _ in change.ListFields()}
    kept, asked = pb.ChallengeSettings(), pb.ChallengeSettings()
    kept.CopyFrom(stored)
    asked.CopyFrom(change)
    for name in present - named:
        asked.ClearField(name)  # type: ignore[arg-type]
    for name in (named & {*SETTINGS}) - present:
        if SETTINGS[name].fixed:
            violations.append((name, _FIXED))
        kept.ClearField(name)  # type: ignore[arg-type]
    if violations:
        raise SettingsError(violations)
    return with_defaults(kept), asked


def changed(stored: pb.ChallengeSettings, change: pb.ChallengeSettings) -> pb.ChallengeSettings:
    """Return settings with the fields that a change has; a moment of 1970 is taken away."""
    result = pb.ChallengeSettings()
    violations: list[tuple[str, str]] = []
    result.CopyFrom(stored)
    for kind, value in change.ListFields():
        if kind.name == "splits":
            violations += _change_splits(result, change)
        elif SETTINGS[kind.name].fixed and value != getattr(stored, kind.name):
            violations.append((kind.name, _FIXED))
        elif not kind.is_repeated:
            _put(result, kind.name, value)
    if violations:
        raise SettingsError(violations)
    return result


def _change_splits(result: pb.ChallengeSettings, change: pb.ChallengeSettings) -> Iterator[tuple[str, str]]:
    """Give the splits the settings that a change has for them; yield those that are not there."""
    splits = {split.name: split for split in result.splits}
    for position, split in enumerate(change.splits):
        if split.name not in splits:
            yield f"splits[{position}].name", f"there is no split {split.name!a}"
            continue
        for kind, wanted in split.ListFields():
            if kind.name in SPLIT_SETTINGS:
                _put(splits[split.name], kind.name, wanted)


def _put(message: Message, name: str, value: Any) -> None:
    if isinstance(value, Timestamp):
        getattr(message, name).CopyFrom(value)
    else:
        setattr(message, name, value)


def violations_of(settings: pb.ChallengeSettings) -> Iterator[tuple[str, str]]:
    """Yield settings that are out of bounds, and dates that are out of order."""
    yield from _faults(settings, SETTINGS, "", "open_time", "close_time")
    for position, split in enumerate(settings.splits):
        yield from _faults(split, SPLIT_SETTINGS, f"splits[{position}].", "phase_open_time", "phase_close_time")


def _faults(
    message: Message, table: Mapping[str, Setting], path: str, opening: str, closing: str
) -> Iterator[tuple[str, str]]:
    for name, setting in table.items():
        value, kind = getattr(message, name), descriptor(name)
        if kind.is_repeated or kind.type == FieldDescriptor.TYPE_BOOL:
            continue
        if fault := _fault(kind, setting, value):
            yield path + name, fault
    opens, closes = moment(getattr(message, opening)), moment(getattr(message, closing))
    if opens is not None and closes is not None and opens >= closes:
        yield path + closing, "is not after the opening"


def _fault(kind: FieldDescriptor, setting: Setting, value: Any) -> str | None:
    if isinstance(value, Timestamp):
        return _moment_fault(value)
    if isinstance(value, str):
        return _text_fault(setting, value)
    if kind.enum_type is not None:
        return None if value in kind.enum_type.values_by_number else f"{value} is not one of its values"
    return _number_fault(setting, value)


def _moment_fault(value: Timestamp) -> str | None:
    is_given = bool(value.seconds or value.nanos)
    return "is before 1970 or after 9999" if is_given and moment(value) is None else None


def _text_fault(setting: Setting, value: str) -> str | None:
    is_wrong = len(value) > setting.most or "\0" in value
    return f"at most {setting.most:,} characters, and no NUL" if is_wrong else None


def _number_fault(setting: Setting, value: int) -> str | None:
    if setting.least <= value <= setting.most or value in setting.words.values():
        return None
    words = [f"{word} ({number})" for word, number in setting.words.items()]
    return f"expected {_listed([f'{setting.least} to {setting.most:,}', *words])}, got {value}"


def moment(value: Timestamp) -> datetime | None:
    """Return a moment between 1970 and 9999; ``None``: 1970 itself, or out of range."""
    try:
        read = value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return read if _EARLIEST < read <= _LATEST else None


def timestamp(when: datetime | None) -> Timestamp | None:
    """Return a moment as a message."""
    if when is None:
        return None
    message = Timestamp()
    message.FromDatetime(when)
    return message
