"""EvalAI: the remote worker against a stand-in that speaks EvalAI's API, and the hosted files on the oldest Python."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode
from urllib.request import Request, urlopen

import pytest

from spicegraph_compat.evalai import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer

ROOT = Path(__file__).parents[2]
EVALAI = ROOT / "examples" / "evalai"
REFERENCES = ROOT / "examples" / "coco" / "captions.json"
RESULTS = ROOT / "examples" / "coco" / "retrieval.json"
OLDEST = [(3, 7), (3, 8), (3, 9), (3, 10), (3, 11), (3, 12), (3, 13)]
METRICS = ("bleu", "rouge")


class StandIn(ThreadingHTTPServer):
    """EvalAI's calls for remote workers: a queue whose messages come again until they are removed, and submissions."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Calls)
        self.messages: dict[str, dict[str, int]] = {}
        self.submissions: dict[int, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []  # method, path, names of the form's fields
        self.unavailable = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def submit(self, number: int, content: bytes, phase: int = 7) -> None:
        self.files[f"/media/{number}/results.json"] = content
        self.submissions[number] = {
            "id": number,
            "status": "submitted",
            "input_file": f"{self.address}/media/{number}/results.json",
        }
        body = {"submission_pk": number, "challenge_pk": 355, "phase_pk": phase}
        self.messages[f"handle/{number}=="] = body


class Calls(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *_: object) -> None: ...

    def _answer(self, value: object, status: int = 200) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _do(self) -> None:
        server, path = self.server, self.path
        length = int(self.headers.get("Content-Length") or 0)
        sent = parse_qs(self.rfile.read(length).decode(), keep_blank_values=True)
        form = {key: value[0] for key, value in sent.items()}
        server.calls.append((self.command, path, tuple(sorted(form))))
        if path in server.files:
            assert "Authorization" not in self.headers  # files lie on another host, which gets no token
            self._answer(server.files[path])
        elif self.headers.get("Authorization") != "Bearer secret":
            self._answer({"error": "no"}, 401)
        elif server.unavailable:
            server.unavailable -= 1
            self._answer({"error": "later"}, 503)
        elif (self.command, path) == ("GET", "/api/jobs/challenge/queues/a%20queue/"):
            handle, body = next(iter(server.messages.items()), (None, None))
            self._answer({"body": body, "receipt_handle": handle})
        elif self.command == "GET" and path.startswith("/api/jobs/submission/"):
            self._answer(server.submissions[int(path.rpartition("/")[2])])
        elif (self.command, path) == ("POST", "/api/jobs/queues/a%20queue/"):
            del server.messages[form["receipt_handle"]]
            self._answer({"success": True})
        elif path == "/api/jobs/challenge/355/update_submission/":
            submission = server.submissions[int(form["submission"])]
            submission |= form | {"status": form["submission_status"].lower()}
            self._answer({"success": True})
        else:
            self._answer({"error": "not found"}, 404)

    do_GET = do_POST = do_PUT = do_PATCH = _do


@pytest.fixture
def evalai() -> Iterator[StandIn]:
    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


def run_worker(server: StandIn, folder: Path, monkeypatch: pytest.MonkeyPatch, **phase: object) -> None:
    phases = {"7": {"split": "test", "references": str(REFERENCES), "metrics": list(METRICS)} | phase}
    config = {"server": server.address, "queue": "a queue", "challenge": 355, "phases": phases}
    (folder / "evalai.json").write_text(json.dumps(config))
    monkeypatch.setenv("EVALAI_TOKEN", "secret")
    main = runpy.run_path(str(EVALAI / "remote_worker.py"))["main"]
    assert main([str(folder / "evalai.json"), "--once"]) == 0


def test_the_worker_scores_what_the_queue_holds(
    evalai: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalai.submit(1, RESULTS.read_bytes())
    evalai.submit(2, b'[{"image_id": 1, "caption": ""}]')
    evalai.submit(3, RESULTS.read_bytes(), phase=8)
    evalai.submit(4, RESULTS.read_bytes())
    evalai.submissions[4]["status"] = "cancelled"
    run_worker(evalai, tmp_path, monkeypatch)
    assert evalai.messages == {}
    assert [evalai.submissions[number]["status"] for number in (1, 2, 3, 4)] == [
        "finished",
        "failed",
        "failed",
        "cancelled",
    ]
    (result,) = json.loads(evalai.submissions[1]["result"])
    expected = evaluate(str(REFERENCES), str(RESULTS), "test", metrics=METRICS)
    assert result == {"split": "test", "show_to_participant": True, "accuracies": expected["submission_result"]}
    assert "caption" in evalai.submissions[2]["stderr"]
    assert str(REFERENCES) not in evalai.submissions[2]["stderr"]
    assert "/tmp" not in evalai.submissions[2]["stderr"]
    assert "phase is not set up" in evalai.submissions[3]["stderr"]


def test_a_board_by_domain_gets_every_split_as_nocaps_has_them(
    evalai: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file of nocaps' form; its client reads four splits, and columns of these names, off the result."""
    data = json.loads(REFERENCES.read_text())
    names = ("in-domain", "near-domain", "out-domain")
    keys = sorted({row["image_id"] for row in data["annotations"]})
    data["images"] = [
        {
            "id": key,
            "open_images_id": f"{key:016x}",
            "height": 1024,
            "width": 732,
            "coco_url": "",
            "file_name": f"{key:016x}.jpg",
            "license": 0,
            "date_captured": "2018-11-06 11:04:33",
            "domain": names[place % 3],
        }
        for place, key in enumerate(keys)
    ]
    references = tmp_path / "nocaps.json"
    references.write_text(json.dumps({"licenses": [], "info": {"version": "0.1"}} | data))
    columns = {"B1": "bleu_1", "B4": "bleu_4", "ROUGE-L": "rouge_l"}
    splits = {**{name: name for name in names}, "entire": ""}
    evalai.submit(1, RESULTS.read_bytes())
    run_worker(evalai, tmp_path, monkeypatch, references=str(references), splits=splits, columns=columns)
    result = json.loads(evalai.submissions[1]["result"])
    assert [row["split"] for row in result] == list(splits)
    rows = json.loads(RESULTS.read_text())
    for row in result:
        wanted = [key for place, key in enumerate(keys) if row["split"] in {"entire", names[place % 3]}]
        part = tmp_path / "part.json"
        part.write_text(json.dumps([result for result in rows if result["image_id"] in wanted]))
        some = tmp_path / "some.json"
        some.write_text(
            json.dumps({"annotations": [each for each in data["annotations"] if each["image_id"] in wanted]})
        )
        expected = evaluate(str(some), str(part), "x", metrics=METRICS)["submission_result"]
        assert row["accuracies"] == {column: expected[name] for column, name in columns.items()}
    evalai.submit(2, RESULTS.read_bytes())
    run_worker(evalai, tmp_path, monkeypatch, splits={"none": "far"})
    assert "no image of the references has the domain 'far'" in evalai.submissions[2]["stderr"]


def ask(server: StandIn, method: str, path: str, **form: str) -> dict[str, Any]:
    """A call as EvalAI's public starter for remote workers makes it: a form, and the token in a header."""
    request = Request(f"{server.address}/api/jobs/{path}", urlencode(form).encode() or None, method=method)
    request.add_header("Authorization", "Bearer secret")
    with urlopen(request, timeout=10) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


@pytest.mark.parametrize("content", [RESULTS.read_bytes(), b"[]"], ids=["finished", "failed"])
def test_the_worker_makes_the_calls_of_evalai_s_starter(
    evalai: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """A transcript of the starter's, which takes a message away once it has told the result."""
    evalai.submit(1, content)
    message = ask(evalai, "GET", "challenge/queues/a%20queue/")
    number, phase = (str(message["body"][name]) for name in ("submission_pk", "phase_pk"))
    assert ask(evalai, "GET", f"submission/{number}")["status"] == "submitted"
    update = f"challenge/{message['body']['challenge_pk']}/update_submission/"
    ask(evalai, "PATCH", update, submission=number, job_name="", submission_status="RUNNING")
    ask(
        evalai,
        "PUT",
        update,
        challenge_phase=phase,
        submission=number,
        stdout="",
        stderr="",
        submission_status="FINISHED",
        result='[{"split": "test", "show_to_participant": true, "accuracies": {"CIDEr": 1.0}}]',
        metadata="",
    )
    assert ask(evalai, "GET", f"submission/{number}")["status"] == "finished"
    ask(evalai, "POST", "queues/a%20queue/", receipt_handle=message["receipt_handle"])
    assert not evalai.messages
    transcript = [call for call in evalai.calls if call[0] != "GET" or "queues" in call[1]]
    evalai.calls.clear()
    evalai.submit(1, content)
    run_worker(evalai, tmp_path, monkeypatch)
    last = evalai.calls.pop()
    assert last == transcript[0]  # it looks again, and there is nothing
    assert [call for call in evalai.calls if call[0] != "GET" or "queues" in call[1]] == transcript


def test_a_submission_whose_worker_died_is_done_again(
    evalai: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalai.submit(1, RESULTS.read_bytes())
    evalai.submissions[1]["status"] = "running"
    run_worker(evalai, tmp_path, monkeypatch)
    assert evalai.submissions[1]["status"] == "finished"


def test_a_message_stays_while_evalai_cannot_be_reached(
    evalai: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalai.submit(1, RESULTS.read_bytes())
    evalai.unavailable = 1
    run_worker(evalai, tmp_path, monkeypatch)
    assert list(evalai.messages) == ["handle/1=="]
    run_worker(evalai, tmp_path, monkeypatch)
    assert evalai.messages == {}


def oldest_python() -> str:
    """The oldest Python that can be had, 3.7 at least: hosted workers have 3.7 to 3.9."""
    for major, minor in OLDEST:
        for program in [
            *sorted(Path.home().glob(f".pyenv/versions/{major}.{minor}.*/bin/python")),
            shutil.which(f"python{major}.{minor}"),
        ]:
            if (
                program
                and subprocess.run([program, "-c", "import ssl"], capture_output=True, check=False).returncode == 0
            ):
                return str(program)
    return sys.executable


@pytest.mark.model
def test_the_hosted_files_ask_a_server_with_the_oldest_python(
    start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    from spicegraph_service.client import Client

    server = start_server("--http=127.0.0.1:0", f"--store={tmp_path / 'server.db'}")
    references: dict[str, list[str]] = {}
    for annotation in json.loads(REFERENCES.read_text())["annotations"]:
        references.setdefault(str(annotation["image_id"]), []).append(annotation["caption"])
    with Client(server.address) as client:
        stored = client.create_reference_set(references)
    shutil.copytree(EVALAI / "hosted", tmp_path / "evaluation_script")
    bad = tmp_path / "bad.json"
    bad.write_text('[{"image_id": 1}, 5]')
    program = (
        "import json, evaluation_script.main as script\n"
        "script.METRICS = ['bleu', 'rouge']\n"
        f"print(json.dumps(script.evaluate('', {str(RESULTS)!r}, 'test', submission_metadata={{}})))\n"
        f"try: script.evaluate('', {str(bad)!r}, 'test')\n"
        "except ValueError as error: print(error)\n"
    )
    ended = subprocess.run(
        [oldest_python(), "-c", program],
        cwd=tmp_path,
        env=os.environ
        | {
            "SPICEGRAPH_URL": server.http_url,
            "SPICEGRAPH_TOKEN": "sgt_none",
            "SPICEGRAPH_REFERENCE_SETS": json.dumps({"test": stored.id}),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    first, *faults = ended.stdout.splitlines()
    expected = evaluate(str(REFERENCES), str(RESULTS), "test", metrics=METRICS)["submission_result"]
    assert json.loads(first)["submission_result"] == pytest.approx(expected)
    assert faults[0] == "the file has 2 faults:"
