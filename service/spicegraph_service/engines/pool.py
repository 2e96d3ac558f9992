"""Scoring in several processes: the results do not depend on their number, and come in order."""

from __future__ import annotations

import multiprocessing
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from spicegraph_parser.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from spicegraph_scorer.studies.bounds import Spread

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_WAITING: Final = 2
"""Arguments that wait for each process: enough that none is idle, few enough that memory is bounded."""


@contextmanager
def spread_over(workers: int) -> Iterator[Spread]:
    """Give what applies a function to many arguments in ``workers`` processes; 1 is this process.

    Processes are started when the first argument comes.

    Raises:
        DataError: a process ended unexpectedly.
    """
    if workers == 1:
        yield map
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of numpy and grpc
    with ProcessPoolExecutor(workers, context) as executor:
        try:
            yield _Pool(executor, workers)
        except BrokenProcessPool as error:
            raise DataError("a scoring process ended unexpectedly (killed, or out of memory)") from error
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Pool:
    executor: ProcessPoolExecutor
    workers: int

    def __call__(self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /) -> Iterator[Result]:
        waiting: deque[Future[Result]] = deque()
        for argument in arguments:
            waiting.append(self.executor.submit(function, argument))
            if len(waiting) > _WAITING * self.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
