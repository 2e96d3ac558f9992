"""Starts a server, asks it over gRPC for scores that a file holds already, compares every digit, and stops the server.

python tools/ask_server.py RESULTS REFERENCES SCORES.json   (the output of `spicegraph score`)
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import grpc

from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer import read_items
from spicegraph_service.client import Client, item

METRICS = ["bleu", "meteor", "rouge", "cider", "spice"]  # the command line's group `coco`
PATIENCE_S = 60


def main() -> None:
    results, references, scores = sys.argv[1:]
    expected = json.loads(Path(scores).read_text())
    items = read_items(results, references=references).items
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "spicegraph_service", "serve", "--address", address, "--store", "memory"]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        with Client(address) as client:
            wait_for(client, server)
            begin = time.perf_counter()
            sent = [item(i.id, i.candidate, i.references) for i in items]
            replies = list(client.stream(sent, metrics=METRICS, spice_text=scores_pb2.SPICE_TEXT_COCO))
            took = time.perf_counter() - begin
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE_S)
    shown = replies[-1].corpus.scores
    corpus = {name: value for name, value in shown.items() if name in expected["corpus"]}  # categories are shown apart
    each: dict[str, dict[str, float | None]] = {}
    for result in (result for reply in replies for result in reply.items):  # CIDEr's come in a second result
        each.setdefault(result.id, {}).update(result.scores)
    pairs = {name: (value, expected["corpus"][name]) for name, value in corpus.items()}
    for row in expected["items"]:
        scores_of = each[str(row["image_id"])]
        pairs |= {f"{name} of {row['image_id']}": (scores_of[name], row["scores"][name]) for name in corpus}
    different = [name for name, (reply, stored) in pairs.items() if reply != stored]
    for name, value in corpus.items():
        print(f" {name:8} {value:.4f}")
    print(f"{len(items)} items in {took:.1f} s over gRPC from {address}, which is stopped.")
    if different:
        sys.exit(f"error: {len(different)} scores differ from {scores}: {', '.join(different[:5])}")
    print(f"All {len(pairs):,} scores, of the corpus and of each image, equal those of {scores} to the last digit.")


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def wait_for(client: Client, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            client.server_info()
        except grpc.RpcError:
            if server.poll() is not None or time.monotonic() > until:
                sys.exit("error: the server does not start")
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main()
