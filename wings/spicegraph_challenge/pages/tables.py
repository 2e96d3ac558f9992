"""Challenges, submissions and leaderboards as tables, JSON, CSV and a self-contained page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from rich.text import Text

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.settings import SPLIT_SETTINGS, rules, value_text
from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, csv_lines, headings, printable, ranked, render_page, static

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from google.protobuf.timestamp_pb2 import Timestamp

UNDEFINED = "–"
_PACKAGE = "spicegraph_challenge.pages"
CATEGORY = "SPICE_"
_DIGITS = 4  # decimal places of a score that does not say


def when(moment: Timestamp) -> str:
    """Return a moment as ISO 8601 in UTC, to the second; empty where there is none."""
    return f"{moment.ToDatetime().isoformat(timespec='seconds')}Z" if moment.seconds else ""


def minute(moment: Timestamp) -> str:
    """Return a moment to the minute; empty where there is none."""
    return moment.ToDatetime().strftime("%Y-%m-%d %H:%M UTC") if moment.seconds else ""


def challenge_table(challenges: Iterable[pb.Challenge]) -> Iterator[Grid]:
    """Yield the challenges, one per row."""
    columns = ("Name|text", "Title|text", "Splits|text", "Opens|code", "Closes|code", "A day|count", "In all|count")
    rows = [
        (
            challenge.name,
            challenge.settings.title,
            ", ".join(split.name for split in challenge.settings.splits),
            when(challenge.settings.open_time) or None,
            when(challenge.settings.close_time) or None,
            challenge.settings.daily_limit or None,
            challenge.settings.total_limit or None,
            "yes" if challenge.ready else "no",
        )
        for challenge in challenges
    ]
    yield Grid("", headings(*columns, "Ready|text"), rows)


def challenge_view(answer: pb.GetChallengeResponse) -> Iterator[Grid | Text]:
    """Yield a challenge's tables and texts."""
    settings, quota = answer.challenge.settings, answer.quota
    yield from challenge_table([answer.challenge])
    if settings.description:
        yield Text(printable(settings.description))
    sets = [(split, each) for split in settings.splits for each in split.reference_sets]
    labels = [f"{setting.label}|text" for setting in SPLIT_SETTINGS.values()]
    columns = headings("Split|text", "Set|text", "Images|count", "Captions|count", *labels)
    yield Grid("References", columns, [set_cells(split, each) for split, each in sets])
    for split, each in sets:
        if each.domains:
            yield Text(f"domains of {split.name}, {each.name}: {', '.join(each.domains)}")
    yield Grid("Rules", headings("Setting|text", "Value|text"), [(label, text) for label, text, _ in rules(settings)])
    left = str(quota.left) if quota.HasField("left") else "any number"
    yield Text(f"your submissions that count: {quota.used_today} today, {quota.used_total} in all; left now: {left}")
    for part in quota.phases:
        yield Text(
            f"of them for {part.split}: {part.used_today} today, {part.used_total} in all; left now: {part.left}"
        )


def set_cells(split: pb.ChallengeSplit, each: pb.ChallengeReferenceSet) -> tuple[str | int | None, ...]:
    """Return a reference set's cells: split, name, size, and the split's settings."""
    settings = (value_text(split, name) or None for name in SPLIT_SETTINGS)
    return split.name, each.name, each.image_count or None, each.caption_count or None, *settings


def user_table(users: Iterable[pb.User]) -> Iterator[Grid]:
    """Yield the users with their tokens, one row per token."""
    rows: list[tuple[str | None, ...]] = []
    for user in users:
        role = pb.UserRole.Name(user.role).removeprefix("USER_ROLE_").lower()
        for number_of_token, token in enumerate(user.tokens):
            first = ("", "") if number_of_token else (user.name, role)
            moments = [
                when(getattr(token, name)) if token.HasField(name) else None
                for name in ("create_time", "expire_time", "last_use_time")
            ]
            rows.append((*first, token.id, token.name, *moments, "" if number_of_token else user.team or None))
        if not user.tokens:
            rows.append((user.name, role, None, None, when(user.create_time), None, None, user.team or None))
    columns = ("User|text", "Role|text", "Token id|code", "Token|text", "Since|code", "Ends|text", "Last use|text")
    yield Grid("", headings(*columns, "Team|text"), rows)


def state_name(submission: pb.Submission) -> str:
    """Return the state in one word."""
    return pb.SubmissionState.Name(submission.state).removeprefix("SUBMISSION_STATE_")


def state_line(submission: pb.Submission) -> str:
    """Return a submission's state with its queue position, progress or failure."""
    name = state_name(submission)
    if submission.HasField("queue_position"):
        return f"{name}, number {submission.queue_position} in the queue"
    if submission.HasField("progress"):
        return f"{name}, {100 * submission.progress:.0f} %"
    if submission.HasField("failure"):
        return f"{name}: {submission.failure.reason}, {submission.failure.message}"
    return name


def submission_table(submissions: Iterable[pb.Submission]) -> Iterator[Grid]:
    """Yield submissions, one a row."""
    columns = headings("Id|code", "User|text", "Method|text", "Submitted|code", "State|text")
    yield Grid("", columns, [(s.id, s.user, s.method, when(s.create_time), state_line(s)) for s in submissions])


def submission_view(submission: pb.Submission) -> Iterator[Grid | Text]:
    """Yield a submission's tables and texts: its state, faults or scores."""
    yield from submission_table([submission])
    failure = submission.failure
    if failure.faults:
        faults = [(fault.file, fault.item, fault.field, fault.reason) for fault in failure.faults]
        yield Grid("", headings("File|text", "Where|text", "Field|text", "What is wrong|text"), faults)
        if failure.fault_count > len(failure.faults):
            more = failure.fault_count - len(failure.faults)
            yield Text(f"... and {more:,} more: spicegraph challenge faults {submission.id}")
    for scores in submission.scores:
        empty = scores.empty_candidate_count
        none = f", {counted(empty, 'empty caption')}" if empty else ""
        title = f"{board_name(scores)}: {counted(scores.image_count, 'image')}{none}"
        rows = [(score.name, number(score), _interval(score)) for score in scores.scores]
        yield Grid(title, headings("Score|text", "Value|figure", "95 % interval|figure"), rows)
        if rounding := rounding_note(scores.scores):
            yield Text(rounding)
        if scores.errors:
            kinds = [(error.title, error_words(error), f"{error.image_count:,}") for error in scores.errors]
            columns = headings("Error|text", "Words|text", "Images, rounded down|figure")
            yield Grid("Errors that many images have", columns, kinds)


def _interval(score: pb.CorpusScore) -> str:
    return f"{number(score, 'low')} .. {number(score, 'high')}" if score.HasField("low") else UNDEFINED


def error_words(error: pb.ErrorCount) -> str:
    """Return an error's words, each with its column's name."""
    return "; ".join(f"{column.lower()}: {word}" for column, word in zip(error.columns, error.words, strict=False))


def rounding_note(scores: Iterable[pb.CorpusScore]) -> str:
    """Say how scores are rounded; empty where they are exact."""
    digits = max((score.digits for score in scores), default=0)
    return f"Scores are rounded to {counted(digits, 'decimal place')}." if digits else ""


def number(score: pb.CorpusScore, end: Literal["value", "low", "high"] = "value") -> str:
    """Return a score, or an end of its interval, with the decimal places that the caller may see."""
    return f"{getattr(score, end):.{score.digits or _DIGITS}f}" if score.HasField(end) else UNDEFINED


def cell(score: pb.CorpusScore, before: pb.CorpusScore | None = None) -> dict[str, Any]:
    """Return a score as it is written, with its change against another one."""
    known = score.HasField("low") and score.HasField("high")
    made = {
        "name": score.name,
        "short": score.name.removeprefix(CATEGORY),
        "value": score.value if score.HasField("value") else None,
        "text": number(score),
        "range": f"{number(score, 'low')} to {number(score, 'high')}" if known else "",
        "change": "",
    }
    if before is not None and score.HasField("value") and before.HasField("value"):
        # Of the numbers as they are shown, which a reader may subtract.
        difference = float(number(score)) - float(number(before))
        change = pb.CorpusScore(value=abs(difference), digits=score.digits)
        sign = "" if float(number(change)) == 0 else "+" if difference > 0 else "−"
        made["change"] = sign + number(change)
    return made


def score_names(board: pb.GetLeaderboardResponse) -> list[str]:
    """Return the scores of a leaderboard, the one that ranks first."""
    names = dict.fromkeys(score.name for row in board.rows for score in row.scores)
    return [*(name for name in names if name == board.score), *(name for name in names if name != board.score)]


def board_name(scores: pb.SplitScores | pb.GetLeaderboardResponse) -> str:
    """Return the name of a board: split, reference set and, if any, domain."""
    return ", ".join(filter(None, (scores.split, scores.reference_set, scores.domain)))


def _method(row: pb.LeaderboardRow) -> str:
    return row.method + ("*" if row.origin.outdated else "")


def board_tables(boards: Iterable[pb.GetLeaderboardResponse]) -> Iterator[Grid | Text]:
    """Yield a table for each leaderboard; SPICE's categories are in the other formats, unless one ranks."""
    for board in boards:
        yield _board_grid(board)
        if any(row.origin.outdated for row in board.rows):
            yield Text("* scored by another version of the scorer", style="dim")


def _board_grid(board: pb.GetLeaderboardResponse) -> Grid:
    shown = [name for name in score_names(board) if name == board.score or not name.startswith(CATEGORY)]
    marks = {name: _marks(board, name) for name in shown}
    first = headings("Rank|code", "User|text", "Method|text")
    rows, styles = [], []
    for row in board.rows:
        texts = {score.name: number(score) for score in row.scores}
        values = [texts.get(name) for name in shown]
        rows.append((str(row.rank or "") or None, row.user, _method(row), *values, when(row.create_time)[:10]))
        styled = (marks[name].get(texts.get(name, ""), "") for name in shown)
        styles.append(dict(enumerate(styled, start=len(first))))
    columns = (*first, *(Column(name, "figure") for name in shown), Column("Submitted", "code"))
    return Grid(f"{board_name(board)}, by {board.score}", columns, rows, styles=styles)


def _marks(board: pb.GetLeaderboardResponse, name: str) -> dict[str, str]:
    """Return the styles of a score's best and worst value, by printed value."""
    scores = (score for row in board.rows for score in row.scores if score.name == name)
    values = (score.value for score in scores if score.HasField("value"))
    return ranked(values, lower=name in board.lower_is_better)


_ENDS: tuple[Literal["value", "low", "high"], ...] = ("value", "low", "high")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_json(boards: Sequence[pb.GetLeaderboardResponse]) -> str:
    """Return leaderboards as JSON; undefined values are null."""
    values = [
        {
            "challenge": board.challenge,
            "title": board.title,
            "split": board.split,
            "reference_set": board.reference_set,
            "domain": board.domain or None,
            "ranked_by": board.score,
            "time": when(board.create_time),
            "rows": [_row(row) for row in board.rows],
            "history": [
                {"user": point.user, "submitted": when(point.create_time), "value": point.value}
                for point in board.history
            ],
        }
        for board in boards
    ]
    return msgspec.json.format(msgspec.json.encode(values), indent=2).decode() + "\n"


def _row(row: pb.LeaderboardRow) -> dict[str, Any]:
    return {
        "rank": row.rank if row.HasField("rank") else None,
        "user": row.user,
        "method": row.method,
        "team": row.team or None,
        "paper": row.paper_url or None,
        "code": row.code_url or None,
        "submitted": when(row.create_time),
        "submission": row.submission or None,
        "scores": {
            score.name: {end: getattr(score, end) if score.HasField(end) else None for end in _ENDS}
            for score in row.scores
        },
        "version": row.origin.version,
        "outdated": row.origin.outdated,
        "scored": when(row.origin.score_time),
        "signatures": {signature.metric: dict(signature.fields) for signature in row.origin.signatures},
    }


def to_csv(boards: Sequence[pb.GetLeaderboardResponse]) -> str:
    """Return leaderboards as one table, a column for each score and each end of its interval."""
    names = list(dict.fromkeys(score.name for board in boards for row in board.rows for score in row.scores))
    head = [
        *("split", "reference_set", "domain", "rank", "user", "method", "team", "submitted"),
        *(f"{name}{end}" for name in names for end in ("", "_low", "_high")),
        *("version", "outdated", "scored", "paper", "code"),
    ]
    return "".join(csv_lines([head, *(_csv_row(board, row, names) for board in boards for row in board.rows)]))


def _csv_row(board: pb.GetLeaderboardResponse, entry: pb.LeaderboardRow, names: Sequence[str]) -> list[object]:
    row = _row(entry)
    scores = row["scores"]
    # Methods' names are strangers' words: no spreadsheet takes one for a formula.
    texts = [row[key] or "" for key in ("user", "method", "team")]
    harmless = (f"'{text}" if text.startswith(_FORMULA) else text for text in texts)
    undefined = dict.fromkeys(_ENDS)
    return [
        *(board.split, board.reference_set, board.domain),
        row["rank"],
        *harmless,
        row["submitted"],
        *(scores.get(name, undefined)[end] for name in names for end in _ENDS),
        *(row["version"], "yes" if row["outdated"] else "no", row["scored"], row["paper"], row["code"]),
    ]


def to_html(boards: Sequence[pb.GetLeaderboardResponse]) -> str:
    """Return leaderboards as one page, a table for each reference set of each split; columns sort by a click."""
    values = {
        "title": boards[0].title if boards else "Leaderboard",
        "made": minute(boards[0].create_time) if boards else "",
        "boards": [board_view(board) for board in boards],
        "signatures": signature_lines(row.origin for board in boards for row in board.rows),
    }
    script, style = static("leaderboard.js", _PACKAGE), static("board.css", _PACKAGE)
    return render_page("boards.html.j2", values, script=script, style=style, package=_PACKAGE)


def board_view(board: pb.GetLeaderboardResponse, me: str = "") -> dict[str, Any]:
    """Return a leaderboard for the template: ranking score first; the row of ``me`` is marked."""
    names = score_names(board)
    ranking = [score.value for row in board.rows for score in row.scores if score.name == board.score]
    return {
        "id": "-".join(filter(None, (board.split, board.reference_set, board.domain))),
        "heading": board_name(board),
        "ranked_by": board.score,
        "domain": board.domain,
        "columns": [
            {
                "name": name,
                "short": name.removeprefix(CATEGORY) if name != board.score else name,
                "category": name.startswith(CATEGORY),
                "lower": name in board.lower_is_better,
            }
            for name in names
        ],
        "rows": [_row_view(row, board.score, names, ranking, me) for row in board.rows],
        "outdated": sum(row.origin.outdated for row in board.rows),
    }


def _row_view(
    row: pb.LeaderboardRow, ranked_by: str, names: Sequence[str], ranking: Sequence[float], me: str
) -> dict[str, Any]:
    scores = {score.name: score for score in row.scores}
    ranked = scores.get(ranked_by, pb.CorpusScore())
    return {
        "rank": row.rank if row.HasField("rank") else None,
        "user": row.user,
        "own": bool(me) and row.user == me,
        "method": row.method,
        "team": row.team,
        "links": links(row),
        "version": row.origin.version,
        "outdated": row.origin.outdated,
        "day": minute(row.create_time),
        "moment": when(row.create_time),
        "cells": [cell(scores.get(name, pb.CorpusScore())) for name in names],
        "tied": ranked.HasField("value") and ranking.count(ranked.value) > 1,
    }


def links(row: pb.LeaderboardRow | pb.Submission) -> list[tuple[str, str]]:
    """Return the named links to a method's paper and code."""
    return [(name, url) for name, url in (("paper", row.paper_url), ("code", row.code_url)) if url]


def signature_lines(origins: Iterable[pb.ScoreOrigin]) -> list[str]:
    """Return every scorer that made scores, each once, as one line."""
    lines = [
        f"spicegraph {origin.version} · "
        + " · ".join(
            f"{signature.metric}: " + ", ".join(f"{key}={value}" for key, value in sorted(signature.fields.items()))
            for signature in origin.signatures
        )
        for origin in origins
        if origin.version
    ]
    return list(dict.fromkeys(lines))


BOARD_FORMATS: Mapping[str, Callable[[Sequence[pb.GetLeaderboardResponse]], str]] = {
    "json": to_json,
    "csv": to_csv,
    "html": to_html,
}
"""The output formats of a leaderboard, beside a table."""
