"""The evaluation server inside of a server: who may call it, its work, and its end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge
from sqlalchemy import func, select, text

from spicegraph_api.challenge.v1 import challenge_pb2
from spicegraph_api.challenge.v1.challenge_pb2_grpc import add_ChallengeServiceServicer_to_server
from spicegraph_api.challenge.v1.methods import METHODS, PUBLIC_SCOPE
from spicegraph_challenge.model.accounts import NOBODY, Account, find_account, touch_token
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import State, Submission
from spicegraph_challenge.queue import submissions
from spicegraph_challenge.queue.runner import ChallengeState, Runner
from spicegraph_challenge.queue.scoring import Scoring
from spicegraph_challenge.servicer import ChallengeServicer
from spicegraph_service.kit import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    import grpc.aio
    from aiohttp.web import AbstractRouteDef
    from sqlalchemy.orm import Session

    from spicegraph_challenge.registration import ChallengeOptions
    from spicegraph_service.kit import Gateway, Host, WorkerInfo

_SWEEP_EVERY_S = 24 * 3600.0
_COUNT_EVERY_S = 15.0
_TOUCH_AGAIN_S = 60.0
_log = logging.getLogger(__name__)


def open_service(options: ChallengeOptions, host: Host) -> ChallengeService:
    """Open the evaluation server."""
    service = ChallengeService(options, host)
    host.pages.append(service.routes)
    return service


def files_of(path: Path) -> set[str]:
    """Return the files that a copy of the database needs."""
    with Database(str(path), migrate=False) as database, database.reading() as session:
        return submissions.used_files(session, copied=True)


def gauges(registry: CollectorRegistry) -> tuple[Gauge, Gauge]:
    """Return the gauges of submissions by state, and of how long the oldest queued one has waited."""
    gauge = partial(Gauge, namespace="spicegraph", registry=registry)
    return (
        gauge("challenge_submissions", "Submissions of all challenges, by state.", ["state"]),
        gauge("challenge_oldest_queued_seconds", "For how long the oldest queued submission has waited."),
    )


class ChallengeService:
    """The ``ChallengeService`` as the server runs it."""

    descriptor = challenge_pb2.DESCRIPTOR.services_by_name["ChallengeService"]
    methods = METHODS[descriptor.full_name]

    def __init__(self, options: ChallengeOptions, host: Host) -> None:
        self._submissions, self._oldest = gauges(host.telemetry.registry)
        self._counted = -_COUNT_EVERY_S
        self._state = ChallengeState(options, host)
        self._servicer = ChallengeServicer(self._state)
        # Its way to the workers is not that of other calls: a call waits behind one chunk of a submission at most, and
        # parses of private references are not found by guesses.
        self._scheduler = host.open_scheduler()
        self._chunks_at_once = max(1, host.workers - 1)
        self._owner = secrets.token_hex(8)
        self._tasks: list[asyncio.Task[None]] = []
        self._touching: dict[str, asyncio.Task[None]] = {}
        self._touch_from = 0.0  # when the database could not be written: later

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the methods."""
        add_ChallengeServiceServicer_to_server(self._servicer, server)

    def routes(self, gateway: Gateway) -> Iterable[AbstractRouteDef]:
        """Return the pages."""
        from spicegraph_challenge.pages.board import Board  # noqa: PLC0415 (only a server with HTTP has pages)
        from spicegraph_challenge.pages.visit import Sessions, shared_key  # noqa: PLC0415

        state = self._state
        sessions = Sessions(shared_key(state.folder))
        return Board(gateway, self.identify, state.transactions, sessions, https=state.options.https_proxy).routes()

    async def identify(self, authorization: str | None, scope: str | None) -> Account:
        """Return the user of a token. Users have roles, which the calls check, instead of scopes."""
        if authorization is None and scope == PUBLIC_SCOPE:
            return NOBODY
        account, token_id = await self._state.transactions.read(
            lambda session, now: find_account(session, authorization, now)
        )

        async def touch(token_id: str) -> None:
            """Record that the token is in use, beside the call; a database that cannot be written keeps nobody out."""
            try:
                await self._state.transactions.write(lambda session, now: touch_token(session, token_id, now))
            except StoreError as error:
                _log.warning("the last use of the token %s is not recorded: %s", token_id, error)
                self._touch_from = time.monotonic() + _TOUCH_AGAIN_S
            finally:
                del self._touching[token_id]

        if token_id is not None and token_id not in self._touching and time.monotonic() >= self._touch_from:
            self._touching[token_id] = asyncio.create_task(touch(token_id))
        return account

    def start(self, workers: WorkerInfo) -> None:
        """Begin to take jobs."""
        state = self._state
        state.workers = workers
        scoring = Scoring(
            self._scheduler, workers, state.sandbox, state.files, state.data, at_once=self._chunks_at_once
        )
        state.runner = Runner(state, scoring, workers, self._owner)
        self._tasks = [asyncio.create_task(state.runner.run()), asyncio.create_task(self._sweep())]

    async def probe(self) -> None:
        """Check that the database answers, and now and then count the submissions."""
        if time.monotonic() - self._counted < _COUNT_EVERY_S:
            await self._state.transactions.read(lambda session, _now: session.execute(text("SELECT 1")).all())
        else:
            counts, oldest_s = await self._state.transactions.read(queue_state)
            for state, count in counts.items():
                self._submissions.labels(state).set(count)
            self._oldest.set(oldest_s)
            self._counted = time.monotonic()

    def reload(self) -> None:
        """Do nothing: the database has everything, and is asked with every call."""

    def leave(self) -> None:
        """Let those who watch submissions go to another server."""
        self._state.leaving = True
        self._state.moved.set()

    async def stop(self) -> None:
        """Stop working, and close the database; jobs under way go to other servers, or wait."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._touching.values(), return_exceptions=True)
        try:
            await self._state.transactions.write(lambda session, _now: submissions.release_all(session, self._owner))
        except StoreError as error:
            _log.warning("jobs stay leased until their time is over: %s", error)
        self._state.transactions.close()

    async def _sweep(self) -> None:
        """Say once a day which open challenges tell more than the defaults; delete files that nothing refers to."""
        while True:
            try:
                used = await self._state.transactions.read(lambda session, _now: submissions.used_files(session))
                gone = await self._state.transactions.thread(lambda used=used: self._state.files.sweep(used))  # type: ignore[misc]
                if gone:
                    _log.info("%d abandoned files deleted", gone)
            except StoreError as error:
                _log.warning("abandoned files stay: %s", error)
            await asyncio.sleep(_SWEEP_EVERY_S)


def queue_state(session: Session, now: datetime) -> tuple[dict[str, int], float]:
    """Return the numbers of submissions by state, and how long the oldest has been queued."""
    counts = dict.fromkeys((state.value for state in State), 0)
    query = select(Submission.state, func.count()).group_by(Submission.state)
    counts |= {state.value: count for state, count in session.execute(query)}
    oldest = session.scalar(select(func.min(Submission.created)).where(Submission.state == State.QUEUED))
    return counts, (now - oldest).total_seconds() if oldest is not None else 0.0
