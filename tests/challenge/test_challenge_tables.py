"""Tables of challenges at the widths of terminals: no number, moment or id is cut or broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from overwriting import writers_without_input
from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.pages import tables as challenge
from spicegraph_challenge.pages import views
from spicegraph_service.output import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType

MOMENT = Timestamp(seconds=1_795_340_291)
CHALLENGE = pb.Challenge(
    name="captions-of-the-year",
    settings=pb.ChallengeSettings(
        title="A challenge of 2026 with a title of some words",
        metrics=["spice", "cider"],
        primary_score="CIDEr",
        splits=[
            pb.ChallengeSplit(
                name=split,
                reference_sets=[
                    pb.ChallengeReferenceSet(
                        name=name, image_count=40_504, caption_count=1_202_520, domains=[f"domain-{name}"]
                    )
                    for name in ("c5", "c40")
                ],
            )
            for split in ("val2014", "test2014")
        ],
        open_time=MOMENT,
        close_time=MOMENT,
        daily_limit=12_345,
        total_limit=98_765,
        category_images=50,
        equal_percent=50,
    ),
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
    "list": lambda: challenge.challenge_table([CHALLENGE]),
    "show": lambda: challenge.challenge_view(pb.GetChallengeResponse(challenge=CHALLENGE, quota=pb.Quota(left=2))),
    "user list": lambda: challenge.user_table([USER]),
    "submissions": lambda: challenge.submission_table(SUBMISSIONS),
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
        monkeypatch.setattr(tables, "console_width", lambda width=width: width)
        printed[width] = tables.rendered(CHALLENGE_TABLES[table]())
    wanted = {word for word in printed[400].split() if any(map(str.isdigit, word)) and len(word) < 24}
    assert len(wanted) > 3
    for width in (80, 60):
        assert wanted <= set(printed[width].split())
        assert "…" not in printed[width]


def test_a_participant_is_told_how_scores_are_rounded() -> None:
    shown = pb.CorpusScore(name="SPICE", value=0.2, low=0.16, high=0.24, digits=2)
    told = "Scores are rounded to 2 decimal places."
    for scores, is_told in (([shown], True), ([pb.CorpusScore(name="SPICE", value=0.2336)], False)):
        made = pb.Submission(state=4, scores=[pb.SplitScores(split="test", image_count=200, scores=scores)])
        assert (told in " ".join(tables.rendered(challenge.submission_view(made)).split())) is is_told
        (part,) = views.submission_page(made, None, own=True)["parts"]
        assert (told in part["rounding"]) is is_told


def test_a_challenge_shows_its_domains() -> None:
    assert "domains of val2014, c40: domain-c40" in tables.rendered(CHALLENGE_TABLES["show"]())
    without = pb.Challenge(settings=pb.ChallengeSettings(splits=[pb.ChallengeSplit(name="val")]))
    assert "domains" not in tables.rendered(challenge.challenge_view(pb.GetChallengeResponse(challenge=without)))


def test_the_best_and_the_worst_of_a_leaderboard_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "is_terminal", lambda _: True)
    monkeypatch.setattr(tables, "console_width", lambda: 200)
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


def test_commands_that_write_without_reading_are_known() -> None:
    """Outputs of commands that read files never overwrite these; this set grows only by commands that read none."""
    assert {path for path in writers_without_input() if path.startswith("challenge ")} == {
        "challenge leaderboard",
        "challenge report",
    }
