"""A leaderboard as text: JSON, CSV, and a self-contained HTML page in the reports' style."""

from __future__ import annotations

import csv
import io
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from spicegraph_service.output.challenge import when
from spicegraph_service.output.pages import render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from google.protobuf.timestamp_pb2 import Timestamp

    from spicegraph_api.v1 import challenge_pb2 as pb

_HERE = "spicegraph_service.challenge"
_SPICE = "SPICE"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class BoardFormat(StrEnum):
    """The output formats of a leaderboard, beside a table."""

    JSON = "json"
    CSV = "csv"
    HTML = "html"


def to_json(boards: Sequence[pb.GetLeaderboardResponse]) -> str:
    """Return leaderboards as JSON; what is undefined is null."""
    data = msgspec.json.encode([_board(board) for board in boards])
    return msgspec.json.format(data, indent=2).decode() + "\n"


def _board(board: pb.GetLeaderboardResponse) -> dict[str, Any]:
    return {
        "challenge": board.challenge,
        "title": board.title,
        "split": board.split,
        "reference_set": board.reference_set,
        "ranked_by": board.score,
        "time": when(board.create_time),
        "rows": [_row(row) for row in board.rows],
    }


def _row(row: pb.LeaderboardRow) -> dict[str, Any]:
    return {
        "rank": row.rank if row.HasField("rank") else None,
        "user": row.user,
        "method": row.method,
        "submitted": when(row.create_time),
        "submission": row.submission or None,
        "scores": {
            score.name: {
                "value": score.value if score.HasField("value") else None,
                "low": score.low if score.HasField("low") else None,
                "high": score.high if score.HasField("high") else None,
            }
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    ends = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    writer.writerow(
        ["split", "reference_set", "rank", "user", "method", "submitted", *ends, "version", "outdated", "scored"]
    )
    for board in boards:
        for row in board.rows:
            scores = _row(row)["scores"]
            cells = [
                scores[name][end] if name in scores else None for name in names for end in ("value", "low", "high")
            ]
            writer.writerow(
                [
                    board.split,
                    board.reference_set,
                    row.rank if row.HasField("rank") else None,
                    _plain(row.user),
                    _plain(row.method),
                    when(row.create_time),
                    *cells,
                    row.origin.version,
                    "yes" if row.origin.outdated else "no",
                    when(row.origin.score_time),
                ]
            )
    return text.getvalue()


def _plain(text: str) -> str:
    """Return text that no spreadsheet takes for a formula: methods' names are strangers' words."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_html(boards: Sequence[pb.GetLeaderboardResponse]) -> str:
    """Return leaderboards as one page, a table for each reference set of each split; columns sort by a click."""
    values = {
        "title": boards[0].title if boards else "Leaderboard",
        "made": _minute(boards[0].create_time) if boards else "",
        "boards": [_view(board) for board in boards],
        "signatures": _signatures(boards),
    }
    script = (files(_HERE) / "static" / "leaderboard.js").read_text(encoding="utf-8")
    return render_page("leaderboard.html.j2", values, package=_HERE, script=script)


def _view(board: pb.GetLeaderboardResponse) -> dict[str, Any]:
    """Return what the template shows of a leaderboard: a cell for every score, SPICE's categories apart."""
    names = list(dict.fromkeys(score.name for row in board.rows for score in row.scores))
    return {
        "id": f"{board.split}-{board.reference_set}",
        "heading": f"{board.split}, {board.reference_set}",
        "ranked_by": board.score,
        "columns": [
            {"name": name, "short": name.removeprefix(f"{_SPICE}_"), "category": name.startswith(f"{_SPICE}_")}
            for name in names
        ],
        "rows": [_row_view(row, names) for row in board.rows],
        "outdated": sum(row.origin.outdated for row in board.rows),
    }


def _row_view(row: pb.LeaderboardRow, names: Sequence[str]) -> dict[str, Any]:
    scores = {score.name: score for score in row.scores}
    return {
        "rank": row.rank if row.HasField("rank") else None,
        "user": row.user,
        "method": row.method,
        "day": _minute(row.create_time),
        "moment": when(row.create_time),
        "version": row.origin.version,
        "outdated": row.origin.outdated,
        "cells": [_cell(scores.get(name)) for name in names],
    }


def _cell(score: pb.CorpusScore | None) -> dict[str, float | None]:
    if score is None or not score.HasField("value"):
        return {"value": None, "low": None, "high": None}
    low = score.low if score.HasField("low") else None
    return {"value": score.value, "low": low, "high": score.high if score.HasField("high") else None}


def _signatures(boards: Sequence[pb.GetLeaderboardResponse]) -> list[str]:
    """Return every scorer that made a row, each once, as one line."""
    lines = [
        f"spicegraph {row.origin.version} · "
        + " · ".join(
            f"{signature.metric}: " + ", ".join(f"{key}={value}" for key, value in sorted(signature.fields.items()))
            for signature in row.origin.signatures
        )
        for board in boards
        for row in board.rows
    ]
    return list(dict.fromkeys(lines))


def _minute(moment: Timestamp) -> str:
    return moment.ToDatetime().strftime("%Y-%m-%d %H:%M UTC")


BOARD_FORMATS: Mapping[BoardFormat, Callable[[Sequence[pb.GetLeaderboardResponse]], str]] = {
    BoardFormat.JSON: to_json,
    BoardFormat.CSV: to_csv,
    BoardFormat.HTML: to_html,
}
"""Every format."""
