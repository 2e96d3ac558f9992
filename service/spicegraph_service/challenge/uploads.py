"""Files that come in a stream of messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from spicegraph_service.challenge import catalogue
from spicegraph_service.challenge.errors import wrong
from spicegraph_service.challenge.validation import method_of
from spicegraph_service.server.status import Violation, invalid
from spicegraph_service.server.validation import patiently

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from sqlalchemy.orm import Session

    from spicegraph_api.v1 import challenge_pb2 as pb
    from spicegraph_service.challenge.database import Transactions
    from spicegraph_service.challenge.files import Incoming

_LONGEST_FILE_NAME = 255
_LONGEST_METHOD = 100
_LONGEST_KEY = 100
_LONGEST_DESCRIPTION = 2_000
_KEY = re.compile(r"[!-~]*")
Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that has arrived, and is on the disk under no name yet."""

    incoming: Incoming
    key: str


async def first(requests: AsyncIterator[Any], expected: str) -> tuple[Any, AsyncIterator[Any]]:
    """Return the payload of an upload's first message, and the messages that follow.

    Raises:
        CallError: INVALID_ARGUMENT: it holds something else.
    """
    rest = patiently(requests)
    message = await anext(rest, None)
    if message is None or message.WhichOneof("payload") != expected:
        raise wrong("payload", f"the first message holds {expected}")
    return getattr(message, expected), rest


async def receive(
    requests: AsyncIterator[Any], incoming: Incoming, transactions: Transactions, *, most_bytes: int
) -> str:
    """Write the chunks of an upload to a file; return its key. Nothing beyond the limit is read.

    Raises:
        CallError: INVALID_ARGUMENT: it is empty or too large, or a message is not a chunk.
        StoreError: the disk fails.
    """
    async for message in requests:
        if message.WhichOneof("payload") != "chunk":
            raise wrong("payload", "messages after the first hold chunks")
        chunk: bytes = message.chunk
        if incoming.size + len(chunk) > most_bytes:
            reason = f"the file is larger than {most_bytes:,} bytes"
            raise invalid([Violation("chunk", reason)], reason="FILE_TOO_LARGE")
        await transactions.thread(lambda data=chunk: incoming.write(data))  # type: ignore[misc]
    if not incoming.size:
        raise wrong("chunk", "the file is empty")
    return await transactions.thread(incoming.finish)


def check_settings(settings: pb.SubmissionSettings) -> None:
    """Check the settings of a submission.

    Raises:
        CallError: INVALID_ARGUMENT, naming every wrong field.
    """
    found = [
        *_text("settings.file_name", settings.file_name, _LONGEST_FILE_NAME, needed=True),
        *_text("settings.method", settings.method, _LONGEST_METHOD),
    ]
    if PurePath(settings.file_name.replace("\\", "/")).name != settings.file_name:
        found.append(Violation("settings.file_name", "is a path, expected a name"))
    if len(settings.description) > _LONGEST_DESCRIPTION or "\0" in settings.description:
        found.append(Violation("settings.description", f"at most {_LONGEST_DESCRIPTION:,} characters, and no NUL"))
    if len(settings.idempotency_key) > _LONGEST_KEY or not _KEY.fullmatch(settings.idempotency_key):
        found.append(Violation("settings.idempotency_key", f"at most {_LONGEST_KEY} characters, all printable ASCII"))
    if found:
        raise invalid(found)


def _text(field: str, value: str, longest: int, *, needed: bool = False) -> Iterator[Violation]:
    if len(value) > longest or not value.isprintable() or (needed and not value.strip()):
        yield Violation(field, f"{'1' if needed else '0'} to {longest} printable characters")


def method_name(settings: pb.SubmissionSettings, splits: Iterable[str]) -> str:
    """Return the method's name: the given one, or what the file's name says."""
    if settings.method.strip():
        return settings.method.strip()
    named = method_of(settings.file_name, splits)
    return named[1] if named is not None else PurePath(settings.file_name).stem[:_LONGEST_METHOD]


def check_target(session: Session, target: pb.ReferencesTarget) -> None:
    """Check that the reference set of an upload exists.

    Raises:
        CallError: NOT_FOUND, or INVALID_ARGUMENT.
    """
    challenge = catalogue.find_challenge(session, target.challenge)
    for field in ("split", "reference_set"):
        if not getattr(target, field):
            raise wrong(f"target.{field}", "is empty")
    catalogue.find_reference_set(catalogue.find_split(challenge, target.split), target.reference_set)


def split_names(session: Session, settings: pb.SubmissionSettings) -> list[str]:
    """Return the names of the splits of a submission's challenge.

    Raises:
        CallError: NOT_FOUND, or INVALID_ARGUMENT: the submission names another split.
    """
    challenge = catalogue.find_challenge(session, settings.challenge)
    names = [split.name for split in challenge.splits]
    if settings.split and settings.split not in names:
        raise wrong("settings.split", f"is not a split of this challenge; there are {', '.join(names)}")
    return names
