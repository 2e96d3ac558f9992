"""The ``ReportService`` of the contract: items into a file, a process that makes the report of them, and its answer."""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import grpc
from prometheus_client import Gauge

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_api.report.v1.report_pb2_grpc import ReportServiceServicer, add_ReportServiceServicer_to_server
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.methods import METHODS
from spicegraph_parser.errors import DataError, InputError, LimitError
from spicegraph_service.pool.costs import texts_cost
from spicegraph_service.pool.processes import ChildProcess, ProcessEndedError, frame
from spicegraph_service.pool.report_tasks import Failed, ReportItem, ReportTask, Working, decode_step, encode
from spicegraph_service.rpc import validation
from spicegraph_service.rpc.interceptor import current_call
from spicegraph_service.rpc.service import TokenService
from spicegraph_service.rpc.status import CallError, Violation, exhausted, invalid, wrong

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence

    from prometheus_client import CollectorRegistry

    from spicegraph_service.builtin import ReportServing
    from spicegraph_service.rpc.host import Host
    from spicegraph_service.rpc.interceptor import Context

_SERVICE = pb.DESCRIPTOR.services_by_name["ReportService"]
_MOST_SYSTEMS = 8
_LONGEST_NAME = 200
_MOST_EXAMPLES, _EXAMPLES = 1_000, 12
_FEWEST_ITEMS = 100  # of whoever may see no words of a set: no count is of one caption
_MOST_WAITING = 16  # reports that wait for their turn
_MOST_UNREAD = 16  # reports that are made and wait in files for their readers
_PATIENCE_S = 10.0  # with a reader that takes nothing
_MOST_BYTES = 1 << 30  # of a report's items
_LARGEST_MESSAGE = 64 << 20
_CHUNK = 1 << 18
_FORMS: Final[Mapping[int, str]] = {
    pb.PAGE_FORMAT_UNSPECIFIED: "html",
    pb.PAGE_FORMAT_HTML: "html",
    pb.PAGE_FORMAT_MARKDOWN: "markdown",
    pb.PAGE_FORMAT_JSON: "json",
}


def open_reports(options: ReportServing, host: Host) -> TokenService:
    """Open the service; its calls need the store for tokens alone, and for the reference sets that they name."""
    servicer = ReportServicer(host, options)
    add = partial(add_ReportServiceServicer_to_server, servicer)
    needs = host.probes if host.authenticator.required else None
    return TokenService(_SERVICE, METHODS[_SERVICE.full_name], add, host.authenticator, needs)


class ReportServicer(ReportServiceServicer):
    """Makes reports, a few at a time, each in a process of its own that ends with it."""

    def __init__(self, host: Host, options: ReportServing) -> None:
        self._host = host
        self._memory = options.report_memory << 20
        self._turns = Turns(options.reports)
        self._unread = 0  # reports that are made, until their callers have read them
        self._gauges = Gauges(host.telemetry.registry, options.report_gauges) if options.report_gauges else None

    async def Analyze(
        self, request_iterator: AsyncIterator[pb.AnalyzeRequest], context: Context
    ) -> AsyncIterator[pb.AnalyzeResponse]:
        """Analyse systems: progress, then the report."""
        del context
        async with self._workplace() as folder:
            task = await self._receive(request_iterator, folder)
            async with aclosing(self.run(task)) as steps:  # the process ends before its folder goes
                async for step in steps:
                    yield pb.AnalyzeResponse(progress=pb.Progress(what=step.what, done=step.done, of=step.of))
            with self._count_unread(task) as output:
                if (size := output.stat().st_size) > _LARGEST_MESSAGE:
                    most = _LARGEST_MESSAGE >> 20
                    fault = f"the report has {size >> 20} MiB, the limit is {most}: leave out groups or examples"
                    raise LimitError(fault)
                response = pb.AnalyzeResponse.FromString(output.read_bytes())
                if self._gauges is not None:
                    self._gauges.show(response.report)
                yield response

    async def RenderReport(
        self, request_iterator: AsyncIterator[pb.RenderReportRequest], context: Context
    ) -> AsyncIterator[pb.RenderReportResponse]:
        """Make a page: progress, its size, then the page."""
        del context
        async with self._workplace() as folder:
            task = await self._receive(request_iterator, folder)
            async with aclosing(self.run(task)) as steps:
                async for step in steps:
                    yield pb.RenderReportResponse(progress=pb.Progress(what=step.what, done=step.done, of=step.of))
            with self._count_unread(task) as output, output.open("rb") as page:
                yield pb.RenderReportResponse(size=output.stat().st_size)
                while chunk := page.read(_CHUNK):
                    yield pb.RenderReportResponse(chunk=chunk)

    @asynccontextmanager
    async def _workplace(self) -> AsyncIterator[Path]:
        _ = self._host.scheduler.info  # raises until the workers are ready
        with tempfile.TemporaryDirectory(prefix="spicegraph-report-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    async def _receive(self, requests: AsyncIterator[Any], folder: Path) -> ReportTask:
        """Check the client's messages, and write the items to a file, not to memory."""
        task: ReportTask | None = None
        settings = pb.AnalysisSettings()
        hidden = False
        seen: set[str] = set()
        silence_s = self._host.limits.max_silence_s
        with (folder / "items").open("wb") as stream:
            async for request in validation.patiently(requests, silence_s=silence_s, reason="STREAM_STALLED"):
                which = request.WhichOneof("payload")
                if task is None:
                    if which != "settings":
                        raise wrong("payload", "the first message holds settings")
                    task, settings, hidden = await self._task(request.settings, folder)
                elif which == "items":
                    await self._take(request.items.items, settings, seen, stream)
                else:
                    reason = "only the first message holds settings" if which else "a message holds settings or items"
                    raise wrong(which or "payload", reason)
        if task is None or not seen:
            raise wrong("items" if task else "settings", "is empty")
        if hidden and len(seen) < _FEWEST_ITEMS:
            raise wrong("items", f"without the right to see words, a report is of at least {_FEWEST_ITEMS} items")
        return task

    async def _task(
        self, given: pb.AnalysisSettings | pb.RenderSettings, folder: Path
    ) -> tuple[ReportTask, pb.AnalysisSettings, bool]:
        """Return the first message's task and settings, and whether to hide reference words."""
        form, path, settings = _form(given)
        _check(settings, path)
        info = self._host.scheduler.info
        metrics = validation.check_metrics(settings.metrics, [metric.name for metric in info.metrics])
        validation.empty_candidates(settings.empty, field=f"{path}empty")
        data = await validation.check_data(settings, info, path=path)
        draws, seed = validation.resampling(settings.resampling, field=f"{path}resampling")
        images, groups = (part not in settings.leave_out for part in (pb.REPORT_PART_IMAGES, pb.REPORT_PART_GROUPS))
        shown = images or groups or bool(settings.categories) or form != "message"
        hidden = False
        if settings.HasField("reference_set"):
            await self._host.references.check(settings.reference_set, evidence=shown)
            hidden = not shown
        task = ReportTask(
            items=str(folder / "items"),
            output=str(folder / "report"),
            systems=tuple(settings.systems),
            pipeline=self._host.pipeline,
            form=form,  # type: ignore[arg-type]  # one of the values of _FORMS
            metrics=metrics,
            given=data,
            data=self._host.data,
            draws=draws,
            seed=seed,
            human=not settings.without_human,
            title=settings.title,
            images=images,
            groups=groups,
            examples=settings.max_examples or _EXAMPLES,
            integer_ids=settings.integer_ids,
            command=settings.made.command or None,
            inputs=tuple((file.name, file.sha256) for file in settings.made.inputs),
            gates=tuple(settings.gates),
            memory=self._memory,
        )
        return task, settings, hidden

    async def _take(
        self, batch: Sequence[pb.SystemsItem], settings: pb.AnalysisSettings, seen: set[str], stream: IO[bytes]
    ) -> None:
        limits, first = self._host.limits, len(seen)
        if first + len(batch) > limits.max_stream_items:
            raise wrong("items", f"a stream has at most {limits.max_stream_items} items")
        by_set = settings.HasField("reference_set")
        empty = validation.empty_candidates(settings.empty)
        validation.check_items(batch, limits, reference_set=by_set, empty=empty, seen=seen, first=first)
        if faults := list(_item_faults(batch, settings, first)):
            raise invalid(faults)
        references = await self._references(batch, settings, first)
        written = [text for item, texts in zip(batch, references, strict=True) for text in (*item.candidates, *texts)]
        current_call().charge(len(written), texts_cost(written))
        items = [ReportItem(i.id, tuple(i.candidates), texts) for i, texts in zip(batch, references, strict=True)]
        stream.write(frame(encode(items)))
        if stream.tell() > _MOST_BYTES:
            raise wrong("items", f"a report is of at most {_MOST_BYTES >> 20} MiB of captions")

    async def _references(
        self, batch: Sequence[pb.SystemsItem], settings: pb.AnalysisSettings, first: int
    ) -> list[tuple[str, ...]]:
        """Return the references of items: their own, or those of the reference set."""
        if not settings.HasField("reference_set"):
            return [tuple(item.references) for item in batch]
        named = [
            scores_pb2.Item(id=i.id, reference_id=i.reference_id if i.HasField("reference_id") else None) for i in batch
        ]
        found = await self._host.references.resolve(settings.reference_set, named, first=first)
        return [item.references for item in found]

    async def run(self, task: ReportTask) -> AsyncGenerator[Working]:
        """Make a report in turn and yield the latest progress; the process ends with the call, whoever ends it."""
        latest: asyncio.Queue[Working] = asyncio.Queue(1)
        call = current_call()
        call.patience_s = _PATIENCE_S
        # The reader of the progress may be slow or frozen: the work does not wait for it.
        making = asyncio.create_task(self._make(task, call.share, latest))
        try:
            while not making.done():
                told = asyncio.create_task(latest.get())
                await asyncio.wait({making, told}, return_when=asyncio.FIRST_COMPLETED)
                if told.done():
                    yield told.result()
                told.cancel()
            await making
        finally:
            making.cancel()
            await asyncio.wait({making})

    async def _make(self, task: ReportTask, caller: str, latest: asyncio.Queue[Working]) -> None:
        """Make a report when it is the caller's turn; ``latest`` has the last progress alone."""
        try:
            async with self._turns.take(caller), ChildProcess.running("spicegraph_service.pool.reports") as process:
                step = decode_step(await process.ask(encode(task)))
                while isinstance(step, Working):
                    if latest.full():
                        latest.get_nowait()
                    latest.put_nowait(step)
                    step = decode_step(await process.ask(b"go on"))
        except ProcessEndedError as error:
            message = "the report's process ended: it may have needed more memory than there is"
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "REPORT_ENDED", message) from error
        if isinstance(step, Failed):
            raise _error(step)

    @contextmanager
    def _count_unread(self, task: ReportTask) -> Iterator[Path]:
        """Give the file of a report that is made, until it is read; refuse it if too many wait to be read."""
        if self._unread >= _MOST_UNREAD:
            raise exhausted("REPORTS_UNREAD", f"{self._unread} reports are made and not read yet", 5.0)
        Path(task.items).unlink()
        self._unread += 1
        try:
            yield Path(task.output)
        finally:
            self._unread -= 1


class Turns:
    """Slots for reports, given to waiting callers in turn."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def take(self, caller: str) -> AsyncIterator[None]:
        """Hold a slot within the block; RESOURCE_EXHAUSTED where too many wait."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._pass_on(caller)

    async def _wait(self, caller: str) -> None:
        waiting = sum(map(len, self._waiting.values()))
        if waiting >= _MOST_WAITING:
            raise exhausted("REPORTS_FULL", f"{waiting} reports wait for their turn", 5.0)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._pass_on(caller)  # the slot came at the same moment
            elif turn in (turns := self._waiting.get(caller, deque())):
                turns.remove(turn)
                if not turns:
                    del self._waiting[caller]
            raise

    def _pass_on(self, caller: str) -> None:
        """Give a slot to the next of the callers, to ``caller`` if no other waits."""
        others = (other for other in self._waiting if other != caller)
        following = next(others, next(iter(self._waiting), None))
        if following is None:
            self._free += 1
            return
        turns = self._waiting.pop(following)
        turn = turns.popleft()
        if turns:
            self._waiting[following] = turns  # behind the others
        if turn.cancelled():
            self._pass_on(caller)
        else:
            turn.set_result(None)


def _form(given: pb.AnalysisSettings | pb.RenderSettings) -> tuple[str, str, pb.AnalysisSettings]:
    """Return the form of a report, and its settings, with the path to them."""
    if isinstance(given, pb.AnalysisSettings):
        return "message", "settings.", given
    validation.check_value(given.format, _FORMS, "settings.format")
    return _FORMS[given.format], "settings.analysis.", given.analysis


def _item_faults(batch: Sequence[pb.SystemsItem], settings: pb.AnalysisSettings, first: int) -> Iterator[Violation]:
    """Yield what is wrong with items of several systems; ``first`` is the index of the first."""
    count = len(settings.systems)
    for number, item in enumerate(batch, start=first):
        if len(item.candidates) != count:
            yield Violation(f"items[{number}].candidates", f"has {len(item.candidates)} captions for {count} systems")
    for number, item in enumerate(batch if settings.integer_ids else (), start=first):
        if not (item.id.removeprefix("-").isdecimal() and item.id.isascii() and str(int(item.id)) == item.id):
            yield Violation(f"items[{number}].id", "is not an integer")


def _error(failed: Failed) -> Exception:
    if failed.kind:
        return {"input": InputError, "limit": LimitError, "data": DataError}[failed.kind](failed.message)
    return CallError(grpc.StatusCode.INTERNAL, "INTERNAL", f"the report can't be made: an unexpected {failed.message}")


def _check(settings: pb.AnalysisSettings, path: str) -> None:
    """Check the settings that are of reports alone."""
    faults = [Violation(path + field, reason) for field, reason in _setting_faults(settings)]
    if faults:
        raise invalid(faults)


def _setting_faults(settings: pb.AnalysisSettings) -> Iterator[tuple[str, str]]:
    yield from _name_faults(settings.systems)
    if not 0 <= settings.max_examples <= _MOST_EXAMPLES:
        yield "max_examples", f"is {settings.max_examples}; 1 to {_MOST_EXAMPLES}, or 0 for {_EXAMPLES}"
    for number, part in enumerate(settings.leave_out):
        if part not in (pb.REPORT_PART_IMAGES, pb.REPORT_PART_GROUPS):
            yield f"leave_out[{number}]", f"{part} is not a part"
    texts = [("title", settings.title), ("made.command", settings.made.command)]
    texts += [(f"gates[{number}]", text) for number, text in enumerate(settings.gates)]
    for number, file in enumerate(settings.made.inputs):
        texts += [(f"made.inputs[{number}].name", file.name), (f"made.inputs[{number}].sha256", file.sha256)]
    for field, text in texts:
        if len(text) > 10 * _LONGEST_NAME or "\0" in text:
            yield field, f"at most {10 * _LONGEST_NAME} characters, and no NUL"


def _name_faults(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not 1 <= len(names) <= _MOST_SYSTEMS:
        yield "systems", f"has {len(names)} names; 1 to {_MOST_SYSTEMS}"
    for number, name in enumerate(names):
        if not (name.strip() and len(name) <= _LONGEST_NAME and name.isprintable()):
            yield f"systems[{number}]", f"1 to {_LONGEST_NAME} printable characters"
        elif name in names[:number]:
            yield f"systems[{number}]", f"{name!a} is the name of another system"


class Gauges:
    """SPICE by category and rates of errors of the systems that were analysed last, for Prometheus."""

    def __init__(self, registry: CollectorRegistry, most: int) -> None:
        self._most = most
        self._scores = Gauge(
            "spicegraph_report_f1", "Mean F1 of a system's last report.", ["system", "category"], registry=registry
        )
        self._rates = Gauge(
            "spicegraph_report_error_rate", "Rate of a kind of error.", ["system", "kind"], registry=registry
        )
        self._labels: dict[str, tuple[list[str], list[str]]] = {}  # by system, the one shown last at the end

    def show(self, report: pb.ErrorReport) -> None:
        """Show a report's systems; of too many, those shown longest ago go."""
        for system in report.systems:
            self._forget(system.name)
            f1s = {row.name: row.f for row in system.categories if row.HasField("f")}
            kinds = {scores_pb2.ErrorKind.Name(row.key): row.rate for row in system.kinds if row.HasField("rate")}
            rates = {name.removeprefix("ERROR_KIND_").lower(): rate for name, rate in kinds.items()}
            self._labels[system.name] = list(f1s), list(rates)
            for name, f1 in f1s.items():
                self._scores.labels(system.name, name).set(f1)
            for name, rate in rates.items():
                self._rates.labels(system.name, name).set(rate)
        while len(self._labels) > self._most:
            self._forget(next(iter(self._labels)))

    def _forget(self, system: str) -> None:
        categories, kinds = self._labels.pop(system, ([], []))
        for name in categories:
            self._scores.remove(system, name)
        for name in kinds:
            self._rates.remove(system, name)
