"""What the pages of the evaluation server show of the contract's messages, as plain values for templates."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_challenge.pages import tables as shown
from spicegraph_challenge.pages.tables import UNDEFINED
from spicegraph_parser.errors import counted
from spicegraph_service.output.charts import Line, Mark, Row, ink, interval_chart, line_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper as EnumTypeWrapper
    from google.protobuf.timestamp_pb2 import Timestamp

_Number = TypeVar("_Number", bound=int)
_CATEGORY = "SPICE_"
_ADDRESS = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)\]}]")
_DRAWN = 7  # teams of a figure, one for each colour
_MOMENTS = 10  # of a history, at most
_HISTORY = "The score that each team had on the leaderboard."
_TONES = {
    pb.SUBMISSION_STATE_SUCCEEDED: "good",
    pb.SUBMISSION_STATE_FAILED: "bad",
    pb.SUBMISSION_STATE_CANCELLED: "warn",
}
VISIBILITIES = (
    ("VISIBILITY_ALWAYS", "always"),
    ("VISIBILITY_AFTER_CLOSE", "after the close"),
    ("VISIBILITY_ORGANISERS", "organisers only"),
)
"""Choices of who sees what."""
SPICE_TEXTS = (("SPICE_TEXT_WRITTEN", "captions as written"), ("SPICE_TEXT_COCO", "the COCO toolkit’s tokens"))
"""Choices of the text that SPICE parses."""
GRAPH_STYLES = (("GRAPH_STYLE_UNSPECIFIED", "as SPICE 1.0 draws them"), ("GRAPH_STYLE_SCENE", "as people draw them"))
"""Choices of the scene graphs that are compared."""
EMPTY = (("EMPTY_CANDIDATES_REFUSE", "faults of the file"), ("EMPTY_CANDIDATES_ZERO", "scored, with 0"))
"""Choices of what is done with empty captions."""
DIGITS = (("0", "as many as no single image shows in"), ("-1", "all"), *((str(n), str(n)) for n in range(1, 10)))
"""Choices of the decimal places that participants see."""
ROLES = (
    ("USER_ROLE_PARTICIPANT", "participant"),
    ("USER_ROLE_HOST", "host: creates challenges"),
    ("USER_ROLE_ORGANISER", "organiser of all"),
)
"""Choices of a user's role."""


def value_of(kind: EnumTypeWrapper[_Number], name: str) -> _Number:
    """Return a value of the contract's; what is not one, as a form may hold: the unspecified one."""
    return kind.Value(name) if name in kind.keys() else kind.values()[0]  # noqa: SIM118


def rights(role: pb.ChallengeRole.ValueType) -> dict[str, bool]:
    """Return what a role in a challenge allows; each role has the rights of those before it."""
    return {
        "see": role >= pb.CHALLENGE_ROLE_VIEWER,
        "organise": role >= pb.CHALLENGE_ROLE_ORGANISER,
        "own": role >= pb.CHALLENGE_ROLE_OWNER,
    }


def minute(moment: Timestamp) -> str:
    """Return a moment to the minute; empty where there is none."""
    return moment.ToDatetime().strftime("%Y-%m-%d %H:%M UTC") if moment.seconds else ""


def _phase(challenge: pb.Challenge, now: datetime) -> tuple[str, str, str]:
    """Return a challenge's phase, its tone, and when the next one begins."""
    opens, closes = (
        moment.ToDatetime(UTC) if moment.seconds else None for moment in (challenge.open_time, challenge.close_time)
    )
    if not challenge.ready:
        return "in preparation", "warn", "references are missing"
    if opens is not None and now < opens:
        return "opens later", "warn", f"opens {minute(challenge.open_time)}"
    if closes is not None and now >= closes:
        return "closed", "", f"closed {minute(challenge.close_time)}"
    return "open", "good", f"closes {minute(challenge.close_time)}" if closes is not None else "without an end"


def challenge_card(challenge: pb.Challenge, now: datetime) -> dict[str, Any]:
    """Return what a list shows of a challenge."""
    phase, tone, moment = _phase(challenge, now)
    return {
        "name": challenge.name,
        "title": challenge.title or challenge.name,
        "phase": phase,
        "tone": tone,
        "moment": moment,
        "splits": ", ".join(split.name for split in challenge.splits),
        "metrics": ", ".join(challenge.metrics),
        "takes": phase == "open",
    }


def challenge_page(challenge: pb.Challenge, now: datetime) -> dict[str, Any]:
    """Return what a challenge's own page shows of it."""
    limits = [
        f"{counted(count, 'submission')} {time}" if count else f"any number {time}"
        for count, time in ((challenge.daily_limit, "a day (UTC)"), (challenge.total_limit, "in all"))
    ]
    rules = [
        ("Metrics", ", ".join(challenge.metrics)),
        ("Ranked by", challenge.primary_score or "the first of their scores"),
        *_parsing(challenge),
        ("Opens", minute(challenge.open_time) or "at once"),
        ("Closes", minute(challenge.close_time) or "never"),
        ("Limits", "; ".join(limits) + ". Failed and withdrawn ones do not count."),
        ("Empty captions", "score 0" if challenge.empty == scores_pb2.EMPTY_CANDIDATES_ZERO else "are refused"),
        ("What is shown", shown.disclosure_text(challenge.disclosure)),
    ]
    names = [(split.name, one.name) for split in challenge.splits for one in split.reference_sets]
    return {
        **challenge_card(challenge, now),
        "paragraphs": [list(_linked(text)) for text in challenge.description.split("\n") if text.strip()],
        "rules": rules,
        "split_names": [(split.name, split.name) for split in challenge.splits],
        "set_names": [(f"{split}/{one}", f"{split}, {one}") for split, one in names],
        "sets": [
            (
                split.name,
                one.name,
                one.image_count or UNDEFINED,
                one.caption_count or UNDEFINED,
                _seen(split.score_visibility),
                _seen(split.leaderboard_visibility),
            )
            for split in challenge.splits
            for one in split.reference_sets
        ],
    }


def _parsing(challenge: pb.Challenge) -> Iterator[tuple[str, str]]:
    """Yield what is unlike the defaults in how captions are parsed."""
    if challenge.graph_style == scene_graph_pb2.GRAPH_STYLE_SCENE:
        yield "Scene graphs", dict(GRAPH_STYLES)["GRAPH_STYLE_SCENE"]
    if challenge.spice_text == scores_pb2.SPICE_TEXT_COCO:
        yield "SPICE parses", dict(SPICE_TEXTS)["SPICE_TEXT_COCO"]


def _seen(value: pb.Visibility.ValueType) -> str:
    return dict(VISIBILITIES).get(pb.Visibility.Name(value), "always")


def _linked(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with its address or with an empty one."""
    place = 0
    for found in _ADDRESS.finditer(text):
        yield text[place : found.start()], ""
        yield found.group(), found.group()
        place = found.end()
    yield text[place:], ""


def quota(found: pb.GetChallengeResponse) -> str:
    """Return what a user has submitted and may still submit, in words."""
    left = found.quota.left if found.quota.HasField("left") else None
    may = "any number more" if left is None else f"{left} more now"
    return (
        f"You have submitted {found.quota.used_today} today and {found.quota.used_total} in all; you may submit {may}."
    )


def main_score(challenge: pb.Challenge, submissions: Iterable[pb.Submission]) -> str:
    """Return the score that a list of submissions shows."""
    if challenge.primary_score:
        return challenge.primary_score
    return next((part.scores[0].name for one in submissions for part in one.scores if part.scores), "Score")


def submission_rows(
    submissions: Sequence[pb.Submission], challenge: pb.Challenge, *, full: bool
) -> list[dict[str, Any]]:
    """Return what a list shows of submissions; the newest comes first, and each is compared with its user's before."""
    name = main_score(challenge, submissions)
    rows: list[dict[str, Any]] = []
    later: dict[str, dict[str, Any]] = {}
    for submission in submissions:
        found = [score for part in submission.scores[:1] for score in part.scores if score.name == name]
        row = _submission(submission) | {"main": _cell(found[0], full=full) if found else None, "change": ""}
        if row["main"] is not None:
            if (after := later.get(submission.user)) is not None:
                after["change"] = _change(after["main"]["value"], row["main"]["value"])
            later[submission.user] = row
        rows.append(row)
    return rows


def state_line(submission: pb.Submission) -> str:
    """Return the state of a submission under way as a sentence begins."""
    name = shown.state_name(submission)
    return name.capitalize() + shown.state_line(submission).removeprefix(name)


def _submission(submission: pb.Submission) -> dict[str, Any]:
    return {
        "id": submission.id,
        "challenge": submission.challenge,
        "user": submission.user,
        "method": submission.method or submission.file_name,
        "file_name": submission.file_name,
        "description": submission.description,
        "state": shown.state_name(submission).lower(),
        "line": state_line(submission),
        "more": submission.failure.message,
        "tone": _TONES.get(submission.state, ""),
        "ended": submission.HasField("end_time"),
        "progress": submission.progress if submission.HasField("progress") else None,
        "moment": minute(submission.create_time),
        "splits": list(submission.splits),
    }


def submission_page(
    submission: pb.Submission, before: pb.Submission | None, *, full: bool, own: bool
) -> dict[str, Any]:
    """Return what a submission's own page shows: its scores by split and what has changed since the one before."""
    earlier = {
        (part.split, part.reference_set, score.name): score
        for part in (before.scores if before is not None else ())
        for score in part.scores
    }
    parts = []
    for part in submission.scores:
        cells = []
        for score in part.scores:
            old = earlier.get((part.split, part.reference_set, score.name))
            was = old.value if old is not None and old.HasField("value") else None
            cell = _cell(score, full=full)
            cells.append(cell | {"change": _change(cell["value"], was)})
        parts.append(
            {
                "heading": f"{part.split}, {part.reference_set}",
                "image_count": part.image_count,
                "scores": [cell for cell in cells if not cell["name"].startswith(_CATEGORY)],
                "categories": [cell for cell in cells if cell["name"].startswith(_CATEGORY)],
                "errors": [(title, rows) for title, rows in _errors(part, before) if rows],
                "against": _submission(before) if before is not None else None,
            }
        )
    return _submission(submission) | {
        "parts": parts,
        "own": own,
        "choosable": own and submission.state == pb.SUBMISSION_STATE_SUCCEEDED,
        "scorer": "; ".join(shown.signature_lines([submission.origin])),
    }


def _errors(part: pb.SplitScores, before: pb.Submission | None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield tables of errors: all of a kind, and those of certain words, each beside what the one before had."""
    earlier = {
        (error.kind, tuple(error.words)): error.image_count
        for old in (before.scores if before is not None else ())
        if (old.split, old.reference_set) == (part.split, part.reference_set)
        for error in old.errors
    }
    rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for error in part.errors:
        was = earlier.get((error.kind, tuple(error.words)))
        row = {
            "title": error.title,
            "words": shown.error_words(error),
            "least": f"{error.image_count:,}",
            "share": min(error.image_count / (part.image_count or 1), 1.0),
            "before": UNDEFINED if was is None else f"{was:,}",
        }
        rows[bool(error.words)].append(row)
    yield "Kinds of errors", rows[False]
    yield "The most frequent words", rows[True]


def _cell(score: pb.CorpusScore, *, full: bool) -> dict[str, Any]:
    """Return a score as it is written: members of the challenge see four places, participants what they were given."""

    def write(value: float) -> str:
        return f"{value:.4f}" if full else f"{round(value, 4):g}"

    known = score.HasField("low") and score.HasField("high")
    return {
        "name": score.name,
        "short": score.name.removeprefix(_CATEGORY),
        "value": score.value if score.HasField("value") else None,
        "text": write(score.value) if score.HasField("value") else UNDEFINED,
        "range": f"{write(score.low)} to {write(score.high)}" if known else "",
    }


def _change(now: float | None, before: float | None) -> str:
    """Return a difference of two numbers as they are shown."""
    if now is None or before is None:
        return ""
    difference = round(now - before, 4)
    return f"{difference:+g}".replace("-", "−") if difference else "0"


def board_page(board: pb.GetLeaderboardResponse, challenge: pb.Challenge) -> dict[str, Any]:
    """Return what the page of a leaderboard shows."""
    view = shown.board_view(board)
    chosen = f"{board.split}/{board.reference_set}"
    return {
        "title": board.title or board.challenge,
        "board": view,
        "sets": challenge_page(challenge, datetime.now(UTC))["set_names"],
        "chosen": chosen,
        "scores": [(column["name"], column["name"]) for column in view["columns"]] or [(board.score, board.score)],
        "asked": f"of={chosen}&score={board.score}",
        "charts": _board_charts(board),
        "signatures": shown.signature_lines([row.origin for row in board.rows]),
    }


def _board_charts(board: pb.GetLeaderboardResponse) -> dict[str, Any]:
    """Return the figures of a leaderboard: the score that ranks with its intervals, and how it came about."""
    found = [(row, score) for row in board.rows for score in row.scores if score.name == board.score]
    ranked = [(row, score) for row, score in found if score.HasField("value")][:_DRAWN]
    if not ranked:
        return {}
    inks = {row.user: ink(place) for place, (row, _) in enumerate(ranked)}
    rows = [
        Row(
            row.user,
            (
                Mark(
                    row.method,
                    score.value,
                    score.low if score.HasField("low") else None,
                    score.high if score.HasField("high") else None,
                    inks[row.user],
                ),
            ),
        )
        for row, score in ranked
    ]
    charts = {"standing": interval_chart(board.score, rows, axis=board.score, form=".4g")}
    points = [(point.create_time.ToDatetime(UTC), point.user, point.value) for point in board.history]
    moments = sorted({moment for moment, *_ in points})
    moments = (
        [moments[place * (len(moments) - 1) // (_MOMENTS - 1)] for place in range(_MOMENTS)]
        if len(moments) > _MOMENTS
        else moments
    )
    if len(moments) < 2:
        return charts
    form = "%H:%M" if moments[0].date() == moments[-1].date() else "%m-%d"
    standing = [{user: value for moment, user, value in points if moment <= now} for now in moments]
    places = [_places(values, lower=board.score in board.lower_is_better) for values in standing]
    lines = [
        Line(
            user,
            [values.get(user) for values in standing],
            colour,
            [f"place {of[user]} of {len(of)}" if user in of else "" for of in places],
        )
        for user, colour in inks.items()
    ]
    labels = [moment.strftime(form) for moment in moments]
    history = line_chart(
        f"{board.score} over time",
        labels,
        lines,
        x="submitted (UTC)",
        y=board.score,
        description=_HISTORY,
        zero=False,
        stepped=True,
    )
    return charts | {"history": history, "legend": [(colour, user) for user, colour in inks.items()]}


def _places(values: dict[str, float], *, lower: bool) -> dict[str, int]:
    """Return each user's place among values; equal ones share it."""
    ordered = sorted(values.values(), reverse=not lower)
    return {user: ordered.index(value) + 1 for user, value in values.items()}


def edit_values(challenge: pb.Challenge) -> dict[str, Any]:
    """Return what the form of a challenge holds."""
    return {
        "title": challenge.title,
        "description": challenge.description,
        "primary_score": challenge.primary_score,
        "digits": str(challenge.disclosure.digits),
        "category_images": challenge.disclosure.category_images or "",
        "equal_percent": challenge.disclosure.equal_percent or "",
        "error_images": challenge.disclosure.error_images or "",
        "open_time": _local(challenge.open_time),
        "close_time": _local(challenge.close_time),
        "daily_limit": challenge.daily_limit,
        "total_limit": challenge.total_limit,
        "splits": [
            {
                "name": split.name,
                "scores": pb.Visibility.Name(split.score_visibility),
                "board": pb.Visibility.Name(split.leaderboard_visibility),
            }
            for split in challenge.splits
        ],
    }


def _local(moment: Timestamp) -> str:
    return moment.ToDatetime().strftime("%Y-%m-%dT%H:%M") if moment.seconds else ""


def user_row(user: pb.User) -> dict[str, Any]:
    """Return what the list of users shows of one."""
    return {
        "name": user.name,
        "role": pb.UserRole.Name(user.role).removeprefix("USER_ROLE_").lower().replace("_", " "),
        "tokens": [{"id": one.id, "name": one.name, "moment": minute(one.create_time)} for one in user.tokens],
    }
