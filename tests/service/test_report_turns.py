"""Reports are made in turn of their callers, however slowly the progress of others is read."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from spicegraph_service.builtin import ReportServing
from spicegraph_service.pool.report_tasks import Made, ReportTask, Working, encode
from spicegraph_service.rpc import reports
from spicegraph_service.rpc.interceptor import Call, _current
from spicegraph_service.rpc.status import CallError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ALLOWED_S = 5.0


class Process:
    """Makes a report in three steps, as fast as it is asked."""

    def __init__(self) -> None:
        self._steps = 0

    @classmethod
    @asynccontextmanager
    async def running(cls, _module: str) -> AsyncIterator[Process]:
        yield cls()

    async def ask(self, _data: bytes) -> bytes:
        self._steps += 1
        await asyncio.sleep(0.01)
        return encode(Working("captions", self._steps, 3) if self._steps < 3 else Made())


@pytest.fixture
def servicer(monkeypatch: pytest.MonkeyPatch) -> reports.ReportServicer:
    monkeypatch.setattr(reports, "ChildProcess", Process)
    host: Any = type("Host", (), {"telemetry": type("Telemetry", (), {"registry": CollectorRegistry()})})
    return reports.ReportServicer(host, ReportServing())


def make(servicer: reports.ReportServicer, caller: str) -> Any:
    _current.set(Call("/Analyze", "id", share=caller))
    return servicer.run(ReportTask("items", "report", ("mine",), "en_caption"))


def test_a_frozen_reader_of_progress_holds_no_report(servicer: reports.ReportServicer) -> None:
    async def run() -> None:
        async with asyncio.timeout(ALLOWED_S), aclosing(make(servicer, "frozen")) as frozen:
            assert isinstance(await anext(frozen), Working)  # and then it reads nothing
            async with aclosing(make(servicer, "other")) as other:
                assert [step.of async for step in other][-1] == 3

    asyncio.run(run())


def test_a_caller_with_one_report_waits_for_one_of_another_caller_s() -> None:
    order: list[str] = []
    begun = asyncio.Event()

    async def report(turns: reports.Turns, caller: str) -> None:
        async with turns.take(caller):
            await begun.wait()
            order.append(caller)

    async def run() -> None:
        turns = reports.Turns(1)
        waiting = [asyncio.create_task(report(turns, caller)) for caller in ("many",) * 4]
        await asyncio.sleep(0)
        waiting += [asyncio.create_task(report(turns, "other")), asyncio.create_task(report(turns, "gone"))]
        await asyncio.sleep(0)
        waiting.pop().cancel()
        begun.set()
        await asyncio.gather(*waiting)
        async with asyncio.timeout(ALLOWED_S), turns.take("late"):
            pass

    asyncio.run(run())
    assert order == ["many", "other", "many", "many", "many"]


def test_reports_that_nobody_reads_are_bounded(servicer: reports.ReportServicer, tmp_path: Path) -> None:
    async def run() -> None:
        items = tmp_path / "items"
        task = ReportTask(str(items), "report", ("mine",), "en_caption")
        with ExitStack() as unread:
            for _ in range(reports._MOST_UNREAD):
                items.touch()
                unread.enter_context(servicer._count_unread(task))
            with pytest.raises(CallError) as refused, servicer._count_unread(task):
                pass
        assert refused.value.reason == "REPORTS_UNREAD"
        items.touch()
        with servicer._count_unread(task):
            assert not items.exists()

    asyncio.run(run())
