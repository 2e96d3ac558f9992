"""A remote evaluation worker for EvalAI: it takes submissions from a challenge's queue and answers with our scores.

EvalAI keeps the pages, the teams and the board; the references stay on this machine. The worker speaks the calls that
EvalAI offers to remote workers (``/api/jobs/...``, https://evalai.readthedocs.io/en/latest/evaluation_scripts.html).

    EVALAI_TOKEN=... python remote_worker.py evalai.json

    {"server": "https://eval.ai", "queue": "QUEUE NAME", "challenge": 355,
     "phases": {"1234": {"split": "test", "references": "captions_test.json", "metrics": ["coco"]}}}

A phase may have several splits of its board, each with the images of one domain (empty: all), and names of its own for
the columns, as nocaps has them; each image of the references then says its "domain":

    "splits": {"in-domain": "in-domain", "near-domain": "near-domain", "out-domain": "out-domain", "entire": ""},
    "columns": {"B1": "bleu_1", "B4": "bleu_4", "METEOR": "meteor", "ROUGE-L": "rouge_l", "CIDEr": "cider",
                "SPICE": "spice"}

The queue's name and the numbers of challenge and phases stand on the challenge's page "Manage". A message leaves the
queue when EvalAI has the result: a worker that is stopped in between loses nothing, and does the submission again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from spicegraph_compat.evalai import leaderboard_scores
from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import SpicegraphError
from spicegraph_scorer import score as score_items
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.readers import read_items

LARGEST = 256 << 20  # bytes of a submission
SECONDS = 60.0
ENDED = {"finished", "failed", "cancelled"}
log = logging.getLogger("evalai")


class Queue:
    """The calls of EvalAI's API that a remote worker makes.

    Args:
        server: its address.
        queue: the queue's name.
        challenge: the challenge's number.
        token: of a host of the challenge.
    """

    def __init__(self, server: str, queue: str, challenge: int, token: str) -> None:
        self._server = server.rstrip("/")
        self._queue = urllib.parse.quote(queue, safe="")
        self._challenge = challenge
        self._token = token

    def next(self) -> dict[str, Any]:
        """Return the next message: ``body`` (submission, phase) and ``receipt_handle``; no body where there is none."""
        return self._call("GET", f"challenge/queues/{self._queue}/")

    def submission(self, number: int) -> dict[str, Any]:
        """Return a submission: its ``status`` and the address of its ``input_file``."""
        return self._call("GET", f"submission/{number}")

    def remove(self, receipt_handle: str) -> None:
        """Take a message out of the queue."""
        self._call("POST", f"queues/{self._queue}/", {"receipt_handle": receipt_handle})

    def start(self, number: int) -> None:
        """Say that a submission is being scored."""
        data = {"submission": str(number), "submission_status": "RUNNING", "job_name": ""}
        self._call("PATCH", f"challenge/{self._challenge}/update_submission/", data)

    def end(self, number: int, phase: int, status: str, **data: str) -> None:
        """Say how a submission ended: FINISHED with a ``result``, or FAILED with a text as ``stderr``."""
        fields = {"challenge_phase": str(phase), "submission": str(number), "submission_status": status}
        defaults = {"stdout": "", "stderr": "", "metadata": "", "result": "[]"}
        self._call("PUT", f"challenge/{self._challenge}/update_submission/", {**fields, **defaults, **data})

    def download(self, address: str, path: Path) -> None:
        """Write a submission's file, which may lie on another server: that one gets no token.

        Raises:
            ValueError: it is larger than any sound file, or its address is none of the web.
        """
        whole = urllib.parse.urljoin(self._server + "/", address)
        if urllib.parse.urlsplit(whole).scheme not in {"http", "https"}:
            raise ValueError(f"the submission's address is not one of the web: {whole!a}")
        with urllib.request.urlopen(whole, timeout=SECONDS) as response, path.open("wb") as stream:  # noqa: S310
            left = LARGEST + 1
            while left and (block := response.read(min(left, 1 << 20))):
                stream.write(block)
                left -= len(block)
            if not left:
                raise ValueError(f"the file is larger than {LARGEST:,} bytes")

    def _call(self, method: str, path: str, data: dict[str, str] | None = None) -> dict[str, Any]:
        body = urllib.parse.urlencode(data).encode() if data is not None else None
        request = urllib.request.Request(f"{self._server}/api/jobs/{path}", data=body, method=method)  # noqa: S310
        request.add_header("Authorization", f"Bearer {self._token}")
        with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
        return answer


def work(queue: Queue, phases: dict[str, dict[str, Any]]) -> bool:
    """Do the next submission, if there is one; return whether there was."""
    message = queue.next()
    body = message.get("body")
    if not body:
        return False
    number, phase = int(body["submission_pk"]), int(body["phase_pk"])
    submission = queue.submission(number)
    if submission.get("status") not in ENDED:
        queue.start(number)
        status, data = score(queue, submission, phases.get(str(phase)))
        queue.end(number, phase, status, **data)
        log.info("submission %d: %s", number, status)
    queue.remove(message["receipt_handle"])
    return True


def score(queue: Queue, submission: dict[str, Any], phase: dict[str, Any] | None) -> tuple[str, dict[str, str]]:
    """Return how a submission ends. What is wrong with its file is told to the team, a fault of ours to the log."""
    if phase is None:
        return "FAILED", {"stderr": "this phase is not set up on the organisers' worker"}
    name = Path(urllib.parse.urlsplit(str(submission["input_file"])).path).name or "submission.json"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        try:
            queue.download(str(submission["input_file"]), path)
            scores = split_scores(phase, path)
        except (SpicegraphError, ValueError) as error:
            return "FAILED", {"stderr": str(error).replace(folder, "").replace(str(phase["references"]), "references")}
    result = [{"split": name, "show_to_participant": True, "accuracies": columns} for name, columns in scores.items()]
    return "FINISHED", {"result": json.dumps(result)}


def split_scores(phase: dict[str, Any], path: Path) -> dict[str, dict[str, float]]:
    """Return the scores of each split of a phase; a domain is scored as if its images were all.

    Raises:
        InputError: the submission is faulty.
        ValueError: a domain has no image, or a column no score.
    """
    items = read_items(str(path), references=phase["references"]).items
    splits = phase.get("splits") or {phase["split"]: ""}
    domains: dict[str, str] = {}
    if any(splits.values()):
        images = json.loads(Path(phase["references"]).read_text(encoding="utf-8"))["images"]
        domains = {str(image["id"]): image.get("domain", "") for image in images}
    parses, scores = FactCache(load_pipeline(), places=False), {}
    for split, domain in splits.items():
        chosen = [item for item in items if domain in {"", domains.get(str(item.id))}]
        if not chosen:
            raise ValueError(f"no image of the references has the domain {domain!a}")
        known = leaderboard_scores(score_items(chosen, tuple(phase.get("metrics", ("coco",))), pipeline=parses))
        columns = phase.get("columns") or {name: name for name in known}
        if lacking := [name for name in columns.values() if name not in known]:
            raise ValueError(f"the metrics of this phase give no {lacking[0]}")
        scores[split] = {column: known[name] for column, name in columns.items()}
    return scores


def main(arguments: list[str] | None = None) -> int:
    """Take submissions until this is interrupted; with ``--once``, until the queue is empty."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, help="JSON: server, queue, challenge, phases")
    parser.add_argument("--once", action="store_true", help="end when the queue is empty")
    parser.add_argument("--every", type=float, default=30.0, metavar="SECONDS", help="how often to look (30)")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    token = os.environ.get("EVALAI_TOKEN")
    if not token:
        parser.error("set EVALAI_TOKEN to the token of a host of the challenge")
    config = json.loads(options.config.read_text(encoding="utf-8"))
    queue = Queue(config["server"], config["queue"], config["challenge"], token)
    while True:
        try:
            if work(queue, config["phases"]):
                continue
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            log.warning("EvalAI cannot be asked now: %s", error)  # the message stays in the queue
        if options.once:
            return 0
        time.sleep(options.every)


if __name__ == "__main__":
    sys.exit(main())
