"""A worker process: reads tasks from its standard input, writes replies to its standard output.

Started by :mod:`spicegraph_service.server.workers` as ``python -m spicegraph_service.server.worker``; the first frame
says with what. It ends when its input ends, so that it never outlives its server.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import IO

from spicegraph_parser.errors import SpicegraphError
from spicegraph_service.server.tasks import Hello, Reply, decode_setup, decode_task, encode, frame, read_frame

__all__ = ["main"]


def main() -> int:
    """Serve tasks until the input ends; return the exit code."""
    # The server alone decides when a worker stops: a signal to the whole group must not cut off a batch.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="worker %(process)d: %(message)s")
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not break the frames
        return _serve(sys.stdin.buffer, replies)


def _serve(tasks: IO[bytes], replies: IO[bytes]) -> int:
    def send(reply: Reply) -> None:
        replies.write(frame(encode(reply)))
        replies.flush()

    first = read_frame(tasks)
    if first is None:
        return 1
    setup = decode_setup(first)
    try:
        # Imported here so that a broken installation is reported through the pipe as well.
        from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline  # noqa: PLC0415
        from spicegraph_service.server.evaluate import Evaluator  # noqa: PLC0415
        from spicegraph_service.server.vectors import unpack_vectors  # noqa: PLC0415

        evaluator = Evaluator(load_pipeline(setup.pipeline or DEFAULT_PIPELINE), unpack_vectors(setup.vectors))
    except SpicegraphError as error:
        send(Hello(error=str(error)))
        return 2
    try:
        send(evaluator.hello())
        while (data := read_frame(tasks)) is not None:
            send(evaluator.run(decode_task(data)))
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
