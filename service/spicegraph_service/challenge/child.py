"""A process for one task: ``python -m spicegraph_service.challenge.child``, started by ``children``.

What strangers send is decoded here, under limits on memory and time, and what takes long without pause is computed
here, at a lower priority than the workers that answer calls.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_service.challenge.tasks import (
    ChildError,
    ChildReply,
    ChildTask,
    Finish,
    Prepare,
    Prepared,
    Report,
    Reported,
    Validate,
    Validated,
    decode_task,
    encode,
)
from spicegraph_service.server.tasks import frame, read_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["main"]

_NICE = 10
_log = logging.getLogger(__name__)


def main(memory_bytes: int, seconds: int) -> int:
    """Do the task that stands on standard input, write the reply to standard output; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="child %(process)d: %(message)s")
    if hasattr(os, "nice"):
        os.nice(_NICE)
    task_bytes = read_frame(sys.stdin.buffer)
    if task_bytes is None:
        return 1
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not break the reply
        reply = _run(decode_task(task_bytes), memory_bytes, seconds)
        replies.write(frame(encode(reply)))
    return 0


def _run(task: ChildTask, memory_bytes: int, seconds: int) -> ChildReply:
    work = _WORK[type(task)]
    try:
        _limit(memory_bytes, seconds)
        return work(task)
    except MemoryError:
        return ChildError(memory=True, kind="MemoryError")
    except Exception as error:  # noqa: BLE001 (the server says which submission it was, and goes on)
        _log.error("a task failed", exc_info=error)
        return ChildError(memory=False, kind=type(error).__name__)


def _limit(memory_bytes: int, seconds: int) -> None:
    """Bound what the task may take beyond what the process has already, where the system can do that."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    used = Path("/proc/self/statm")
    if memory_bytes and used.exists():
        most = int(used.read_text(encoding="ascii").split()[0]) * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _end_with_the_server() -> None:
    """End at once when the server does: nobody would take the reply, and another server does the task again."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def _validate(task: Validate) -> Validated:
    from spicegraph_service.challenge.frames import fault_frames, read_images, result_frames  # noqa: PLC0415
    from spicegraph_service.challenge.intake import read_submission, split_images  # noqa: PLC0415

    splits = {name: split_images(read_images(Path(path)) for path in paths) for name, paths in task.splits.items()}
    found = read_submission(task.path, task.file_name, task.split, splits)
    folder = Path(task.output)
    if found.faults:
        path = folder / "faults"
        path.write_bytes(fault_frames(found.faults))
        return Validated(faults=str(path), fault_count=len(found.faults))
    results = {}
    for number, (split, rows) in enumerate(found.results.items()):
        path = folder / f"results-{number}"
        path.write_bytes(result_frames(rows))
        results[split] = str(path)
    return Validated(results)


def _prepare(task: Prepare) -> Prepared:
    from spicegraph_scorer.readers.annotations import read_annotations  # noqa: PLC0415
    from spicegraph_scorer.readers.source import DEFAULT_LIMITS, open_source  # noqa: PLC0415
    from spicegraph_service.challenge.frames import reference_frames  # noqa: PLC0415

    try:
        with open_source(task.path) as source:
            found = read_annotations(source._replace(name="annotations"), limits=DEFAULT_LIMITS)
    except (InputError, LimitError) as error:
        first, *rest = str(error).replace(task.path, "annotations").splitlines()
        return Prepared(faults=tuple(line.strip() for line in rest) or (first,))
    with Path(task.output).open("wb") as stream:
        stream.writelines(reference_frames(found.captions, found.file_names))
    counts = [len(texts) for texts in found.captions.values()]
    if not any(counts):
        return Prepared(faults=("annotations: no image has a caption",))
    return Prepared(sum(map(bool, counts)), sum(counts))


def _finish(task: Finish) -> ChildReply:
    from spicegraph_service.challenge.totals import finish  # noqa: PLC0415

    return finish(task)


def _report(task: Report) -> Reported:
    from spicegraph_service.challenge.error_report import write_report  # noqa: PLC0415

    write_report(task)
    return Reported()


_WORK: Mapping[type[ChildTask], Callable[[Any], ChildReply]] = {
    Validate: _validate,
    Prepare: _prepare,
    Finish: _finish,
    Report: _report,
}


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
