"""A page for two files: candidates and references go in, and the error report comes out, by a call of the contract."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import grpc
from aiohttp import BodyPartReader, web

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_parser.errors import SpicegraphError
from spicegraph_service.kit import (
    HTTP_STATUSES,
    PAGE_HEADERS,
    REPORT_HEADERS,
    ByteBudget,
    CallError,
    FailedCallError,
    FullError,
    is_own_form,
    read_frame,
    read_part_names,
    render_page,
    static,
)
from spicegraph_web.calls import origin_of
from spicegraph_web.reading import FilesToRead, read_in_process

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from spicegraph_service.kit import Gateway, Limits, Origin

_PACKAGE: Final = "spicegraph_web"
RENDER: Final = "/spicegraph.report.v1.ReportService/RenderReport"
_FILES: Final = ("candidates", "references")
_MOST_BYTES: Final = 64 << 20  # of a file, packed or not
_MOST_PARTS: Final = 8
_READERS: Final = 1  # processes that read files at the same time
_PIECE: Final = 256 << 10
_LONGEST: Final = 200  # characters of a system's name
_LONGEST_TOKEN: Final = 4_096
_NOT_OURS: Final = "This form does not come from a page of this site. Open the page again."


class _RefusedError(Exception):
    """A form can't be taken; the text says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class _Form:
    """Submitted form: fields, and the uploaded files' original names with their SHA-256."""

    origin: Origin
    files: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def system(self) -> str:
        """The system's name, from that of its file."""
        stem = PurePath(self.files["candidates"][0]).stem[:_LONGEST]
        return "".join(letter if letter.isprintable() else "_" for letter in stem).strip() or "candidates"


class ReportPage:
    """The form and its answer; files are read by a process that ends with the request, as reports are made."""

    def __init__(self, gateway: Gateway, limits: Limits, *, tokens: bool) -> None:
        self._gateway = gateway
        self._turns = asyncio.Semaphore(_READERS)
        self._silence_s = limits.max_silence_s
        self._budget = ByteBudget(limits.max_unanswered_bytes, limits.max_unanswered_bytes // 2)
        self._tokens = tokens

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """Yield the routes."""
        yield web.get("/report", self._ask)
        yield web.post("/report", self._answer)

    async def _ask(self, _request: web.Request) -> web.Response:
        return self._page()

    def _page(self, status: int = 200, message: str = "", faults: Iterable[tuple[str, str]] = ()) -> web.Response:
        values = {"message": message, "faults": list(faults), "tokens": self._tokens, "most": _MOST_BYTES >> 20}
        text = render_page(
            "report_form.html.j2", values, style=static("web.css"), served=True, package="spicegraph_web"
        )
        return web.Response(text=text, content_type="text/html", status=status, headers=PAGE_HEADERS)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a form with the report, or with the form and what is wrong."""
        with tempfile.TemporaryDirectory(prefix="spicegraph-form-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            try:
                with self._budget.account(str(request.remote)) as count:
                    form = await self._received(request, folder, count)
                    return await self._report(request, form, folder)
            except _RefusedError as error:
                return self._page(error.status, str(error))
            except FullError:
                return self._page(503, "The server has too many files to read at the moment. Try again soon.")
            except SpicegraphError as error:
                return self._page(400, str(error).replace(f"{folder}/", ""))
            except CallError as error:
                failure = FailedCallError.of(error)
            except FailedCallError as error:
                failure = error
            return self._page(HTTP_STATUSES[failure.code], *failure.said({}))

    async def _received(self, request: web.Request, folder: Path, count: Callable[[int], None]) -> _Form:
        """Write a form's files into a folder; nothing of them is read before their sender may have a report."""
        if not (is_own_form(request.headers, request.host) and request.content_type == "multipart/form-data"):
            raise _RefusedError(403, _NOT_OURS)
        form = _Form(origin_of(request))
        if not self._tokens:
            await self._gateway.admit(RENDER, form.origin)
        try:
            async with asyncio.timeout(self._silence_s):
                parts = await request.multipart()
                for _ in range(_MOST_PARTS):
                    part = await parts.next()
                    if part is None:
                        break
                    if not isinstance(part, BodyPartReader):
                        raise _RefusedError(400, _NOT_OURS)
                    await self._take(part, form, folder, count)
        except TimeoutError as error:
            raise _RefusedError(408, f"The files did not come within {self._silence_s:g} seconds.") from error
        except ValueError as error:
            raise _RefusedError(400, f"The form can't be read: {error}") from error
        if "candidates" not in form.files:
            raise _RefusedError(400, "Choose a file of candidates.")
        return form

    async def _take(self, part: BodyPartReader, form: _Form, folder: Path, count: Callable[[int], None]) -> None:
        name, file_name = read_part_names(part.headers)
        if name == "token" and file_name is None:
            token = (await part.read_chunk(_LONGEST_TOKEN)).decode("utf-8", "replace").strip()
            form.origin = replace(form.origin, headers={**form.origin.headers, "authorization": f"Bearer {token}"})
        if name not in _FILES or not file_name:
            return
        await self._gateway.admit(RENDER, form.origin)  # before anything is read
        hashed, size = hashlib.sha256(), 0
        with (folder / name).open("wb") as file:
            while chunk := await part.read_chunk(_PIECE):
                count(len(chunk))
                size += len(chunk)
                if size > _MOST_BYTES:
                    raise _RefusedError(413, f"{file_name}: a file has at most {_MOST_BYTES >> 20} MiB.")
                file.write(chunk)
                hashed.update(chunk)
        form.files[name] = file_name, hashed.hexdigest()

    async def _report(self, request: web.Request, form: _Form, folder: Path) -> web.StreamResponse:
        items = folder / "items"
        paths = {name: str(folder / name) for name in form.files}
        async with self._turns:
            integer_ids = await read_in_process(FilesToRead(paths["candidates"], paths.get("references"), str(items)))
        response = web.StreamResponse(headers=REPORT_HEADERS)
        response.content_type, response.charset = "text/html", "utf-8"
        messages = _messages(form, items, integer_ids=integer_ids)
        async with aclosing(self._gateway.stream(RENDER, messages, form.origin)) as answers:
            async for answer in answers:
                if not isinstance(answer, pb.RenderReportResponse):
                    raise FailedCallError(grpc.StatusCode.INTERNAL, "the server has another answer")
                if answer.WhichOneof("payload") == "size":
                    response.content_length = answer.size
                    await response.prepare(request)
                elif answer.chunk:
                    await response.write(answer.chunk)
        await response.write_eof()
        return response


async def _messages(form: _Form, items: Path, *, integer_ids: bool) -> AsyncIterator[pb.RenderReportRequest]:
    """Yield the messages of a call, as a client would send them."""
    inputs = [pb.InputFile(name=name, sha256=digest) for name, digest in form.files.values()]
    analysis = pb.AnalysisSettings(systems=[form.system], integer_ids=integer_ids, made=pb.Provenance(inputs=inputs))
    yield pb.RenderReportRequest(settings=pb.RenderSettings(analysis=analysis, format=pb.PAGE_FORMAT_HTML))
    with items.open("rb") as stream:
        while (part := read_frame(stream)) is not None:
            yield pb.RenderReportRequest(items=pb.SystemsBatch.FromString(part))
