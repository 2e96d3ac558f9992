"""The evaluation server's pages, over HTTP, without a browser: who sees what, forms, cookies, strangers' words."""

from __future__ import annotations

import asyncio
import html
import json
import re
import secrets
import signal
import threading
import time
from base64 import urlsafe_b64decode
from concurrent.futures import Future
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import pytest
from sqlalchemy import select

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_api.v1 import scores_pb2
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.model import schema
from spicegraph_challenge.model.accounts import add_user
from spicegraph_challenge.model.database import Database
from spicegraph_challenge.model.schema import Role, State
from spicegraph_challenge.pages import views
from spicegraph_challenge.pages.visit import PACKAGE, Sessions, shared_key
from spicegraph_challenge.registration import ChallengeOptions
from spicegraph_challenge.service import ChallengeService
from spicegraph_service.app import Server
from spicegraph_service.config import ServerConfig
from spicegraph_service.output.pages import render_page, static
from spicegraph_service.pool.tasks import ServedMetric, WorkerInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from arenas import Arena
    from browser import Browser

pytestmark = pytest.mark.timeout(180)

NASTY = "<script>hacked=1</script><img src=x onerror=hacked=1> \"'&lt;"
SCORES = {"spice": ("SPICE", "SPICE_Color"), "bleu": ("Bleu_1",)}


class Page:
    """A response, read whole."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.text = body.decode()

    @property
    def proof(self) -> str:
        found = re.search(r'name="proof" value="([0-9a-f]+)"', self.text)
        assert found is not None
        return found.group(1)


class Visitor:
    """Somebody with a browser: it keeps a cookie and follows no redirect."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""

    def get(self, path: str, **headers: str) -> Page:
        return self._send("GET", path, None, headers)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Page:
        return self._send(
            "POST", path, urlencode(fields).encode(), {"Content-Type": "application/x-www-form-urlencoded"} | headers
        )

    def upload(self, path: str, fields: dict[str, str], name: str, content: bytes, **headers: str) -> Page:
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()
        ]
        parts.append(f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode())
        body = b"".join([*parts, content, b"\r\n--x--\r\n"])
        return self._send("POST", path, body, {"Content-Type": "multipart/form-data; boundary=x"} | headers)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Page:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent | ({"Cookie": self.cookie} if self.cookie else {}))
            response = connection.getresponse()
            got = dict(response.getheaders())
            if "Set-Cookie" in got:
                self.cookie = got["Set-Cookie"].partition(";")[0]
            return Page(response.status, got, response.read())

    def sign_in(self, token: str) -> Page:
        return self.post("/sign-in", {"token": token, "next": "/challenges/pets"})


class Site:
    """An evaluation server without workers, in a thread: its pages, and all that needs no scores."""

    def __init__(self, folder: Path, *, https_proxy: bool = False) -> None:
        self.place = place = str(folder / "challenges.db")
        self.files = folder / "files"
        self.tokens = {}
        with Database(place) as database, database.writing() as session:
            now = database.now(session)
            for name, role in (("boss", Role.ORGANISER), ("ann", Role.PARTICIPANT), ("bob", Role.PARTICIPANT)):
                _, self.tokens[name] = add_user(session, name, role, now)
        self._config = ServerConfig(address="127.0.0.1:0", http="127.0.0.1:0", store="memory")
        self._options = {"challenge": ChallengeOptions(place, self.files, https_proxy=https_proxy)}
        started: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(started)))
        self._thread.start()
        self.port = started.result(60)

    async def _run(self, started: Future[int]) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = Server(self._config, self._options)
            await server.start()
        except Exception as error:
            started.set_exception(error)
            raise
        service = next(each for each in server.services if isinstance(each, ChallengeService))
        metrics = (
            ServedMetric(name, {"v": "1"}, corpus_dependent=False, parses=False, scores=names)
            for name, names in SCORES.items()
        )
        service._state.workers = WorkerInfo("0", metrics=tuple(metrics), scene_pipeline="scene-1")
        started.set_result(server.web_port)
        await self._end.wait()
        await server.stop(1)

    def visitor(self, name: str = "") -> Visitor:
        made = Visitor(self.port)
        if name:
            assert made.sign_in(self.tokens[name]).headers["Location"] == "/challenges/pets"
        return made

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("pages"))
    boss = made.visitor("boss")
    form = {
        "proof": boss.get("/new").proof,
        "name": "pets",
        "title": f"Pets {NASTY}",
        "description": f"Data: https://example.org/data.zip?a=1&b=2.\r\n{NASTY}",
        "metrics": "spice, bleu",
        "sets": "val/c5,test/c5",
        "daily_limit": "5",
        "total_limit": "20",
    }
    answer = boss.post("/new", form)
    assert (answer.status, answer.headers["Location"]) == (303, "/challenges/pets")
    yield made
    made.stop()


def test_everybody_is_asked_for_a_token_first(site: Site) -> None:
    stranger = site.visitor()
    for path in ("/challenges", "/challenges/pets", "/submissions/x", "/users", "/new", "/account"):
        answer = stranger.get(path)
        assert (answer.status, answer.headers["Location"]) == (303, f"/sign-in?next={path}")
    assert stranger.post("/users", {"name": "me"}).headers["Location"] == "/sign-in"
    assert stranger.sign_in("sgu_wrong").status == 401
    assert stranger.cookie == ""


def test_a_session_is_a_cookie_that_only_this_site_s_pages_send(site: Site) -> None:
    visitor = Visitor(site.port)
    answer = visitor.sign_in(site.tokens["ann"])
    settings = answer.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Max-Age=43200", "Path=/"} <= set(settings)
    assert visitor.get("/challenges").status == 200
    whole = visitor.cookie
    for broken in (whole[:-1], whole[:-1] + ("0" if whole[-1] != "0" else "1"), whole.replace(".", "x."), "a=" + whole):
        visitor.cookie = broken
        assert visitor.get("/challenges").status == 303
    visitor.cookie = whole
    for outside in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = visitor.post("/sign-in", {"token": site.tokens["ann"], "next": outside})
        assert answer.headers["Location"] == "/challenges"


def test_signing_out_ends_the_session_and_the_cookie_never_holds_the_token(site: Site) -> None:
    visitor = site.visitor("ann")
    cookie = visitor.cookie
    content = urlsafe_b64decode(cookie.partition("=")[2].partition(".")[0]).decode()
    assert site.tokens["ann"] not in content
    proof = visitor.get("/account").proof
    assert visitor.post("/sign-out", {"proof": proof}).status == 303
    visitor.cookie = cookie
    assert visitor.get("/account").headers["Location"] == "/sign-in?next=/account"
    session = content.split(" ")[1]
    assert site.visitor().sign_in(session).status == 401  # no session begins with another, nor with one that ended


def test_behind_a_proxy_that_ends_tls_cookies_and_pages_are_for_https_alone(tmp_path: Path, site: Site) -> None:
    proxied = Site(tmp_path, https_proxy=True)
    try:
        answer = Visitor(proxied.port).sign_in(proxied.tokens["ann"])
        assert "Secure" in answer.headers["Set-Cookie"].split("; ")
        assert Visitor(proxied.port).get("/sign-in").headers["Strict-Transport-Security"] == "max-age=31536000"
    finally:
        proxied.stop()
    plain = site.visitor().sign_in(site.tokens["ann"])
    assert "Secure" not in plain.headers["Set-Cookie"].split("; ")
    assert "Strict-Transport-Security" not in site.visitor().get("/sign-in").headers


def test_a_session_ends_with_the_token_that_began_it(site: Site) -> None:
    boss = site.visitor("boss")
    page = boss.post("/users", {"proof": boss.get("/account").proof, "name": "temp", "role": "USER_ROLE_PARTICIPANT"})
    secret = re.search(r"sgu_[\w-]+", page.text)
    assert secret is not None
    visitor = site.visitor()
    visitor.sign_in(secret.group())
    assert visitor.get("/account").status == 200
    listed = boss.get("/users").text
    (token_id,) = re.findall(r"/tokens/([0-9a-f]+)/revoke", listed[listed.index(">temp<") :])[:1]
    assert listed.count("browser") == 0  # sessions are no tokens that people list
    assert boss.post(f"/tokens/{token_id}/revoke", {"proof": boss.get("/account").proof}).status == 303
    assert visitor.get("/account").status == 303


@pytest.mark.model
def test_organisers_put_users_into_teams(site: Site) -> None:
    boss = site.visitor("boss")
    fields = {"name": "carl", "role": "USER_ROLE_PARTICIPANT", "team": "rockets"}
    assert boss.post("/users", {"proof": boss.get("/users").proof} | fields).status == 200
    assert 'value="rockets" aria-label="Team of carl"' in boss.get("/users").text
    for team, status in (("", 303), ("ann", 400)):
        assert boss.post("/users/carl/team", {"proof": boss.get("/users").proof, "team": team}).status == status
    page = boss.get("/users").text
    assert 'value="" aria-label="Team of carl"' in page
    assert "rockets" not in page


def test_pages_outlive_a_killed_server(sqlite_arena: Arena, tools: type) -> None:
    """Who is signed in stays so, and a server whose workers still load shows its pages."""
    arena, port = sqlite_arena, tools.free_port()
    options = (f"--http=127.0.0.1:{port}", f"--address=127.0.0.1:{tools.free_port()}")
    server = arena.start(*options)
    with ChallengeClient(server.address, arena.organiser()) as organiser:
        organiser.create_challenge(tools.challenge("pets"))
    visitor = Visitor(port)
    assert visitor.sign_in(arena.tokens["organiser"]).headers["Location"] == "/challenges/pets"
    assert visitor.get("/challenges/pets").status == 200
    server.stop(signal.SIGKILL)
    with pytest.raises(OSError, match="refused"):
        visitor.get("/challenges/pets")
    server = arena.start(*options, wait=False)
    end = time.monotonic() + 60
    while True:
        try:
            page = visitor.get("/challenges/pets")
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
    assert page.status == 200
    assert "Sign out" in page.text
    assert visitor.post("/sign-out", {"proof": page.proof}).status == 303
    server.wait_serving()
    assert server.stop() == 0


def test_sessions_end(site: Site, tmp_path: Path) -> None:
    now = 1_000_000.0
    sessions = Sessions(shared_key(site.files), clock=lambda: now)

    class Response:
        def set_cookie(self, name: str, value: str, **_options: object) -> None:
            self.cookies = {name: value}

    made = Response()
    sessions.begin(made, "sgu_x", secure=True)  # type: ignore[arg-type]
    assert sessions.of(made).token == "sgu_x"  # type: ignore[arg-type, union-attr]
    now -= 3600  # the clock is set back, or that of another server with this key is behind
    assert sessions.of(made).token == "sgu_x"  # type: ignore[arg-type, union-attr]
    now += 13 * 3600 + 1
    assert sessions.of(made) is None  # type: ignore[arg-type]
    assert Sessions(shared_key(tmp_path), clock=lambda: 1_000_000.0).of(made) is None  # type: ignore[arg-type]
    assert (site.files / "session.key").stat().st_mode & 0o077 == 0


def test_signing_out_and_a_revoked_token_end_it(site: Site) -> None:
    visitor = site.visitor("bob")
    made = visitor.post("/tokens", {"proof": visitor.get("/account").proof, "name": "second"})
    token = re.search(r"sgu_[\w-]+", made.text)
    assert token is not None
    other = Visitor(site.port)
    other.sign_in(token.group())
    boss = site.visitor("boss")
    users = boss.get("/users").text
    place = re.search(r'second</bdi>.*?action="(/tokens/[0-9a-f]+/revoke)"', users, re.DOTALL)
    assert place is not None
    assert boss.post(place.group(1), {"proof": boss.get("/users").proof}).status == 303
    assert other.get("/challenges").status == 303
    assert visitor.get("/challenges").status == 200
    assert visitor.post("/sign-out", {"proof": visitor.get("/account").proof}).status == 303
    assert visitor.get("/challenges").status == 303


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/users", {"name": "mallory", "role": "USER_ROLE_ORGANISER"}),
        ("/tokens", {"user": "boss", "name": "x"}),
        ("/challenges/pets/delete", {}),
        ("/challenges/pets/choose", {}),
        ("/sign-out", {}),
    ],
)
def test_forms_of_other_sites_do_nothing(site: Site, path: str, fields: dict[str, str]) -> None:
    boss = site.visitor("boss")
    proof = boss.get("/account").proof
    before = boss.get("/users").text.count("<tr>")
    assert boss.post(path, fields).status == 403
    assert boss.post(path, fields | {"proof": "0" * 64}).status == 403
    assert boss.post(path, fields | {"proof": site.visitor("ann").get("/account").proof}).status == 403
    assert boss.post(path, fields | {"proof": proof}, Origin="https://evil.example").status == 403
    assert boss.post(path, fields | {"proof": proof}, Sec_Fetch_Site="cross-site").status == 403
    assert boss.post(path, fields | {"proof": proof}, Origin="null").status == 403
    assert boss._send("POST", path, json.dumps(fields).encode(), {"Content-Type": "application/json"}).status == 403
    assert boss.upload(path, fields, "f", b"").status == 403
    assert boss.get("/users").text.count("<tr>") == before
    assert boss.get("/challenges/pets").status == 200
    stranger = site.visitor()
    assert stranger.post("/sign-in", {"token": site.tokens["ann"]}, Sec_Fetch_Site="cross-site").status == 403


def test_participants_are_refused_what_organisers_do(site: Site) -> None:
    ann = site.visitor("ann")
    proof = ann.get("/account").proof
    page = ann.get("/challenges/pets").text
    for word in ("/edit", "/rescore", "/delete", "/users", "Organise"):
        assert word not in page
    assert ann.get("/users").status == 403
    for path in ("/users", "/users/bob/remove", "/challenges/pets/delete", "/challenges/pets/edit", "/new"):
        answer = ann.post(path, {"proof": proof, "name": "x", "metrics": "spice", "sets": "a/b"})
        assert answer.status in {403, 400}
    assert ann.post("/tokens", {"proof": proof, "user": "boss", "name": "x"}).status == 403
    assert "only organisers" in ann.post("/challenges/pets/rescore", {"proof": proof}).text


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        ("CHALLENGE_ROLE_VIEWER", set()),
        ("CHALLENGE_ROLE_ORGANISER", {"/edit", "/rescore", "/references"}),
        ("CHALLENGE_ROLE_OWNER", {"/edit", "/rescore", "/references", "/delete"}),
        ("CHALLENGE_ROLE_UNSPECIFIED", set()),
    ],
)
def test_members_of_a_challenge_see_what_their_role_allows(role: str, shown: set[str], site: Site) -> None:
    method = "/spicegraph.challenge.v1.ChallengeService/SetChallengeMember"
    sent = json.dumps({"challenge": "pets", "user": "bob", "role": role}).encode()
    headers = {"Authorization": f"Bearer {site.tokens['boss']}", "Content-Type": "application/json"}
    assert Visitor(site.port)._send("POST", method, sent, headers).status == 200
    page = site.visitor("bob").get("/challenges/pets").text
    assert {
        word for word in ("/edit", "/rescore", "/references", "/delete") if f"/challenges/pets{word}" in page
    } == shown
    assert ("Your submissions" in page) == (role == "CHALLENGE_ROLE_UNSPECIFIED")
    assert not any(path in page for path in ('href="/users"', 'href="/new"'))  # these are the whole server's


def test_hosts_find_the_form_for_new_challenges(site: Site) -> None:
    boss = site.visitor("boss")
    made = boss.post("/users", {"proof": boss.get("/users").proof, "name": "host", "role": "USER_ROLE_HOST"}).text
    found = re.search(r"sgu_[A-Za-z0-9_\-]+", made)
    assert found is not None
    host = Visitor(site.port)
    host.sign_in(found.group())
    page = host.get("/challenges").text
    assert 'href="/new"' in page
    assert 'href="/users"' not in page
    assert host.get("/new").status == 200


def test_strangers_words_are_text_on_every_page(site: Site) -> None:
    boss = site.visitor("boss")
    pages = [boss.get(path) for path in ("/challenges", "/challenges/pets", "/challenges/pets/edit", "/users")]
    pages.append(boss.get(f"/challenges/{quote(NASTY, safe='')}"))
    pages.append(boss.get(f"/sign-in?next={quote(NASTY)}"))
    for page in pages:
        assert "<script>hacked" not in page.text
        assert "<img src=x" not in page.text
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page.text)
        assert policy is not None
        assert "default-src 'none'" in html.unescape(policy.group(1))
        assert "unsafe" not in policy.group(1)
        assert page.headers["X-Frame-Options"] == "DENY"
    assert html.escape(NASTY)[:20] in pages[1].text
    assert '<a href="https://example.org/data.zip?a=1&amp;b=2"' in pages[1].text


def test_a_submission_is_uploaded_and_what_is_wrong_is_said(site: Site) -> None:
    ann = site.visitor("ann")
    path = "/challenges/pets/submissions"
    fields = {"proof": ann.get("/account").proof, "method": NASTY, "split": "val"}
    refused = ann.upload(path, fields, "results.json", b"[]")
    assert refused.status == 400
    assert "references" in refused.text  # the challenge lacks them
    told = json.loads(ann.upload(path, fields, "results.json", b"[]", Accept="application/json").text)
    assert "references" in told["error"]
    assert ann.upload(path, fields, "", b"").status == 400
    assert ann.upload(path, {}, "results.json", b"[]").status == 403
    assert ann.get("/submissions/nothing").status == 404


def test_the_leaderboard_is_a_page_and_files(site: Site) -> None:
    ann = site.visitor("ann")
    page = ann.get("/challenges/pets/leaderboard")
    assert (page.status, "Nobody stands here yet" in page.text) == (200, True)
    board = json.loads(ann.get("/challenges/pets/leaderboard?format=json").text)
    assert (board[0]["split"], board[0]["rows"]) == ("val", [])
    assert ann.get("/challenges/pets/leaderboard?of=test/c5&format=csv").text.startswith("split,")
    assert ann.get("/challenges/pets/leaderboard?of=none/c5").status == 404


def test_organisers_change_a_challenge(site: Site) -> None:
    boss = site.visitor("boss")
    form = {
        "proof": boss.get("/challenges/pets/edit").proof,
        "title": "Pets",
        "description": "two\r\nlines",
        "open_time": "2026-01-01T08:30",
        "close_time": "2026-01-02T08:30",
        "daily_limit": "3",
        "total_limit": "0",
        "score_visibility val": "after-close",
        "leaderboard_visibility val": "organisers",
    }
    assert boss.post("/challenges/pets/edit", form).status == 303
    page = boss.get("/challenges/pets").text
    assert "2026-01-01 08:30 UTC" in page
    assert re.search(r"Submissions a day</dt><dd>3</dd>", page)
    assert '<td class="left">organisers</td>' in page
    edit = boss.get("/challenges/pets/edit").text
    assert 'value="2026-01-02T08:30"' in edit
    assert "<option selected>after-close</option>" in edit
    assert site.visitor("ann").get("/challenges/pets/leaderboard").status == 403
    assert boss.post("/challenges/pets/edit", form | {"open_time": "tomorrow"}).status == 400
    restored = {"title": f"Pets {NASTY}", "description": "", "open_time": "", "close_time": ""}
    everyone = {"score_visibility val": "always", "leaderboard_visibility val": "always"}
    assert boss.post("/challenges/pets/edit", form | restored | everyone).status == 303
    assert (
        "without an end" in boss.get("/challenges/pets").text
        or "references are missing" in boss.get("/challenges/pets").text
    )


# --- what is shown of scores ------------------------------------------------------------------------------------


def submission(number: int, spice: float | None, *, user: str = "ann") -> pb.Submission:
    scores = [
        pb.CorpusScore(name="SPICE", value=spice, low=0.1, high=0.3),
        pb.CorpusScore(name="SPICE_Color", value=0.2),
        pb.CorpusScore(name="SPICE_Size"),
    ]
    made = pb.Submission(
        id=f"s{number}",
        challenge="pets",
        user=user,
        method=NASTY,
        file_name=NASTY,
        description=NASTY,
        state=pb.SUBMISSION_STATE_SUCCEEDED,
        scores=[pb.SplitScores(split="val", reference_set="c5", image_count=12, scores=scores)],
        splits=["val"],
    )
    made.end_time.seconds = 1
    return made


def test_a_submission_s_page_shows_scores_categories_and_the_change() -> None:
    view = views.submission_page(submission(2, 0.21), submission(1, 0.2), own=True)
    part = view["parts"][0]
    assert [(cell["name"], cell["text"], cell["change"]) for cell in part["scores"]] == [("SPICE", "0.2100", "+0.0100")]
    assert [(cell["short"], cell["text"], cell["change"]) for cell in part["categories"]] == [
        ("Color", "0.2000", "0.0000"),
        ("Size", "–", ""),
    ]
    page = render_page(
        "submission.html.j2",
        {"me": None, "proof": "p", "submission": view, "faults": (), "fault_count": 0, "next": ""}
        | {"me": type("Me", (), {"organises": False, "creates": False, "name": NASTY}), "may": views.rights(0)},
        script=static("web.js"),
        served=True,
        package=PACKAGE,
    )
    assert "<img" not in page
    assert "<script>hacked" not in page
    assert "0.1000 to 0.3000" in page


def test_rows_compare_each_submission_with_its_user_s_one_before() -> None:
    rows = views.submission_rows(
        [submission(4, 0.3), submission(3, 0.5, user="bob"), submission(2, None), submission(1, 0.2)],
        pb.Challenge(settings=pb.ChallengeSettings(primary_score="SPICE")),
    )
    assert [row["change"] for row in rows] == ["", "", "", ""] or rows[0]["change"] == ""
    assert rows[0]["main"]["text"] == "0.3000"
    rows = views.submission_rows(
        [submission(2, 0.3), submission(1, 0.2)], pb.Challenge(settings=pb.ChallengeSettings(primary_score="SPICE"))
    )
    assert [row["change"] for row in rows] == ["+0.1000", ""]


# --- what participants learn ----------------------------------------------------------------------------------------

IMAGES = 40
ERRORS = [
    {"kind": "color_confused", "title": "Color confused", "words": [], "columns": [], "images": 30},
    {
        "kind": "color_confused",
        "title": "Color confused",
        "words": ["blue", NASTY],
        "columns": ["References say", "Candidate says"],
        "images": 20,
    },
]


def store(
    site: Site,
    challenge: str,
    user: str,
    spice: float,
    day: int,
    *,
    images: int = 30,
    method: str = NASTY,
    words: Sequence[str] = (),
) -> str:
    """Store a submission with scores and errors, as scoring leaves it; return its id."""
    with Database(site.place) as database, database.writing() as session:
        found = session.scalars(select(schema.Challenge).where(schema.Challenge.name == challenge)).one()
        split = found.splits[0]
        moment = datetime(2026, 1, day, tzinfo=UTC)
        made = schema.Submission(
            id=secrets.token_hex(8),
            challenge_id=found.id,
            user_id=session.scalars(select(schema.User.id).where(schema.User.name == user)).one(),
            method=method[:100],
            description="",
            file_name="captions_val_x_results.json",
            split=split.name,
            sha256=secrets.token_hex(32),
            file_bytes=1,
            state=State.SUCCEEDED,
            created=moment,
            ended=moment,
            failure_message="",
            fault_count=0,
        )
        set_id = split.reference_sets[0].id
        errors = [row | {"images": images if not row["words"] else row["images"]} for row in ERRORS]
        errors += [ERRORS[1] | {"words": ["blue", word]} for word in words]
        run = schema.ScoringRun(
            job_id=secrets.randbits(40), version="0", signatures={}, created=moment, errors={str(set_id): errors}
        )
        for place, (name, value) in enumerate([("SPICE", spice), ("SPICE_Color", 0.25), ("Bleu_1", 0.5)]):
            run.scores.append(
                schema.RunScore(
                    reference_set_id=set_id, position=place, name=name, value=value, low=0.1, high=0.9, images=200
                )
            )
        made.files.append(schema.SubmissionFile(split_id=split.id, file="0" * 64))
        made.runs.append(run)
        session.add(made)
        session.flush()
        return str(made.id)


@pytest.fixture(scope="module")
def scored(site: Site) -> dict[str, list[str]]:
    """The submissions by user of a challenge whose organiser has filled in every field of the form."""
    boss = site.visitor("boss")
    form = {
        "proof": boss.get("/new").proof,
        "name": "scored",
        "title": "Scored",
        "metrics": "spice, bleu",
        "sets": "val/c5",
        "daily_limit": "5",
        "total_limit": "20",
        "spice_text": "coco",
        "graph_style": "scene",
        "empty": "zero",
        "score_visibility ": "always",
        "leaderboard_visibility ": "always",
        "digits": "2",
        "category_images": "60",
        "equal_percent": "70",
        "error_images": "20",
    }
    assert boss.post("/new", form | {"error_images": "9"}).status == 400
    assert boss.post("/new", form | {"digits": "-2"}).status == 400
    assert boss.post("/new", form).status == 303
    references = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in range(IMAGES)],
        "annotations": [{"image_id": number, "caption": "a secret blue teapot"} for number in range(IMAGES)],
    }
    target = {"proof": form["proof"], "set": "val/c5"}
    assert boss.upload("/challenges/scored/references", target, "r.json", json.dumps(references).encode()).status == 303
    return {
        "ann": [store(site, "scored", "ann", 0.204, 1, images=20), store(site, "scored", "ann", 0.301, 3)],
        "bob": [store(site, "scored", "bob", 0.302, 2)],
    }


def test_the_form_of_a_new_challenge_has_what_the_command_has(site: Site, scored: dict[str, list[str]]) -> None:
    rules = html.unescape(site.visitor("ann").get("/challenges/scored").text)
    shown = dict(re.findall(r"<dt[^>]*>([^<]*)</dt><dd>([^<]*)</dd>", rules))
    assert shown["Decimal places"].startswith("Participants see scores rounded to 2 decimal places.")
    assert shown["Images of a category"] == "A category is shown if at least 60 images have it."
    assert shown["Images of an error"] == "An error is shown if at least 20 images have it."
    assert shown["Equal captions (%)"] == "A file is refused if more than 70 % of its captions are the same."
    assert shown["Empty captions"] == "An empty caption scores 0."
    assert (shown["Scene graphs"], shown["SPICE parses"]) == ("as people draw them", "the tokens of the COCO toolkit")
    other = html.unescape(site.visitor("ann").get("/challenges/pets").text)
    assert "Scene graphs</dt><dd>as SPICE</dd>" in other
    boss = site.visitor("boss")
    edit = boss.get("/challenges/scored/edit")
    assert re.search(r'name="error_images" type="text" value="20"', edit.text)
    form = {"proof": edit.proof, "title": "Scored", "digits": "2", "daily_limit": "5", "total_limit": "20"}
    form |= {"category_images": "60", "equal_percent": "70"}
    assert boss.post("/challenges/scored/edit", form | {"error_images": "-1"}).status == 303
    assert "Images of an error</dt><dd>Errors are not shown.</dd>" in boss.get("/challenges/scored").text
    own = f"/submissions/{scored['ann'][0]}"
    assert "What goes wrong" not in site.visitor("ann").get(own).text
    assert "What goes wrong" in boss.get(own).text
    assert boss.post("/challenges/scored/edit", form | {"error_images": "20"}).status == 303


def test_participants_see_kinds_of_errors_and_their_change(site: Site, scored: dict[str, list[str]]) -> None:
    ann = site.visitor("ann")
    page = ann.get(f"/submissions/{scored['ann'][1]}").text
    assert re.search(r"Color confused</td><td>30</td>.*?<td>20</td>", page, re.DOTALL)
    assert "references say: blue; candidate says: " + html.escape(NASTY)[:20] in page
    assert "teapot" not in page
    assert "<img" not in page
    assert site.visitor("bob").get(f"/submissions/{scored['ann'][1]}").status == 404
    boss = site.visitor("boss")
    form = {"proof": boss.get("/account").proof, "title": "Scored", "digits": "2", "daily_limit": "5"}
    assert boss.post("/challenges/scored/edit", form | {"total_limit": "20", "error_images": "30"}).status == 303
    page = ann.get(f"/submissions/{scored['ann'][1]}").text
    assert "Color confused</td><td>30</td>" in page
    assert "references say" not in page
    assert boss.post("/challenges/scored/edit", form | {"total_limit": "20", "error_images": "20"}).status == 303


def test_a_leaderboard_shows_ties_and_its_history(site: Site, scored: dict[str, list[str]]) -> None:
    ann = site.visitor("ann")
    page = ann.get("/challenges/scored/leaderboard").text
    assert page.count("> tied</span>") == 2
    assert "Scores are rounded to 2 decimal places. Ranks are by the rounded scores until the challenge closes" in page
    for_members = site.visitor("boss").get("/challenges/scored/leaderboard").text  # by exact scores
    assert "> tied</span>" not in for_members
    assert "Scores are rounded" not in for_members
    assert re.findall(r"<td class=\"ranked\" data-value=\"0\.3\">([\d.]+)", page) == ["0.30", "0.30"]
    board = json.loads(ann.get("/challenges/scored/leaderboard?format=json").text)[0]
    assert [(point["user"], point["value"]) for point in board["history"]] == [("ann", 0.2), ("bob", 0.3), ("ann", 0.3)]
    assert "ann, 01-03: 0.300 (place 1 of 2)" in page
    proof = ann.get("/account").proof
    assert ann.post(f"/submissions/{scored['ann'][1]}/choose", {"proof": proof}).status == 303
    board = json.loads(ann.get("/challenges/scored/leaderboard?format=json").text)[0]
    assert [(point["user"], point["value"]) for point in board["history"]] == [("bob", 0.3), ("ann", 0.3)]


def test_a_public_board_needs_no_account(site: Site, scored: dict[str, list[str]]) -> None:
    boss, stranger = site.visitor("boss"), site.visitor()
    board = "/challenges/scored/leaderboard"
    assert stranger.get(board).headers["Location"] == f"/sign-in?next={board}"
    form = {"proof": boss.get("/account").proof}
    assert boss.post("/challenges/scored/edit", form | {"public_board": "yes"}).status == 303
    page = stranger.get(board)
    assert (page.status, "bob" in page.text, "Sign out" in page.text) == (200, True, False)
    assert 'class="own"' not in page.text
    assert 'class="own"' in site.visitor("ann").get(board).text
    for other in ("/challenges/pets/leaderboard", "/challenges/none/leaderboard"):  # nobody learns which there are
        assert stranger.get(other).headers["Location"] == f"/sign-in?next={other}"
    assert stranger.get("/challenges/scored").status == 303
    assert boss.post("/challenges/scored/edit", form | {"leaderboard_visibility val": "organisers"}).status == 303
    assert stranger.get(board).status == 403
    hidden = {"public_board": "no", "leaderboard_visibility val": "always"}
    assert boss.post("/challenges/scored/edit", form | hidden).status == 303


def test_pages_say_what_they_show(site: Site, scored: dict[str, list[str]]) -> None:
    """The sentences that explain a page to who has not read the manual."""
    first, last = scored["ann"]
    said = {
        ("", "/sign-in"): ["You stay signed in for twelve hours", "keeps a session, not the token"],
        ("ann", "/challenges/scored"): [
            "called <code>captions_SPLIT_METHOD_results.json",
            "unless you choose the split",
            "Phase limit a day",
            "you may submit",
        ],
        ("ann", "/challenges/scored/leaderboard"): [
            "A click on a column’s name sorts by it.",
            "One submission of each user stands here",
            "Scores are rounded to 2 decimal places.",
        ],
        ("ann", "/challenges/scored/leaderboard/bob"): ["Place 1 of 2 by SPICE", "95 % bootstrap intervals"],
        ("boss", "/challenges/scored/leaderboard/bob"): ["Place 1 of 2 by SPICE"],
        ("ann", f"/submissions/{first}"): ["Put this on the leaderboard"],
        ("ann", f"/submissions/{last}"): ["Look at it on the leaderboard", "Take mine off the leaderboards"],
        ("boss", f"/submissions/{last}"): ["Error report, val"],
        ("boss", "/users"): ["its members share limits and a row"],
    }
    for (name, path), sentences in said.items():
        page = html.unescape(site.visitor(name).get(path).text)
        assert [sentence for sentence in sentences if sentence not in page] == [], (name, path)
    assert "your submission before" in site.visitor("ann").get(f"/submissions/{last}").text
    assert "Error report" not in site.visitor("ann").get(f"/submissions/{last}").text


def test_an_empty_file_is_told_once(site: Site, scored: dict[str, list[str]]) -> None:
    ann = site.visitor("ann")
    fields = {"proof": ann.get("/account").proof, "split": "val"}
    answer = ann.upload("/challenges/scored/submissions", fields, "captions_val_x_results.json", b"")
    assert answer.status == 400
    assert answer.text.count("the file is empty") == 1
    assert "chunk" not in answer.text


def test_participants_get_the_images_of_a_split(site: Site, scored: dict[str, list[str]]) -> None:
    ann = site.visitor("ann")
    assert "/challenges/scored/images?split=val" in ann.get("/challenges/scored").text
    answer = ann.get("/challenges/scored/images?split=val")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="image_info_scored_val.json"'
    assert json.loads(answer.text)["images"][:1] == [{"id": 0, "file_name": "0.jpg"}]
    assert len(json.loads(answer.text)["images"]) == IMAGES
    assert "teapot" not in answer.text
    assert ann.get("/challenges/scored/images?split=none").status == 404
    boss = site.visitor("boss")
    form = {"proof": boss.get("/account").proof, "title": "Scored", "daily_limit": "5", "total_limit": "20"}
    assert boss.post("/challenges/scored/edit", form | {"open_time": "2999-01-01T00:00"}).status == 303
    early = ann.get("/challenges/scored/images")
    assert (early.status, "opens at 2999" in early.text) == (400, True)
    assert boss.get("/challenges/scored/images").status == 200
    assert boss.post("/challenges/scored/edit", form | {"open_time": ""}).status == 303


# --- in Chromium ------------------------------------------------------------------------------------------------

PROBES = [
    opening.format(code=f"window.hacked={number}")
    for number, opening in enumerate(
        [
            "<script>{code}</script>", "<img src=x onerror={code}>", "<svg onload={code}>", "<body onload={code}>",
            "<iframe srcdoc='<script>parent.{code}</script>'>", "<a href=javascript:{code}>x</a>", "<math><mi/xlink:href=javascript:{code}>",
            "<details open ontoggle={code}>", "<video><source onerror={code}>", "<input autofocus onfocus={code}>",
            "'><script>{code}</script>", '"><script>{code}</script>', "--><script>{code}</script>", "</title><script>{code}</script>",
            "</style><script>{code}</script>", "</textarea><script>{code}</script>", "</script><script>{code}</script>",
            "]]><script>{code}</script>", "{{{{constructor.constructor('{code}')()}}}}", "${{{code}}}", "javascript:{code}",
            '" onmouseover={code} x="', "' onfocus={code} autofocus x='", "` onload={code} `", '\\\\"><img src=x onerror={code}>',
            "&lt;script&gt;{code}&lt;/script&gt;", "%3Cscript%3E{code}%3C/script%3E", "<scr<script>ipt>{code}</script>",
            "<SCRIPT>{code}</SCRIPT>", "<script src=data:,{code}></script>", "<object data=data:text/html,<script>{code}</script>>",
            "<embed src=javascript:{code}>", "<form action=javascript:{code}><button>", "<meta http-equiv=refresh content=0;url=javascript:{code}>",
            "<base href=javascript:{code}//>", "<link rel=stylesheet href=javascript:{code}>", "<style>@import 'javascript:{code}'</style>",
            "<template><script>{code}</script></template>", "<noscript><p title='</noscript><img src=x onerror={code}>'>",
            "\u2028<script>{code}</script>", 'https://example.org/"onmouseover={code}', "<x onclick={code} id=content>",
        ]
    )
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::aiohttp.multipart.BadContentDispositionHeader")  # of semicolons in names of files
def test_no_probe_fires_on_any_page_in_chromium(
    site: Site, start_browser: Callable[..., Browser], tmp_path: Path
) -> None:
    boss = site.visitor("boss")
    proof = boss.get("/account").proof
    form = {"proof": proof, "name": "probes", "title": PROBES[0] + PROBES[11], "metrics": "spice", "sets": "val/c5"}
    form |= {"description": "\n".join(PROBES), "daily_limit": "0", "total_limit": "0"}
    assert boss.post("/new", form).status == 303
    references = {"images": [{"id": 1}], "annotations": [{"image_id": 1, "caption": PROBES[0]}]}
    target = {"proof": proof, "set": "val/c5"}
    made = boss.upload("/challenges/probes/references", target, "r.json", json.dumps(references).encode())
    assert made.status == 303, made.text
    ann = site.visitor("ann")
    proof = ann.get("/account").proof
    places = []
    for number, probe in enumerate(PROBES):
        fields = {"proof": proof, "method": probe.replace("\u2028", "")[:100], "description": probe, "split": "val"}
        results = json.dumps([{"image_id": 1, "caption": f"{probe} {number}"}]).encode()
        name = probe.replace('"', "").replace("\u2028", "").replace("/", "")[:60] + ".json"
        sent = ann.upload("/challenges/probes/submissions", fields, name, results)
        assert sent.status == 303, sent.text
        places.append(sent.headers["Location"])
    # With scores, and every probe as a method and as the word of an error:
    told = [
        store(site, "probes", user, spice, 1 + spot, method=probe, words=PROBES[spot::2])
        for spot, (user, spice, probe) in enumerate([("ann", 0.2, PROBES[1]), ("bob", 0.3, PROBES[2])])
    ]
    told = told[:1]  # ann's
    browser = start_browser()
    for visitor in (ann, boss):
        name, _, value = visitor.cookie.partition("=")
        site_url = f"http://127.0.0.1:{site.port}"
        browser.call("Network.setCookie", name=name, value=value, url=site_url)
        pages = ["/challenges", "/challenges/probes", "/account", *places]
        pages += ["/challenges/probes/leaderboard", *(f"/submissions/{one}" for one in told)]
        if visitor is boss:
            pages = ["/challenges/probes", "/challenges/probes/edit", "/users", *places[:5]]
            pages += ["/challenges/probes/leaderboard", f"/submissions/{told[0]}"]
        for path in pages:
            browser.errors.clear()
            browser.call("Page.navigate", url=site_url + path)
            browser.until(f"location.pathname === {path!r} && document.readyState === 'complete'")
            assert browser.js("window.hacked") is None, path
            assert browser.js("document.querySelectorAll('main script, main img, main iframe').length") == 0
            assert browser.errors == [], path
    assert len(PROBES) >= 40


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False)])
def test_every_page_is_sound_in_chromium(
    site: Site, scored: dict[str, list[str]], start_browser: Callable[..., Browser], axe: str, *, width: int, dark: bool
) -> None:
    browser = start_browser()
    browser.look(width=width, dark=dark)
    origin = f"http://127.0.0.1:{site.port}"
    board = "/challenges/scored/leaderboard"
    own = ["/challenges", "/challenges/scored", board, f"{board}?score=Bleu_1", f"/submissions/{scored['ann'][1]}"]
    pages = {
        "": ["/sign-in"],
        "ann": [*own, "/account", "/challenges/none"],
        "boss": [*own, "/users", "/new", "/challenges/scored/edit"],
    }
    for name, paths in pages.items():
        if name:
            cookie, _, value = site.visitor(name).cookie.partition("=")
            browser.call("Network.setCookie", name=cookie, value=value, url=origin)
        for path in paths:
            browser.visit(origin + path)
            if path == "/challenges/none":
                browser.errors.clear()  # of the status 404, which is right
            browser.check(axe, origin)


@pytest.mark.slow
def test_the_keyboard_is_enough(
    site: Site, scored: dict[str, list[str]], start_browser: Callable[..., Browser], tmp_path: Path
) -> None:
    """Sign in, go to a challenge, upload, come back, choose what stands on the board, sort it, sign out."""
    browser = start_browser()
    origin = f"http://127.0.0.1:{site.port}"
    results = tmp_path / "captions_val_keys_results.json"
    results.write_text(json.dumps([{"image_id": n, "caption": f"a cup number {n}"} for n in range(IMAGES)]))
    browser.visit(f"{origin}/challenges")
    browser.tab_to("input[name=token]")
    browser.type(site.tokens["bob"])
    browser.enter()
    assert browser.js("location.pathname") == "/challenges"
    browser.tab_to("a[href='/challenges/scored']")
    browser.enter()
    browser.tab_to("input[name=method]")
    browser.type("by keyboard")
    browser.tab_to("input[type=file]")  # what the system's own dialogue would do:
    chosen = browser.call("Runtime.evaluate", expression="document.activeElement")["result"]["objectId"]
    browser.call("DOM.setFileInputFiles", files=[str(results)], objectId=chosen)
    browser.tab_to("form[data-upload] button")
    browser.enter()
    assert browser.js("location.pathname").startswith("/submissions/")
    assert browser.js("document.querySelector('h1').textContent") == "by keyboard"
    browser.tab_to("form[action$='/cancel'] button")
    browser.enter()
    assert "cancelled" in browser.js("document.querySelector('header').textContent")
    browser.tab_to("a[href='/challenges/scored']")
    browser.enter()
    browser.tab_to(f"a[href='/submissions/{scored['bob'][0]}']")
    browser.enter()
    assert browser.js("document.querySelector('button.first')") is None  # it stands there: nothing to choose
    browser.tab_to("form[action$='/choose'] button")
    browser.enter()
    browser.visit(f"{origin}/submissions/{scored['bob'][0]}")
    browser.tab_to("form[action$='/choose'] button.first")
    browser.enter()
    assert browser.js("location.pathname") == "/challenges/scored/leaderboard"
    browser.tab_to("th:nth-child(2) .sort")
    for order in ("ascending", "descending"):
        browser.key("Enter", code=13, text="\r")
        assert browser.js("document.querySelector('th:nth-child(2)').ariaSort") == order
    assert browser.js("[...document.querySelectorAll('.board tbody tr td:nth-child(2)')].map(c => c.textContent)") == [
        "bob you",  # whose row is marked
        "ann",
    ]
    browser.visit(f"{origin}/account")
    browser.tab_to("form[action='/sign-out'] button")
    browser.enter()
    assert browser.js("location.pathname") == "/sign-in"
    assert browser.errors == []


def test_a_challenge_says_what_happens_to_empty_captions() -> None:
    for empty, words in (
        (scores_pb2.EMPTY_CANDIDATES_ZERO, "An empty caption scores 0."),
        (scores_pb2.EMPTY_CANDIDATES_REFUSE, "A file with an empty caption is refused."),
    ):
        page = views.challenge_page(
            pb.Challenge(name="x", settings=pb.ChallengeSettings(empty=empty)), datetime.now(UTC)
        )
        assert ("Empty captions", words) in [row[:2] for row in page["rules"]]
