"""Nothing that a participant can get holds a reference, or a score of a single item."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.challenge.v1.challenge_pb2_grpc import ChallengeServiceStub
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model.accounts import Account
from spicegraph_challenge.model.leaderboard import shown_scores
from spicegraph_challenge.model.schema import Challenge, Role, RunScore
from spicegraph_challenge.model.settings import with_defaults
from spicegraph_challenge.pages.tables import BOARD_FORMATS
from spicegraph_service.store import parse_signature
from spicegraph_service.store.places import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from arenas import Arena
    from servers import RunningServer

pytestmark = pytest.mark.model
S = pb.SubmissionState
NOUNS = ["zebra", "trombone", "glacier", "lantern", "walrus", "parasol", "turbine"]
REFERENCES = {
    key: [f"a crimson {noun} beside a hidden teapot", f"someone polishes the {noun} near seven marmots"]
    for key, noun in enumerate(NOUNS)
}
PHRASES = [
    " ".join(words[start : start + 3])
    for texts in REFERENCES.values()
    for text in texts
    for words in [text.split()]
    for start in range(len(words) - 2)
]


class Recorder:
    """Makes calls, and remembers every byte of their answers."""

    def __init__(self, server: RunningServer, token: str) -> None:
        self.seen: list[bytes] = []
        self._stub = ChallengeServiceStub(grpc.insecure_channel(server.address))
        self._metadata = (("authorization", f"Bearer {token}"),)

    def __call__(self, method: str, request: Message | Iterator[Message]) -> list[Message]:
        answers: list[Message] = []
        call = getattr(self._stub, method)(request, metadata=self._metadata, timeout=60)
        try:
            if hasattr(call, "code") and hasattr(call, "__iter__"):
                answers += call
            else:
                answers.append(call)
        except grpc.RpcError as error:
            self._error(error)
        return self._kept(answers)

    def unary(self, method: str, request: Message | Iterator[Message]) -> Message | None:
        try:
            answer, call = getattr(self._stub, method).with_call(request, metadata=self._metadata, timeout=60)
        except grpc.RpcError as error:
            self._error(error)
            return None
        self.seen.append(repr(call.trailing_metadata()).encode())
        return self._kept([answer])[0]

    def _error(self, error: grpc.RpcError) -> None:
        self.seen.append(str(error.details()).encode())
        self.seen += [value if isinstance(value, bytes) else value.encode() for _, value in error.trailing_metadata()]

    def _kept(self, answers: list[Message]) -> list[Message]:
        self.seen += [answer.SerializeToString() + str(answer).encode() for answer in answers]
        return answers


def submission(name: str, content: bytes, challenge: str = "secret") -> Iterator[pb.CreateSubmissionRequest]:
    yield pb.CreateSubmissionRequest(settings=pb.SubmissionSettings(challenge=challenge, file_name=name))
    yield pb.CreateSubmissionRequest(chunk=content)


def results(captions: dict[object, object]) -> bytes:
    return json.dumps([{"image_id": key, "caption": caption} for key, caption in captions.items()]).encode()


@pytest.fixture(scope="module")
def secret(
    tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer], tools: type
) -> Iterator[tuple[Arena, RunningServer, ChallengeClient]]:
    folder = tmp_path_factory.mktemp("secret")
    arena = tools.arena(str(folder / "challenges.db"), folder, start_server)
    server = arena.start(f"--store={folder / 'server.db'}", "--log-level=debug", "--reflection")
    with ChallengeClient(server.address, arena.organiser()) as organiser:
        message = tools.challenge(
            "secret", metrics=["spice", "bleu", "meteor", "rouge", "cider"], total_limit=10, splits={"test": ["c2"]}
        )
        organiser.create_challenge(message)
        references = arena.write("references.json", tools.annotations(REFERENCES))
        organiser.upload_references("secret", "test", "c2", references)
        yield arena, server, organiser


def test_no_answer_and_no_log_holds_a_reference(secret: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    arena, server, organiser = secret
    participant = Recorder(server, organiser.create_user("nosy"))
    name = "captions_test_guess_results.json"
    contents = [
        results({key: f"a grey {noun} on a table" for key, noun in enumerate(NOUNS)}),
        results(dict.fromkeys(range(3), "a guess")),
        results({str(key): "" for key in range(9)} | {99: 5}),
        results(dict.fromkeys(range(len(NOUNS)), "image_1.jpg")),
        b"[",
        b"PK\x03\x04",
    ]
    sent = [participant.unary("CreateSubmission", submission(name, content)) for content in contents]
    for answer in sent:
        assert answer is not None
        participant("WatchSubmission", pb.WatchSubmissionRequest(id=answer.submission.id))
        for method, request in (
            ("GetSubmission", pb.GetSubmissionRequest(id=answer.submission.id)),
            ("ListSubmissionFaults", pb.ListSubmissionFaultsRequest(id=answer.submission.id, page_size=1000)),
            ("CancelSubmission", pb.CancelSubmissionRequest(id=answer.submission.id)),
            ("ChooseSubmission", pb.ChooseSubmissionRequest(challenge="secret", submission=answer.submission.id)),
        ):
            participant.unary(method, request)
        participant("GetSubmissionReport", pb.GetSubmissionReportRequest(id=answer.submission.id))
    done = organiser.get_submission(sent[0].submission.id)
    assert done.state == S.SUBMISSION_STATE_SUCCEEDED
    boards = []
    for score in ("", "SPICE_Color", "nope"):
        board = participant.unary("GetLeaderboard", pb.GetLeaderboardRequest(challenge="secret", score=score))
        boards += [board] if board is not None else []
    participant.seen += [form([board]).encode() for form in BOARD_FORMATS.values() for board in boards]
    for method, request in (
        ("GetChallenge", pb.GetChallengeRequest(name="secret")),
        ("ListChallenges", pb.ListChallengesRequest()),
        ("ListSubmissions", pb.ListSubmissionsRequest(challenge="secret")),
        ("ListUsers", pb.ListUsersRequest()),
        ("CreateChallenge", pb.CreateChallengeRequest(challenge=pb.Challenge(name="secret"))),
        ("UpdateChallenge", pb.UpdateChallengeRequest(name="secret", settings=pb.ChallengeSettings(title="mine"))),
        ("DeleteChallenge", pb.DeleteChallengeRequest(name="secret")),
        ("RescoreChallenge", pb.RescoreChallengeRequest(challenge="secret")),
        ("UploadReferences", iter([pb.UploadReferencesRequest(chunk=b"[]")])),
        ("GetLeaderboard", pb.GetLeaderboardRequest(challenge="secret", split="nope")),
    ):
        participant.unary(method, request)
    # References in the wrong place: their organiser is told where, the log is not.
    captions = [text for texts in REFERENCES.values() for text in texts]
    with pytest.raises(grpc.RpcError) as caught:
        organiser.upload_references("secret", "test", "c2", arena.write("bad.json", {"annotations": captions}))
    assert "annotations cannot be used (14 faults)" in caught.value.details()
    assert captions[-1].encode() in b"".join(
        value for _, value in caught.value.trailing_metadata() if isinstance(value, bytes)
    )
    break_references(arena, participant, organiser)
    assert len(participant.seen) > 50
    check_texts(participant.seen, [server.log.read_bytes()])


def break_references(arena: Arena, participant: Recorder, organiser: ChallengeClient) -> None:
    """Let the server fail in the middle of its work: what it says then is scanned as well."""
    for file in (arena.folder / "files" / "objects").glob("*/*"):
        data = file.read_bytes()
        if b"crimson" in data and not data.startswith(b"{"):  # not what was uploaded, but what is read
            file.write_bytes(data[: len(data) // 2] + b"\xc1" * (len(data) - len(data) // 2))
    content = results({key: f"another {noun}" for key, noun in enumerate(NOUNS)})
    answer = participant.unary("CreateSubmission", submission("captions_test_x_results.json", content))
    assert answer is not None
    *_, last = participant("WatchSubmission", pb.WatchSubmissionRequest(id=answer.submission.id))
    assert last.submission.failure.reason == "INTERNAL"
    assert "the server's log has it as" in last.submission.failure.message
    assert organiser.get_submission(answer.submission.id).state == S.SUBMISSION_STATE_FAILED


def check_texts(answers: list[bytes], logs: list[bytes]) -> None:
    for text in (*answers, *logs):
        lowered = text.lower()
        for phrase in PHRASES:
            assert phrase.encode() not in lowered, phrase
        assert b"marmot" not in lowered
        assert b"teapot" not in lowered


def test_the_scan_would_find_a_reference() -> None:
    with pytest.raises(AssertionError):
        check_texts([REFERENCES[0][0].upper().encode()], [])


def test_participants_see_no_more_than_the_disclosure_says(
    secret: tuple[Arena, RunningServer, ChallengeClient], tools: type
) -> None:
    """Scores and intervals are rounded, and categories of few images are left out; organisers see all of it."""
    arena, server, organiser = secret
    default = tools.challenge("default", metrics=["spice", "rouge"], primary_score="ROUGE_L")
    numbers = {
        "daily_limit": 5,
        "total_limit": 20,
        "digits": 2,
        "category_images": 50,
        "equal_percent": 50,
        "error_images": 10,
    }
    for field in numbers:
        default.settings.ClearField(field)
    made = organiser.create_challenge(default).settings
    assert {field: getattr(made, field) for field in numbers} == numbers
    organiser.upload_references("default", "val", "c5", arena.write("r.json", tools.annotations(REFERENCES)))
    sent = []
    for name, color in (("ann", "red"), ("bea", "crimson")):
        path = arena.write(
            "captions_val_x_results.json",
            [
                {"image_id": key, "caption": f"a {color if key < 2 else 'red'} {noun} on a table"}
                for key, noun in enumerate(NOUNS)
            ],
        )
        with ChallengeClient(server.address, organiser.create_user(name)) as client:
            found, _ = client.submit("default", path)
            *_, last = client.watch(found.id)
            sent.append(last)
            board = client.leaderboard("default")
            with pytest.raises(grpc.RpcError, match="there is no score 'SPICE_Color'; there are SPICE, ROUGE_L"):
                client.leaderboard("default", score="SPICE_Color")
    full = organiser.get_submission(sent[0].id).scores[0].scores
    shown = sent[0].scores[0].scores
    assert [row.name for row in shown] == ["SPICE", "ROUGE_L"]
    assert "SPICE_Color" in [row.name for row in full]
    exact = {row.name: row for row in full}
    for row in shown:
        assert (row.value, row.digits) == (round(exact[row.name].value, 2), 2)
        assert row.low <= exact[row.name].value <= row.high
        assert not exact[row.name].digits
    assert [list(row.scores) for row in board.rows] == [list(found.scores[0].scores) for found in sent[::-1]]
    # Ranks tell no more than the scores: what is shown as equal is ranked by time; organisers see the exact order.
    organiser.update_challenge("default", pb.ChallengeSettings(digits=1, category_images=1))
    first, second = organiser.leaderboard("default").rows
    assert first.scores != second.scores
    with ChallengeClient(server.address, organiser.create_user("late")) as client:
        coarse = client.leaderboard("default")
        assert [row.user for row in coarse.rows] == ["ann", "bea"] == [second.user, first.user]
        for score in ("SPICE", "ROUGE_L"):  # the history of a board is rounded as the scores beside it
            rounded = client.leaderboard("default", score=score)
            values = {row.user: value.value for row in rounded.rows for value in row.scores if value.name == score}
            assert {point.user: point.value for point in rounded.history} == values
        # After the close no submission can ask any more: the order is exact, and nobody chooses another one.
        organiser.update_challenge("default", pb.ChallengeSettings(close_time=Timestamp(seconds=1_000_000_000)))
        for score in ("SPICE", "ROUGE_L"):
            closed, exact_order = (who.leaderboard("default", score=score).rows for who in (client, organiser))
            assert [row.user for row in closed] == [row.user for row in exact_order]
        with pytest.raises(grpc.RpcError, match="the challenge closed at"):
            client.choose("default", None)


@given(st.floats(0, 10), st.floats(0, 1), st.floats(0, 1), st.integers(1, 9))
def test_a_rounded_interval_holds_the_score_and_the_exact_one(
    value: float, below: float, above: float, digits: int
) -> None:
    row = RunScore(name="SPICE", value=value, low=value - below, high=value + above, images=None)
    challenge = Challenge(settings=with_defaults(pb.ChallengeSettings(digits=digits)))
    (shown,) = shown_scores([row], challenge, Account(1, "ann", Role.PARTICIPANT))
    assert shown_scores([row], challenge, Account(1, "ann", Role.PARTICIPANT)) == [shown]  # asking again tells nothing
    assert (shown.value, shown.digits) == (round(value, digits), digits)
    assert shown.low <= shown.value <= shown.high
    assert shown.low - 1e-6 <= value <= shown.high + 1e-6
    assert shown.high - shown.low <= below + above + 2 * 10**-digits + 1e-6


def test_a_shown_score_is_rounded_and_its_interval_outwards() -> None:
    row = RunScore(name="SPICE", value=0.2341, low=0.2109, high=0.2543, images=None)
    challenge = Challenge(settings=with_defaults(pb.ChallengeSettings()))
    (shown,) = shown_scores([row], challenge, Account(1, "ann", Role.PARTICIPANT))
    assert (shown.value, shown.low, shown.high, shown.digits) == (0.23, 0.21, 0.26, 2)


@pytest.mark.parametrize("digits", [-1, 0, 10])
def test_a_wrong_disclosure_is_refused(
    secret: tuple[Arena, RunningServer, ChallengeClient], tools: type, digits: int
) -> None:
    *_, organiser = secret
    wrong = tools.challenge("wrong", digits=digits)
    with pytest.raises(grpc.RpcError, match=r"challenge\.settings\.digits"):
        organiser.create_challenge(wrong)


def test_parses_of_references_cannot_be_found_by_guessing(secret: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    """A caption of a private reference is as new to other calls as any: its parse is kept apart."""
    arena, server, _ = secret
    texts = [text for captions in REFERENCES.values() for text in captions]
    pipeline = next(
        str(line["message"]).removeprefix("serving: pipeline ").partition(",")[0]
        for line in server.lines()
        if str(line["message"]).startswith("serving")
    )
    store = open_store(str(arena.folder / "server.db"))
    signature = parse_signature(pipeline)
    end = time.monotonic() + 30
    while len(store.get_parses(f"{signature} private", texts)) < len(texts):
        assert time.monotonic() < end, "the references were not parsed ahead"
        time.sleep(0.2)
    assert not store.get_parses(signature, texts)
    store.close()


def test_the_contract_has_no_room_for_items() -> None:
    """No message that the service sends holds a result of a single item."""
    service = pb.DESCRIPTOR.services_by_name["ChallengeService"]

    def reachable(message: Descriptor, found: set[str]) -> set[str]:
        if message.full_name not in found:
            found.add(message.full_name)
            for field in message.fields:
                if field.type == FieldDescriptor.TYPE_MESSAGE:
                    reachable(field.message_type, found)
        return found

    found: set[str] = set()
    for method in service.methods:
        reachable(method.output_type, found)
    assert "spicegraph.challenge.v1.Submission" in found
    assert found.isdisjoint({f"spicegraph.v1.{name}" for name in ("Item", "ItemResult", "TupleMatch", "SceneTuple")})


def test_files_of_challenges_are_their_owner_s_alone(secret: tuple[Arena, RunningServer, ChallengeClient]) -> None:
    arena, *_ = secret
    folder: Path = arena.folder / "files"
    assert (folder / "objects").stat().st_mode & 0o077 == 0
    assert (folder / "incoming").stat().st_mode & 0o077 == 0
