"""Evaluation servers for tests: on SQLite and on a throw-away PostgreSQL, with small challenges."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model.accounts import add_user
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from servers import RunningServer

EXAMPLES = Path(__file__).parents[2] / "examples" / "coco"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _program(name: str) -> str | None:
    found = shutil.which(name)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    return str(versions[-1]) if versions else found


def _unprivileged(folder: Path) -> list[str]:
    """What to put before PostgreSQL's commands: it refuses to run as root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["runuser", "-u", "postgres", "--"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a cluster of this session's own, without the database's name."""
    initdb, server = _program("initdb"), _program("postgres")
    if initdb is None or server is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is not installed")
        pytest.skip("PostgreSQL is not installed")
    # Not among pytest's folders, which are its user's alone.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        yield from _cluster(initdb, server, Path(folder))


def _cluster(initdb: str, server: str, folder: Path) -> Iterator[str]:
    before = _unprivileged(folder)
    data, port = folder / "data", free_port()
    subprocess.run(
        [*before, initdb, "--pgdata", str(data), "--username", "tester", "--auth", "trust", "--encoding", "UTF8"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
    options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "max_connections": 100}
    settings = [f"-c{name}={value}" for name, value in options.items()]
    process = subprocess.Popen(
        [*before, server, "-D", str(data), *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
    try:
        _wait_listening(port, process)
        yield f"postgresql://tester@127.0.0.1:{port}"
    finally:
        # To the server itself: what runs it as another user passes this signal on to nobody.
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        process.wait(30)


def _answers(port: int) -> bool:
    """Whether PostgreSQL takes connections: it listens a little before it does."""
    try:
        psycopg.connect(host="127.0.0.1", port=port, user="tester", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _wait_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0 and _answers(port):
                return
        time.sleep(0.05)
    raise AssertionError("PostgreSQL does not listen")


def create_database(url: str, name: str) -> str:
    import psycopg

    with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{url}/{name}"


@dataclass
class Arena:
    """A place for one evaluation server, or several: database, files, users."""

    place: str
    folder: Path
    start_server: Callable[..., RunningServer]
    tokens: dict[str, str] = field(default_factory=dict)

    def database(self) -> Database:
        return Database(self.place)

    def start(self, *options: str, wait: bool = True) -> RunningServer:
        return self.start_server(
            f"--challenges={self.place}", f"--challenge-files={self.folder / 'files'}", *options, wait=wait
        )

    def organiser(self) -> str:
        """The token of the first organiser, made as `spicegraph challenge init` does."""
        with self.database() as database, database.writing() as session:
            _, secret = add_user(session, "organiser", Role.ORGANISER, database.now(session))
        self.tokens["organiser"] = secret
        return secret

    def write(self, name: str, value: object) -> Path:
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path


def annotations(captions: dict[int, Sequence[str]]) -> dict[str, object]:
    return {
        "images": [{"id": key, "file_name": f"image_{key}.jpg"} for key in captions],
        "annotations": [{"image_id": key, "caption": text} for key, texts in captions.items() for text in texts],
    }


# The challenges of the tests have few images: with the defaults, participants would see one decimal place.
EVERYTHING = {"digits": 9, "category_images": 1, "equal_percent": 100, "error_images": 10, "different_percent": 0}


def challenge_message(name: str = "small", **fields: object) -> pb.Challenge:
    fields = {"daily_limit": 0, "total_limit": 0, **EVERYTHING} | fields
    splits = fields.pop("splits", {"val": ["c5"]})
    assert isinstance(splits, dict)
    settings = pb.ChallengeSettings(
        metrics=fields.pop("metrics", ["bleu", "rouge"]),
        splits=[
            pb.ChallengeSplit(
                name=split, reference_sets=[pb.ChallengeReferenceSet(name=reference_set) for reference_set in sets]
            )
            for split, sets in splits.items()
        ],
        **fields,
    )
    return pb.Challenge(name=name, settings=settings)


SMALL = {
    key: [f"a {word} on a table", f"the table has a {word}"] for key, word in enumerate(["dog", "cat", "cup", "pen"])
}


def small_results(tag: object) -> list[dict[str, object]]:
    return [{"image_id": key, "caption": f"a {text.split()[1]} number {tag}"} for key, (text, *_) in SMALL.items()]


@pytest.fixture(scope="session")
def tools() -> type:
    """The helpers of this file for the tests beside it, which cannot import it."""

    class Tools:
        arena = Arena
        examples = EXAMPLES
        small = SMALL
        annotations = staticmethod(annotations)
        challenge = staticmethod(challenge_message)
        results = staticmethod(small_results)
        create_database = staticmethod(create_database)
        free_port = staticmethod(free_port)

    return Tools


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer]
) -> Arena:
    """An empty arena on each of the databases."""
    return make_arena(request, request.param, tmp_path_factory.mktemp("arena"), start_server)


def make_arena(
    request: pytest.FixtureRequest, kind: str, folder: Path, start_server: Callable[..., RunningServer]
) -> Arena:
    if kind == "sqlite":
        return Arena(str(folder / "challenges.db"), folder, start_server)
    url = request.getfixturevalue("postgres")
    return Arena(create_database(url, folder.name), folder, start_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def own_arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer]
) -> Arena:
    """An empty arena on each of the databases, for one test alone."""
    return make_arena(request, request.param, tmp_path_factory.mktemp("own-arena"), start_server)


@pytest.fixture
def sqlite_arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer]
) -> Arena:
    return make_arena(request, "sqlite", tmp_path_factory.mktemp("own-arena"), start_server)


@pytest.fixture
def postgres_arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer]
) -> Arena:
    return make_arena(request, "postgresql", tmp_path_factory.mktemp("own-arena"), start_server)


@contextmanager
def _closing(clients: list[ChallengeClient]) -> Iterator[None]:
    try:
        yield
    finally:
        for client in clients:
            client.close()


@pytest.fixture
def connect() -> Iterator[Callable[..., ChallengeClient]]:
    """Make clients, which are closed with the test."""
    clients: list[ChallengeClient] = []

    def make(server: RunningServer | str, token: str, **options: float) -> ChallengeClient:
        address = server if isinstance(server, str) else server.address
        clients.append(ChallengeClient(address, token, **options))
        return clients[-1]

    with _closing(clients):
        yield make
