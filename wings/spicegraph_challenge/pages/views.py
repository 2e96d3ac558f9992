"""What the pages of the evaluation server show of the contract's messages, as plain values for templates."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.settings import (
    SETTINGS,
    SPLIT_SETTINGS,
    Setting,
    choices,
    comment,
    expected,
    is_moment,
    moment,
    rules,
    setting_text,
)
from spicegraph_challenge.pages import tables as shown
from spicegraph_challenge.pages.tables import CATEGORY, UNDEFINED, cell, minute
from spicegraph_service.kit import Line, Mark, ink, interval_chart, line_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from markupsafe import Markup

_LONG = 10_000  # characters of a text that has several lines
_ADDRESS = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)\]}]")
_DRAWN = 7  # teams of a figure, one for each colour
_MOMENTS = 10  # of a history, at most
_HISTORY = "The score that each team had on the leaderboard."
_TONES = {
    pb.SUBMISSION_STATE_SUCCEEDED: "good",
    pb.SUBMISSION_STATE_FAILED: "bad",
    pb.SUBMISSION_STATE_CANCELLED: "warn",
}
ROLES = (
    ("USER_ROLE_PARTICIPANT", "participant"),
    ("USER_ROLE_HOST", "host: creates challenges"),
    ("USER_ROLE_ORGANISER", "organiser of all"),
)
"""Choices of a user's role."""


def rights(role: pb.ChallengeRole.ValueType) -> dict[str, bool]:
    """Return the rights of a role in a challenge, each including the lower roles'."""
    return {
        "see": role >= pb.CHALLENGE_ROLE_VIEWER,
        "organise": role >= pb.CHALLENGE_ROLE_ORGANISER,
        "own": role >= pb.CHALLENGE_ROLE_OWNER,
    }


def challenge_card(challenge: pb.Challenge, now: datetime) -> dict[str, Any]:
    """Return a challenge's entry in the list, with its phase and the next one."""
    settings = challenge.settings
    opens, closes = moment(settings.open_time), moment(settings.close_time)
    closing = minute(settings.close_time)
    phase, tone, next_phase = "open", "good", f"closes {closing}" if closes is not None else "without an end"
    if not challenge.ready:
        phase, tone, next_phase = "in preparation", "warn", "references are missing"
    elif opens is not None and now < opens:
        phase, tone, next_phase = "opens later", "warn", f"opens {minute(settings.open_time)}"
    elif closes is not None and now >= closes:
        phase, tone, next_phase = "closed", "", f"closed {closing}"
    return {
        "name": challenge.name,
        "title": challenge.settings.title or challenge.name,
        "phase": phase,
        "tone": tone,
        "moment": next_phase,
        "splits": ", ".join(split.name for split in challenge.settings.splits),
        "metrics": ", ".join(challenge.settings.metrics),
        "takes": phase == "open",
    }


def challenge_page(challenge: pb.Challenge, now: datetime) -> dict[str, Any]:
    """Return the values for a challenge's page."""
    splits = challenge.settings.splits
    sets = [(split, reference_set) for split in splits for reference_set in split.reference_sets]
    names = [(split.name, reference_set.name) for split, reference_set in sets]
    return {
        **challenge_card(challenge, now),
        "columns": [setting.label for setting in SPLIT_SETTINGS.values()],
        "paragraphs": [list(_linked(text)) for text in challenge.settings.description.split("\n") if text.strip()],
        "rules": list(rules(challenge.settings)),
        "split_names": [(split.name, split.name) for split in splits],
        "set_names": [(f"{split}/{name}", f"{split}, {name}") for split, name in names],
        "sets": [[UNDEFINED if each is None else each for each in shown.set_cells(*row)] for row in sets],
    }


def setting_fields(settings: pb.ChallengeSettings, *, new: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of the form of a challenge by the form's parts, made from the contract."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, setting in SETTINGS.items():
        if new or not setting.fixed:
            default = str(setting.default) if new and name == "metrics" else ""
            text = default or setting_text(settings, name)
            parts.setdefault(setting.part, []).append(_field(name, setting, text))
    for split in settings.splits or [pb.ChallengeSplit()]:
        for name, setting in SPLIT_SETTINGS.items():
            of = f" of {split.name}" if split.name else ""
            row = _field(name, setting, setting_text(split, name))
            parts[setting.part].append(row | {"name": f"{name} {split.name}", "label": setting.label + of})
    return parts


def _field(name: str, setting: Setting, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": setting.label,
        "value": text,
        "choices": choices(name),
        "kind": "datetime-local" if is_moment(name) else "text",
        "long": setting.most >= _LONG and not choices(name) and expected(name) == "TEXT" and not setting.fixed,
        "note": comment(name),
        "expected": expected(name),
    }


def _linked(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with its address or with an empty one."""
    end = 0
    for match in _ADDRESS.finditer(text):
        yield text[end : match.start()], ""
        yield match.group(), match.group()
        end = match.end()
    yield text[end:], ""


def quota(answer: pb.GetChallengeResponse) -> str:
    """Return a sentence on the user's submissions so far and remaining quota."""
    left = answer.quota.left if answer.quota.HasField("left") else None
    may = "any number more" if left is None else f"{left} more now"
    sent = f"{answer.quota.used_today} today and {answer.quota.used_total} in all"
    phases = "".join(f" For {part.split}: {part.left} more now." for part in answer.quota.phases)
    return f"You have submitted {sent}; you may submit {may}.{phases}"


def main_score(challenge: pb.Challenge, submissions: Iterable[pb.Submission]) -> str:
    """Return the score that a list of submissions shows."""
    if challenge.settings.primary_score:
        return challenge.settings.primary_score
    return next(
        (part.scores[0].name for submission in submissions for part in submission.scores if part.scores), "Score"
    )


def submission_rows(submissions: Sequence[pb.Submission], challenge: pb.Challenge) -> list[dict[str, Any]]:
    """Return the rows of a submission list, newest first, each compared with its user's previous one."""
    name = main_score(challenge, submissions)
    rows: list[dict[str, Any]] = []
    earlier: dict[str, pb.CorpusScore] = {}
    for submission in reversed(submissions):
        scores = [score for part in submission.scores[:1] for score in part.scores if score.name == name]
        main = cell(scores[0], earlier.get(submission.user)) if scores else None
        rows.append(_submission(submission) | {"main": main, "change": main["change"] if main else ""})
        if scores:
            earlier[submission.user] = scores[0]
    return rows[::-1]


def state_line(submission: pb.Submission) -> str:
    """Return the state of a submission under way as a sentence begins."""
    name = shown.state_name(submission)
    return name.capitalize() + shown.state_line(submission).removeprefix(name)


def _submission(submission: pb.Submission) -> dict[str, Any]:
    return {
        "id": submission.id,
        "challenge": submission.challenge,
        "user": submission.user,
        "entrant": submission.entrant,
        "method": submission.method or submission.file_name,
        "file_name": submission.file_name,
        "description": submission.description,
        "team": submission.team,
        "links": shown.links(submission),
        "state": shown.state_name(submission).lower(),
        "line": state_line(submission),
        "more": submission.failure.message,
        "tone": _TONES.get(submission.state, ""),
        "ended": submission.HasField("end_time"),
        "progress": submission.progress if submission.HasField("progress") else None,
        "moment": minute(submission.create_time),
        "splits": list(submission.splits),
    }


def submission_page(submission: pb.Submission, before: pb.Submission | None, *, own: bool) -> dict[str, Any]:
    """Return the values for a submission's page: scores by split, compared with the previous submission."""
    against = None if before is None else _submission(before)
    return _submission(submission) | {
        "parts": [_part(part, _same_part(part, before)) | {"against": against} for part in submission.scores],
        "own": own,
        "choosable": own and submission.state == pb.SUBMISSION_STATE_SUCCEEDED and not submission.on_leaderboard,
        "stands": own and submission.on_leaderboard,
        "scorer": "; ".join(shown.signature_lines([submission.origin])),
    }


def _same_part(part: pb.SplitScores, before: pb.Submission | None) -> pb.SplitScores:
    """Return the scores of the same images in the submission before; empty: it has none."""
    for old in before.scores if before is not None else ():
        if (old.split, old.reference_set, old.domain) == (part.split, part.reference_set, part.domain):
            return old
    return pb.SplitScores()


def _part(part: pb.SplitScores, before: pb.SplitScores) -> dict[str, Any]:
    """Return the scores of a split, set and domain, each beside the previous submission's."""
    earlier = {score.name: score for score in before.scores}
    cells = [cell(score, earlier.get(score.name)) for score in part.scores]
    return {
        "heading": shown.board_name(part),
        "rounding": shown.rounding_note(part.scores),
        "image_count": part.image_count,
        "scores": [each for each in cells if not each["name"].startswith(CATEGORY)],
        "categories": [each for each in cells if each["name"].startswith(CATEGORY)],
        "errors": [(title, rows) for title, rows in _errors(part, before) if rows],
    }


def _errors(part: pb.SplitScores, before: pb.SplitScores) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield tables of errors, by kind and by words, each beside the previous submission's count."""
    earlier = {(error.kind, tuple(error.words)): error.image_count for error in before.errors}
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


def board_page(board: pb.GetLeaderboardResponse, challenge: pb.Challenge, me: str) -> dict[str, Any]:
    """Return the values for a leaderboard's page; ``me`` is the user, empty if signed out."""
    view = shown.board_view(board, me)
    chosen = f"{board.split}/{board.reference_set}"
    return {
        "title": board.title or board.challenge,
        "board": view,
        "sets": challenge_page(challenge, datetime.now(UTC))["set_names"],
        "chosen": chosen,
        "scores": [(column["name"], column["name"]) for column in view["columns"]] or [(board.score, board.score)],
        "asked": f"of={chosen}&score={board.score}&domain={board.domain}",
        "tabs": [(name, name or "all images", name == board.domain) for name in ("", *board.domains)],
        "charts": _board_charts(board),
        "rounding": shown.rounding_note(score for row in board.rows for score in row.scores),
        "signatures": shown.signature_lines([row.origin for row in board.rows]),
    }


def method_page(boards: Sequence[pb.GetLeaderboardResponse], user: str) -> dict[str, Any] | None:
    """Return the values for a method's page: its row on each board; ``None`` without any."""
    entries = [(board, row) for board in boards for row in board.rows if row.user == user]
    if not entries:
        return None
    first = entries[0][1]
    return {
        "user": user,
        "method": first.method,
        "team": first.team,
        "moment": minute(first.create_time),
        "links": [(name.capitalize(), url) for name, url in shown.links(first)],
        "boards": [
            {
                "heading": shown.board_name(board),
                "rank": row.rank if row.HasField("rank") else UNDEFINED,
                "of": len(board.rows),
                "ranked_by": board.score,
                "scores": [cell(score) for score in row.scores],
            }
            for board, row in entries
        ],
        "scorer": "; ".join(shown.signature_lines([first.origin])),
    }


def _board_charts(board: pb.GetLeaderboardResponse) -> dict[str, Any]:
    """Return the figures of a leaderboard: the score that ranks with its intervals, and how it came about."""
    ranked = _ranked(board)[:_DRAWN]
    if not ranked:
        return {}
    inks = {row.user: ink(index) for index, (row, _) in enumerate(ranked)}
    rows = [(row.user, (_mark(row.method, score, inks[row.user]),)) for row, score in ranked]
    charts = {"standing": interval_chart(board.score, rows, axis=board.score, form=f".{ranked[0][1].digits or 4}f")}
    history = _history_chart(board, inks)
    if history is None:
        return charts
    return charts | {"history": history, "legend": [(colour, user) for user, colour in inks.items()]}


def _ranked(board: pb.GetLeaderboardResponse) -> list[tuple[pb.LeaderboardRow, pb.CorpusScore]]:
    """Return the rows that have the score that ranks, with it."""
    scored = [(row, score) for row in board.rows for score in row.scores if score.name == board.score]
    return [(row, score) for row, score in scored if score.HasField("value")]


def _history_chart(board: pb.GetLeaderboardResponse, inks: Mapping[str, str]) -> Markup | None:
    """Return how the scores of teams on a leaderboard came about; ``None``: there is a single moment."""
    points = [(point.create_time.ToDatetime(UTC), point.user, point.value) for point in board.history]
    moments = _spread({moment for moment, *_ in points})
    if len(moments) < 2:
        return None
    standing = [{user: value for moment, user, value in points if moment <= now} for now in moments]
    form = "%H:%M" if moments[0].date() == moments[-1].date() else "%m-%d"
    return line_chart(
        f"{board.score} over time",
        [moment.strftime(form) for moment in moments],
        _history(standing, inks, is_lower_better=board.score in board.lower_is_better),
        x="submitted (UTC)",
        y=board.score,
        description=_HISTORY,
        zero=False,
        stepped=True,
    )


def _spread(moments: Iterable[datetime]) -> list[datetime]:
    """Return moments in order: of very many, some that are equally far apart in it."""
    ordered = sorted(moments)
    if len(ordered) <= _MOMENTS:
        return ordered
    return [ordered[index * (len(ordered) - 1) // (_MOMENTS - 1)] for index in range(_MOMENTS)]


def _mark(method: str, score: pb.CorpusScore, colour: str) -> Mark:
    low, high = (getattr(score, end) if score.HasField(end) else None for end in ("low", "high"))
    return Mark(method, score.value, low, high, colour)


def _history(standing: Sequence[Mapping[str, float]], inks: Mapping[str, str], *, is_lower_better: bool) -> list[Line]:
    """Return each user's values over time, with the places that they had; equal values share one."""
    places = []
    for values in standing:
        order = sorted(values.values(), reverse=not is_lower_better)
        places.append({user: order.index(value) + 1 for user, value in values.items()})
    return [
        Line(
            user,
            [values.get(user) for values in standing],
            colour,
            [f"place {of[user]} of {len(of)}" if user in of else "" for of in places],
        )
        for user, colour in inks.items()
    ]


def user_row(user: pb.User) -> dict[str, Any]:
    """Return a user's row in the list of users."""
    return {
        "name": user.name,
        "team": user.team,
        "role": pb.UserRole.Name(user.role).removeprefix("USER_ROLE_").lower().replace("_", " "),
        "tokens": [{"id": token.id, "name": token.name, "moment": minute(token.create_time)} for token in user.tokens],
    }
