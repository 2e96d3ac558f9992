"""Tables at the widths of terminals: no number is cut, broken or left out, by any command that prints tables."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_challenge.pages import tables as challenge
from spicegraph_service.cli import main
from spicegraph_service.output import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from rich.console import RenderableType

COMMANDS = {
    "score": ("score", "a.jsonl", "--metrics", "all", "--confidence"),
    "score of systems": ("score", "a.jsonl", "long-name-of-a-system=b.jsonl", "c=a.jsonl", "--metrics", "all"),
    "score of many": ("score", *(f"s{n}={'ab'[n % 2]}.jsonl" for n in range(9)), "--metrics", "coco", "--confidence"),
    "compare": ("compare", "a.jsonl", "long-name-of-a-system=b.jsonl", "--metrics", "all", "--draws", "9"),
    "bounds": ("bounds", "a.jsonl", "b.jsonl", "--metrics", "spice,bleu,spice-g", "--draws", "9"),
    "agree captions": ("agree", "captions", "rated.jsonl", "--metrics", "spice,rouge,bleu", "--draws", "9"),
    "agree pairs": ("agree", "pairs", "pairs.jsonl", "--metrics", "spice,rouge", "--draws", "9", "--curve", "1,2"),
    "agree hallucinations": ("agree", "hallucinations", "pairs.jsonl", "--metrics", "chair,rouge", "--draws", "9"),
    "agree systems": ("agree", "systems", "human.csv", "scores.csv", "--draws", "9"),
    "agree words": ("agree", "words", "a.jsonl", "--words", "5", "--draws", "9"),
    "parse": ("parse", "captions.txt", "--format", "table"),
    "agree protocols": ("agree", "protocols"),
    "config": ("config", "score"),
    "platform codabench": ("platform", "codabench", ".", "out", "--metrics", "coco"),
}
NUMBER = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?![\w.])")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = [
        ("a brown dog runs on the grass", ["A brown dog runs.", "The two dogs are brown."]),
        ("a cat", ["A cat on a red sofa.", "A grey cat sits."]),
        ("three men ride horses", ["Men on horses.", "Three riders near a large lake."]),
    ]
    items = [{"id": n, "candidate": text, "references": refs} for n, (text, refs) in enumerate(texts)]
    rows = {
        "a": items,
        "b": [item | {"candidate": "a big dog"} for item in items],
        "rated": [item | {"ratings": [item["id"], item["id"] + 1]} for item in items],
        "pairs": [
            {"image_id": n, "captions": [text, "a bus"], "label": 0, "references": refs, "category": "HC"}
            for n, (text, refs) in enumerate(texts)
        ],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "human.csv").write_text(
        "system,M1,M2,M3\n" + "".join(f"s{n},0.{n}1,0.{9 - n}2,{n}\n" for n in range(5))
    )
    (tmp_path / "scores.csv").write_text("system,SPICE,CIDEr\n" + "".join(f"s{n},0.{n}5,0.{n}1\n" for n in range(5)))
    (tmp_path / "captions.txt").write_text("A bus with number 12345 and 3 dogs\n" + "word " * 30 + "2026\n")
    for name, content in {"ref": {n: refs for n, (_, refs) in enumerate(texts)}, "res": dict(enumerate("abc"))}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "r.json").write_text(json.dumps(content))
    return tmp_path


def _numbers(text: str) -> list[str]:
    return sorted(NUMBER.findall(text))


@pytest.mark.model
@pytest.mark.parametrize("command", COMMANDS)
def test_no_number_is_cut_at_60_or_80_columns(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {}
    for width in (400, 80, 60):
        monkeypatch.setattr(tables, "_width", lambda width=width: width)
        assert main(COMMANDS[command]) == 0
        printed[width] = capsys.readouterr().out
        if (folder / "out").exists():
            for file in (folder / "out").iterdir():
                file.unlink()
    wanted = set(_numbers(printed[400]))
    assert len(wanted) > 1
    for width in (80, 60):
        assert set(_numbers(printed[width])) >= wanted
        assert "…" not in printed[width]
        rows = [line for line in printed[width].splitlines() if NUMBER.search(line) and "|" not in line]
        assert sum(len(line) <= width for line in rows) > 0


MOMENT = Timestamp(seconds=1_795_340_291)
CHALLENGE = pb.Challenge(
    name="captions-of-the-year",
    title="A challenge of 2026 with a title of some words",
    metrics=["spice", "cider"],
    primary_score="CIDEr",
    splits=[
        pb.ChallengeSplit(
            name=split,
            reference_sets=[
                pb.ChallengeReferenceSet(name=name, image_count=40_504, caption_count=1_202_520)
                for name in ("c5", "c40")
            ],
        )
        for split in ("val2014", "test2014")
    ],
    open_time=MOMENT,
    close_time=MOMENT,
    daily_limit=12_345,
    total_limit=98_765,
    disclosure=pb.Disclosure(category_images=50, equal_percent=50),
)
SUBMISSIONS = [
    pb.Submission(id="0123456789abcdef", method="a method 12.5 with words", state=2, queue_position=1_234),
    pb.Submission(id="fedcba9876543210", method="m", state=3, progress=0.57),
    pb.Submission(
        id="0f0f0f0f0f0f0f0f",
        state=4,
        scores=[
            pb.SplitScores(
                split="val2014",
                reference_set="c5",
                image_count=40_504,
                empty_candidate_count=17,
                scores=[pb.CorpusScore(name=name, value=0.12345, low=0.1, high=0.2) for name in ("SPICE", "CIDEr")],
            )
        ],
    ),
    pb.Submission(
        id="a0a0a0a0a0a0a0a0",
        state=5,
        failure=pb.SubmissionFailure(
            reason="INVALID_FILE",
            message="the file has 1,234 faults",
            fault_count=1_234,
            faults=[pb.SubmissionFault(file="results.json", item="item 123456 (image_id 581921)", reason="is empty")],
        ),
    ),
]
for number, submission in enumerate(SUBMISSIONS):
    submission.create_time.CopyFrom(MOMENT)
    submission.user = f"team-rocket-of-somewhere-{number}"
USER = pb.User(
    name="team-rocket-of-somewhere",
    tokens=[pb.UserToken(id=f"a1b2c3d4e5f6071{n}", name="laptop 2026", create_time=MOMENT) for n in range(2)],
)
BOARD = pb.GetLeaderboardResponse(
    split="val2014",
    reference_set="c40",
    score="CIDEr",
    rows=[
        pb.LeaderboardRow(
            rank=rank,
            user=f"team-{rank}",
            method="a method with words",
            create_time=MOMENT,
            scores=[
                pb.CorpusScore(name=name, value=place + rank / 1_000)
                for place, name in enumerate(["Bleu_1", "Bleu_4", "METEOR", "ROUGE_L", "CIDEr", "SPICE", "CHAIRs"])
            ],
        )
        for rank in (1, 2, 103)
    ],
    lower_is_better=["CHAIRs"],
)
CHALLENGE_TABLES: dict[str, Callable[[], Iterable[RenderableType]]] = {
    "list": lambda: [challenge.challenge_table([CHALLENGE])],
    "show": lambda: challenge.challenge_view(pb.GetChallengeResponse(challenge=CHALLENGE, quota=pb.Quota(left=2))),
    "user list": lambda: [challenge.user_table([USER])],
    "submissions": lambda: [challenge.submission_table(SUBMISSIONS)],
    "status": lambda: challenge.submission_view(SUBMISSIONS[2]),
    "status of a faulty file": lambda: challenge.submission_view(SUBMISSIONS[3]),
    "leaderboard": lambda: challenge.board_tables([BOARD]),
}


@pytest.mark.parametrize("table", CHALLENGE_TABLES)
def test_no_number_moment_or_id_of_a_challenge_is_broken_at_60_or_80_columns(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {}
    for width in (400, 80, 60):
        monkeypatch.setattr(tables, "_width", lambda width=width: width)
        printed[width] = tables.rendered(CHALLENGE_TABLES[table]())
    wanted = {word for word in printed[400].split() if any(map(str.isdigit, word)) and len(word) < 24}
    assert len(wanted) > 3
    for width in (80, 60):
        assert wanted <= set(printed[width].split())
        assert "…" not in printed[width]


def test_the_best_and_the_worst_of_a_leaderboard_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "is_terminal", lambda _: True)
    monkeypatch.setattr(tables, "_width", lambda: 200)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    rows = {
        line.split()[0].strip("\x1b[0m"): line
        for line in tables.rendered(CHALLENGE_TABLES["leaderboard"]()).splitlines()
        if "team-" in line
    }
    assert "\x1b[1;32m5.1030\x1b[0m" in rows["103"]
    assert "\x1b[31m5.0010\x1b[0m" in rows["1"]
    assert "\x1b[1;32m6.0010\x1b[0m" in rows["1"]  # of CHAIRs the lowest is best
    assert "\x1b[31m6.1030\x1b[0m" in rows["103"]
    assert "\x1b" not in rows["2"]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_columns_that_do_not_fit_stand_below(width: int) -> None:
    table = Table(title="t", pad_edge=False)
    table.add_column("A name")
    for number in range(9):
        table.add_column(f"n{number}", justify="right")
    table.add_row(Text("a system with a long name"), *(f"0.{number}23456" for number in range(9)))
    console = Console(width=width)
    parts = list(tables.fitted(table, console))
    assert [part.title for part in parts] == ["t", *[None] * (len(parts) - 1)]
    assert (len(parts) == 1) == (width == 200)
    assert [c.header for part in parts for c in part.columns[1:]] == [f"n{number}" for number in range(9)]
    for part in parts:
        with console.capture() as capture:
            console.print(part)
        text = capture.get()
        assert max(map(len, text.splitlines())) <= width
        assert text.count("23456") == len(part.columns) - 1
