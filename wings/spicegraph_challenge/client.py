"""The client of the evaluation server, for organisers and participants."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.challenge.v1.challenge_pb2_grpc import ChallengeServiceStub
from spicegraph_api.challenge.v1.methods import METHODS
from spicegraph_service.client.evaluation import PAGE, Connection, TlsOptions, service_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.protobuf.message import Message
    from google.protobuf.timestamp_pb2 import Timestamp

_CHUNK = 1 << 20
_PAUSE_S = 1.0
_Reply = TypeVar("_Reply")


class ChallengeClient(Connection):
    """A synchronous client. Its calls raise ``grpc.RpcError``, and ``OSError`` where a file cannot be read.

    Args:
        address: ``HOST:PORT``, ``unix:PATH`` or ``dns:///NAME:PORT``.
        token: a user's token (``sgu_...``).
        tls: how to trust the server; ``None``: no TLS.
        timeout_s: the deadline of calls but of uploads, reports and watching, in seconds; ``None``: none.

    Example:
        >>> with ChallengeClient("localhost:50051", "sgu_...") as client:  # doctest: +SKIP
        ...     submission, _ = client.submit("coco", "captions_val2014_mine_results.json")
        ...     for seen in client.watch(submission.id):
        ...         print(seen.state)
    """

    _config: ClassVar[str] = service_config(METHODS)

    def __init__(
        self,
        address: str,
        token: str,
        *,
        tls: TlsOptions | None = None,
        timeout_s: float | None = 60.0,
        keepalive_s: float | None = 30.0,
        silence_s: float | None = 60.0,
    ) -> None:
        super().__init__(
            address, token=token, tls=tls, timeout_s=timeout_s, keepalive_s=keepalive_s, silence_s=silence_s
        )
        self._stub = ChallengeServiceStub(self._channel)

    def create_challenge(self, challenge: pb.Challenge) -> pb.Challenge:
        """Create a challenge."""
        return self._call(self._stub.CreateChallenge, pb.CreateChallengeRequest(challenge=challenge)).challenge

    def update_challenge(self, name: str, settings: pb.ChallengeSettings, mask: Sequence[str] = ()) -> pb.Challenge:
        """Change the settings of a challenge; what is absent stays as it is, or in a mask gets its default."""
        request = pb.UpdateChallengeRequest(name=name, settings=settings, update_mask=FieldMask(paths=mask))
        return self._call(self._stub.UpdateChallenge, request).challenge

    def get_challenge(self, name: str) -> pb.GetChallengeResponse:
        """Return a challenge, and what the caller may still submit."""
        return self._call(self._stub.GetChallenge, pb.GetChallengeRequest(name=name))

    def list_challenges(self) -> Iterator[pb.Challenge]:
        """Return all challenges by name."""
        request = pb.ListChallengesRequest(page_size=PAGE)
        for page in self._pages(self._stub.ListChallenges, request):
            yield from page.challenges

    def delete_challenge(self, name: str) -> None:
        """Delete a challenge that has no submissions."""
        self._call(self._stub.DeleteChallenge, pb.DeleteChallengeRequest(name=name))

    def upload_references(self, challenge: str, split: str, reference_set: str, path: str | Path) -> pb.Challenge:
        """Upload COCO annotations as the references of a split."""
        target = pb.ReferencesTarget(challenge=challenge, split=split, reference_set=reference_set)
        reply = self._upload(self._stub.UploadReferences, pb.UploadReferencesRequest(target=target), path)
        return reply.challenge

    def set_member(self, challenge: str, user: str, role: pb.ChallengeRole.ValueType) -> None:
        """Say what a user may do in a challenge; ``CHALLENGE_ROLE_UNSPECIFIED``: they are no longer a member."""
        request = pb.SetChallengeMemberRequest(challenge=challenge, user=user, role=role)
        self._call(self._stub.SetChallengeMember, request)

    def list_members(self, challenge: str) -> list[pb.ChallengeMember]:
        """Return the members of a challenge by name."""
        request = pb.ListChallengeMembersRequest(challenge=challenge)
        return list(self._call(self._stub.ListChallengeMembers, request).members)

    def create_user(
        self,
        name: str,
        role: pb.UserRole.ValueType = pb.USER_ROLE_PARTICIPANT,
        *,
        expires: Timestamp | None = None,
        team: str = "",
    ) -> str:
        """Add a user; return the secret of their first token, which may end."""
        request = pb.CreateUserRequest(name=name, role=role, expire_time=expires, team=team)
        return self._call(self._stub.CreateUser, request).secret

    def set_team(self, user: str, team: str) -> pb.User:
        """Put a user into a team, whose members share limits and a row on leaderboards; empty: out of it."""
        return self._call(self._stub.SetUserTeam, pb.SetUserTeamRequest(user=user, team=team)).user

    def list_users(self) -> Iterator[pb.User]:
        """Return all users by name."""
        for page in self._pages(self._stub.ListUsers, pb.ListUsersRequest(page_size=PAGE)):
            yield from page.users

    def delete_user(self, name: str) -> None:
        """Shut a user out."""
        self._call(self._stub.DeleteUser, pb.DeleteUserRequest(name=name))

    def create_token(self, name: str, *, user: str = "", expires: Timestamp | None = None) -> str:
        """Make a token for a user (default: oneself), which may end; return its secret."""
        request = pb.CreateUserTokenRequest(user=user, name=name, expire_time=expires)
        return self._call(self._stub.CreateUserToken, request).secret

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._call(self._stub.RevokeUserToken, pb.RevokeUserTokenRequest(id=token_id))

    def submit(
        self,
        challenge: str,
        path: str | Path,
        *,
        file_name: str = "",
        method: str = "",
        description: str = "",
        split: str = "",
        key: str = "",
        team: str = "",
        paper_url: str = "",
        code_url: str = "",
    ) -> tuple[pb.Submission, bool]:
        """Submit a results file; return the submission, and whether it was there before."""
        settings = pb.SubmissionSettings(
            challenge=challenge,
            file_name=file_name or Path(path).name,
            method=method,
            description=description,
            split=split,
            idempotency_key=key,
            team=team,
            paper_url=paper_url,
            code_url=code_url,
        )
        reply = self._upload(self._stub.CreateSubmission, pb.CreateSubmissionRequest(settings=settings), path)
        return reply.submission, reply.existed

    def get_submission(self, submission_id: str) -> pb.Submission:
        """Return a submission."""
        return self._call(self._stub.GetSubmission, pb.GetSubmissionRequest(id=submission_id)).submission

    def list_submissions(self, challenge: str, *, user: str = "") -> Iterator[pb.Submission]:
        """Return submissions, the newest first."""
        request = pb.ListSubmissionsRequest(challenge=challenge, user=user, page_size=100)
        for page in self._pages(self._stub.ListSubmissions, request):
            yield from page.submissions

    def watch(self, submission_id: str, *, patience_s: float = 300.0) -> Iterator[pb.Submission]:
        """Return a submission now, and after every change until it has ended.

        A server that is started again meanwhile, or another one in its place, is asked again for so many seconds.
        """
        request = pb.WatchSubmissionRequest(id=submission_id)
        seen: pb.Submission | None = None
        heard = time.monotonic()
        while True:
            try:
                for reply in self._stub.WatchSubmission(request, metadata=self._metadata):
                    heard = time.monotonic()
                    if reply.submission != seen:
                        seen = reply.submission
                        yield seen
            except grpc.RpcError as error:
                code = cast("grpc.Call", error).code()  # what gRPC raises is both
                if seen is None or code is not grpc.StatusCode.UNAVAILABLE or time.monotonic() - heard > patience_s:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return

    def faults(self, submission_id: str) -> Iterator[pb.SubmissionFault]:
        """Return all faults of a submission whose file was refused."""
        request = pb.ListSubmissionFaultsRequest(id=submission_id, page_size=PAGE)
        for page in self._pages(self._stub.ListSubmissionFaults, request):
            yield from page.faults

    def cancel(self, submission_id: str) -> pb.Submission:
        """Cancel a submission."""
        return self._call(self._stub.CancelSubmission, pb.CancelSubmissionRequest(id=submission_id)).submission

    def choose(self, challenge: str, submission_id: str | None) -> None:
        """Choose which of one's submissions is on the leaderboard; ``None``: none."""
        self._call(
            self._stub.ChooseSubmission, pb.ChooseSubmissionRequest(challenge=challenge, submission=submission_id)
        )

    def leaderboard(
        self,
        challenge: str,
        *,
        split: str = "",
        reference_set: str = "",
        score: str = "",
        domain: str = "",
        page_size: int = 0,
        page_token: str = "",
    ) -> pb.GetLeaderboardResponse:
        """Return the leaderboard of a split, or a page of it."""
        request = pb.GetLeaderboardRequest(
            challenge=challenge,
            split=split,
            reference_set=reference_set,
            score=score,
            domain=domain,
            page_size=page_size,
            page_token=page_token,
        )
        return self._call(self._stub.GetLeaderboard, request)

    def image_info(self, challenge: str, *, split: str = "") -> Iterator[bytes]:
        """Return the images of a split, a COCO image info file (JSON) in pieces."""
        request = pb.GetImageInfoRequest(challenge=challenge, split=split)
        for reply in self._stub.GetImageInfo(request, metadata=self._metadata):
            yield reply.chunk

    def rescore(self, challenge: str, *, everything: bool = False) -> int:
        """Have submissions scored again; return how many."""
        request = pb.RescoreChallengeRequest(challenge=challenge, all=everything)
        return self._call(self._stub.RescoreChallenge, request).submission_count

    def report(
        self, submission_id: str, *, split: str = "", reference_set: str = "", image_limit: int = 0
    ) -> Iterator[bytes]:
        """Return the error report of a submission, an HTML page in pieces."""
        request = pb.GetSubmissionReportRequest(
            id=submission_id, split=split, reference_set=reference_set, image_limit=image_limit
        )
        for reply in self._stub.GetSubmissionReport(request, metadata=self._metadata):
            yield reply.chunk

    def _upload(self, call: grpc.StreamUnaryMultiCallable[Any, _Reply], first: Message, path: str | Path) -> _Reply:
        def messages() -> Iterator[Message]:
            yield first
            while chunk := stream.read(_CHUNK):
                yield type(first)(chunk=chunk)

        waiting = self._waiting("messages")
        with Path(path).open("rb") as stream:
            reply: _Reply = waiting.reply(call.future(waiting.messages(messages()), metadata=self._metadata))
            return reply
