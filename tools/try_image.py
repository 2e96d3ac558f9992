"""Does what deploy/Dockerfile does, in an empty folder instead of a container, and calls the server that comes out.

Takes the steps from the Dockerfile itself: RUN and COPY, except for the user, then CMD with ENV and HEALTHCHECK. Paths
/opt/spicegraph, /src and /var/lib/spicegraph are folders inside the empty one. Needs network access to a package index,
and a few minutes.   python tools/try_image.py
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
CALL = """
from spicegraph_service.client import Client, item
with Client("{address}", timeout_s=30) as client:
    reply = client.score([item(1, "a man rides a horse", ["a man riding a horse"])], metrics=["spice", "meteor"])
    print({{name: round(reply.corpus.scores[name], 4) for name in ("SPICE", "METEOR")}})
"""


def steps() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with what follows each, continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "deploy" / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def inside(text: str, places: Mapping[str, str]) -> str:
    """Return a text with the folders of this machine in place of the image's."""
    for image, here in places.items():
        text = text.replace(image, here)
    return text


def surroundings() -> dict[str, str]:
    """Return where programs are, and how this machine reaches its package index: nothing else of the environment."""
    return {k: v for k, v in os.environ.items() if k in {"PATH", "HOME"} or k.startswith(("PIP_", "SSL_", "http"))}


def build(places: Mapping[str, str]) -> None:
    """Take the steps that copy and run."""
    source = Path(places["/src"])
    for name, rest in steps():
        if name == "COPY" and rest == ". .":
            archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
            subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
        elif name == "COPY" and not rest.startswith("--from"):
            copied, target = rest.split()
            copy = source / target
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / copied).read_bytes())
        elif name == "RUN" and "useradd" not in rest:
            print(f"RUN {rest}", flush=True)
            command = inside(rest, places).replace("python -m venv", f"{shlex.quote(sys.executable)} -m venv")
            subprocess.run(["sh", "-c", command], cwd=source, env=surroundings(), check=True)


def served(places: Mapping[str, str]) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the command of the server, that of its health check, and their environment."""
    last = dict(steps())
    environment = surroundings()
    given = shlex.split(inside(last["ENV"].replace("$PATH", environment["PATH"]), places))
    health = last["HEALTHCHECK"].partition("CMD ")[2]
    return json.loads(last["CMD"]), json.loads(health), environment | dict(pair.split("=", 1) for pair in given)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        places = {"/opt/spicegraph": f"{folder}/opt", "/src": f"{folder}/src", "/var/lib/spicegraph": f"{folder}/var"}
        for place in (places["/src"], places["/var/lib/spicegraph"]):
            Path(place).mkdir()
        build(places)
        return serve(*served(places))


def serve(command: list[str], health: list[str], environment: dict[str, str]) -> int:
    """Run the server as the Dockerfile's first example does, ask its health, make a call, and stop it."""
    for name in ("SPICEGRAPH_ADDRESS", "SPICEGRAPH_METRICS_ADDRESS"):
        environment[name] = f"0.0.0.0:{free_port()}"
    environment |= {"SPICEGRAPH_ALLOW_INSECURE": "1", "SPICEGRAPH_TOKENS": "never"}
    programs = Path(environment["PATH"].partition(":")[0])
    with subprocess.Popen([programs / command[0], *command[1:]], env=environment) as server:
        try:
            end = time.monotonic() + 120
            while subprocess.run([programs / health[0], *health[1:]], env=environment, check=False).returncode:
                if time.monotonic() > end or server.poll() is not None:
                    return 1
                time.sleep(1)
            address = environment["SPICEGRAPH_ADDRESS"].replace("0.0.0.0", "127.0.0.1")
            subprocess.run([programs / "python", "-c", CALL.format(address=address)], env=environment, check=True)
        finally:
            server.terminate()
    print(f"the server ended with {server.returncode}")
    return server.returncode


if __name__ == "__main__":
    raise SystemExit(main())
