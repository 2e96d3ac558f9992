"""The page for two files: what comes out is the command's page; strangers' forms, files and words do no harm."""

from __future__ import annotations

import html
import json
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_service.cli import main
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from browser import Browser
    from servers import RunningServer

pytestmark = [pytest.mark.model, pytest.mark.timeout(300)]

COCO = Path(__file__).parents[2] / "examples" / "coco"
NASTY = "<script>hacked=1</script><img src=x onerror=hacked=1>"
CANDIDATES = json.dumps([{"image_id": n, "caption": "a blue car on a street"} for n in range(3)]).encode()
REFERENCES = json.dumps(
    {"annotations": [{"image_id": n, "caption": f"a red car {where}"} for n in range(3) for where in ("here", "there")]}
).encode()


def form(*parts: tuple[str, str | None, bytes]) -> tuple[bytes, str]:
    """Return the body of a form, and its content type."""
    body = b""
    for name, file, content in parts:
        about = f'form-data; name="{name}"' + (f'; filename="{file}"' if file is not None else "")
        body += f"--edge\r\nContent-Disposition: {about}\r\n\r\n".encode() + content + b"\r\n"
    return body + b"--edge--\r\n", "multipart/form-data; boundary=edge"


def post(server: RunningServer, *parts: tuple[str, str | None, bytes], **headers: str) -> tuple[int, str]:
    body, kind = form(*parts)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{server.http_url}/report", body, {"Content-Type": kind} | names)
    try:
        with urllib.request.urlopen(request, timeout=240) as reply:
            assert reply.headers["Content-Security-Policy"].startswith("sandbox")
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, html.unescape(error.read().decode())


def files(candidates: bytes = CANDIDATES, references: bytes = REFERENCES) -> list[tuple[str, str | None, bytes]]:
    return [("candidates", "mine.json", candidates), ("references", "refs.json", references)]


def test_the_answer_is_the_command_s_page_but_for_date_and_command(server: RunningServer, tmp_path: Path) -> None:
    first, second = COCO / "human.json", COCO / "captions_without_first.json"
    output = tmp_path / "a.html"
    assert main(["report", str(first), "--references", str(second), "-o", str(output)]) == 0
    sent = [("candidates", first.name, first.read_bytes()), ("references", second.name, second.read_bytes())]
    status, page = post(server, *sent)
    assert status == 200
    dated = re.compile(r"(<dt>Made</dt><dd>).*?(</dd>)|<dt>Command</dt>.*?</dd>\n?|\d{4}-\d\d-\d\d")
    assert dated.sub("", page) == dated.sub("", output.read_text(encoding="utf-8"))


def test_faults_of_files_are_named_and_escaped(server: RunningServer) -> None:
    status, page = post(server, *files(references=b'{"annotations": []}'))
    assert status == 400
    assert "references" in page
    assert "/tmp" not in page
    status, page = post(server, ("candidates", f"{NASTY}.json", json.dumps([{"image_id": NASTY}]).encode()))
    assert status == 400
    assert "candidates: " in page
    assert post(server, ("candidates", "a.json", b""))[0] == 400
    assert post(server, ("references", "a.json", REFERENCES)) == (400, post(server)[1])


def test_forms_of_other_sites_are_refused(server: RunningServer) -> None:
    assert post(server, *files(), Origin="https://example.org")[0] == 403
    assert post(server, *files(), Sec_Fetch_Site="cross-site")[0] == 403
    assert post(server, *files(), Host="example.org")[0] == 421
    assert post(server, *files(), Content_Type="text/plain")[0] == 403
    assert post(server, *files(), Content_Type="multipart/form-data")[0] == 400
    assert post(server, *files(), Origin=server.http_url, Sec_Fetch_Site="same-origin")[0] == 200


def test_a_file_is_bounded_and_nothing_stays(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    server = start_server("--http=127.0.0.1:0", env={"TMPDIR": str(tmp_path)})
    status, page = post(server, *files(candidates=b" " * ((64 << 20) + 1)))
    assert (status, "at most 64 MiB" in page) == (413, True)
    body, kind = form(*files())
    with socket.create_connection(("127.0.0.1", int(server.http_url.rpartition(":")[2]))) as connection:
        head = (
            f"POST /report HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        wait_until(lambda: list(tmp_path.glob("spicegraph-form-*/items")), timeout_s=120)
    wait_until(lambda: not list(tmp_path.glob("spicegraph-*")), timeout_s=120)
    assert post(server, *files())[0] == 200  # the turn is free again
    assert not [line for line in server.lines() if "Traceback" in str(line)]


def test_a_server_with_tokens_asks_for_one_before_it_reads(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--http=127.0.0.1:0", "--tokens=always")
    with urllib.request.urlopen(f"{server.http_url}/report", timeout=60) as reply:
        assert 'name="token"' in reply.read().decode()
    status, page = post(server, ("token", None, b"sg_wrong"), *files())
    assert status == 401
    assert "token" in page


def choose(browser: Browser, folder: Path) -> None:
    """Choose the files on the page, as a click and a dialog do, and send them."""
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    for name in ("candidates", "references"):
        node = browser.call("DOM.querySelector", nodeId=root, selector=f"input[name={name}]")["nodeId"]
        browser.call("DOM.setFileInputFiles", files=[str(folder / f"{name}.json")], nodeId=node)
    browser.tab_to("button")
    browser.js("document.documentElement.dataset.old = 'true'")
    browser.key("Enter", code=13, text="\r")
    new = "document.documentElement && !document.documentElement.dataset.old && document.readyState === 'complete'"
    wait_until(lambda: browser.js(new), timeout_s=180)


def test_people_see_it(server: RunningServer, start_browser: Callable[..., Browser], axe: str, tmp_path: Path) -> None:
    (tmp_path / "candidates.json").write_bytes(CANDIDATES.replace(b"a blue car", NASTY.encode()))
    (tmp_path / "references.json").write_bytes(REFERENCES)
    browser = start_browser()
    for width, dark in ((400, True), (1200, False)):
        browser.look(width=width, dark=dark)
        browser.visit(f"{server.http_url}/report")
        browser.check(axe, server.http_url)
    choose(browser, tmp_path)
    assert NASTY in browser.js("document.querySelector('[role=alert]').textContent")
    (tmp_path / "candidates.json").write_bytes(CANDIDATES)
    browser.visit(f"{server.http_url}/report")
    choose(browser, tmp_path)
    browser.until("document.querySelectorAll('#list .id').length === 3")
    assert browser.errors == []
    assert browser.js("typeof hacked") == "undefined"
