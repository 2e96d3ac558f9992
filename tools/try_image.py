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


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        places = {"/opt/spicegraph": f"{folder}/opt", "/src": f"{folder}/src", "/var/lib/spicegraph": f"{folder}/var"}
        for place in (places["/src"], places["/var/lib/spicegraph"]):
            Path(place).mkdir()

        def here(text: str) -> str:
            for inside, outside in places.items():
                text = text.replace(inside, outside)
            return text

        # Nothing of the calling environment but where programs are, and how this machine reaches its package index.
        base = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME"} or k.startswith(("PIP_", "SSL_", "http"))}
        environment = dict(base)
        health: list[str] = []
        for name, rest in steps():
            if name == "COPY" and not rest.startswith("--from"):
                if rest == ". .":
                    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
                    subprocess.run(["tar", "-x", "-C", places["/src"]], input=archive.stdout, check=True)
                else:
                    source, target = rest.split()
                    copy = Path(places["/src"]) / target
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes((ROOT / source).read_bytes())
            elif name == "RUN" and "useradd" not in rest:
                print(f"RUN {rest}", flush=True)
                command = here(rest).replace("python -m venv", f"{shlex.quote(sys.executable)} -m venv")
                subprocess.run(["sh", "-c", command], cwd=places["/src"], env=base, check=True)
            elif name == "ENV":
                environment |= dict(
                    pair.split("=", 1) for pair in shlex.split(here(rest.replace("$PATH", base["PATH"])))
                )
            elif name == "HEALTHCHECK":
                health = json.loads(rest.partition("CMD ")[2])
            elif name == "CMD":
                return serve(json.loads(rest), health, environment)
    raise LookupError("the Dockerfile has no CMD")


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
