"""`spicegraph challenge` as organisers and participants type it, and the leaderboard's pages."""

from __future__ import annotations

import csv
import gc
import io
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.cli.connection import _word
from spicegraph_challenge.messages import value_of
from spicegraph_challenge.model.schema import Role
from spicegraph_challenge.pages.tables import to_csv, to_html, to_json
from spicegraph_service.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from arenas import Arena
    from servers import RunningServer

pytestmark = pytest.mark.slow

NASTY = "<script>hacked=1</script> \"quotes\" & 'more' \x1b[2J"


@pytest.mark.model
def test_a_challenge_from_beginning_to_end(
    sqlite_arena: Arena, tools: type, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = sqlite_arena
    server = arena.start()
    monkeypatch.setenv("SPICEGRAPH_SERVER", server.address)

    def run(*arguments: object, token: str | None = None, status: int = 0) -> str:
        if token is not None:
            monkeypatch.setenv("SPICEGRAPH_TOKEN", token)
        assert main(["challenge", *map(str, arguments)]) == status
        captured = capsys.readouterr()
        return captured.out if status != 2 else captured.err

    organiser = run("init", "me", "--challenges", arena.place).strip()
    assert "there is a user 'me' already" in run("init", "me", "--challenges", arena.place, status=2)
    references = arena.write("references.json", tools.annotations(tools.small))
    place = f"val/c2={references}"
    options = ("--metrics", "rouge,spice", "--rank-by", "ROUGE_L", "--total", "2", "--closes", "2999-01-01")
    options += ("--category-images", "1")
    assert "SPLIT/SET=FILE" in run("create", "pets", "--references", "x", *options, token=organiser, status=2)
    wrong = arena.write("wrong.json", {"annotations": []})
    said = run("create", "pets", "--references", f"val/c2={wrong}", *options, status=2)
    assert f"{wrong}: the annotations cannot be used (1 fault)" in said
    for bad, reason in {
        ("--rank-by", "CIDEr"): "--rank-by: there is no score 'CIDEr'; the metrics give ROUGE_L, SPICE, SPICE_Relation",
        ("--opens", "2999-01-02"): "--closes: is not after the opening",
        ("--title", "x" * 201): "--title: at most 200 characters",
        ("--digits", "many"): "--digits: expected 1 to 9, got 'many'",
        ("--references", "a+b/c5=" + str(references)): "--references: 1 to 40 letters",
    }.items():
        said = run("create", "pets", "--references", place, *options, *bad, status=2)
        assert said.startswith(f"error: {reason}")
        assert "challenge." not in said
    assert json.loads(run("show", "--format", "json")) == []  # nothing is left of it
    run("create", "pets", "--references", place, *options, "--title", "Pets and things")
    shown = run("show", "pets")
    assert "Pets and things" in shown
    assert "left now: 2" in shown
    assert re.search(r"Equal captions \(%\)\s+A file is refused if more than 50 %", shown)
    first, second = run("user", "add", "ann").strip(), run("user", "add", "bob").strip()
    assert "there is a user 'ann' already" in run("user", "add", "ann", status=2)
    assert re.search(r"ann\s+participant", run("user", "list"))
    run("member", "pets", "bob", "viewer")
    assert run("members", "pets") == "bob\tviewer\nme\towner\n"
    run("member", "pets", "bob", "none")
    assert "'me' is the last owner" in run("member", "pets", "me", "none", status=2)
    assert run("user", "add", "hilda", "--host", "--expires", "90d").startswith("sgu_")
    assert "--expires: 2020-01-01 is over already" in run("user", "token", "x", "--expires", "2020-01-01", status=2)
    assert "give one of them" in run("user", "add", "x", "--host", "--organiser", status=2)
    assert re.search(r"hilda\s+host\s+\S+\s+first", run("user", "list"))
    assert run("user", "add", "carl", "--team", "rockets").startswith("sgu_")
    assert "rockets" in run("user", "list")
    assert "--team: 'ann', or a name" in run("user", "team", "carl", "ann", status=2)
    run("user", "team", "carl")
    assert "rockets" not in run("user", "list")

    results = arena.write("captions_val_mine_results.json", tools.results("x"))
    shown = run("submit", "pets", results, token=first)
    assert "SUCCEEDED" in shown
    assert "SPICE_Object" in shown
    one = json.loads(run("submissions", "pets", "--format", "json"))[0]
    assert (one["method"], one["state"]) == ("mine", "SUBMISSION_STATE_SUCCEEDED")
    faulty = arena.write("captions_val_bad_results.json", [{"image_id": 0, "caption": ""}])
    shown = run("submit", "pets", faulty, status=1)
    assert "INVALID_FILE" in shown
    assert "is empty" in shown
    failed = json.loads(run("submissions", "pets", "--format", "json"))[0]
    assert len(json.loads(run("faults", failed["id"]))) == len(tools.small)
    assert "has ended" in run("cancel", failed["id"], status=2)
    assert "no such" in run("submit", "pets", "missing.json", status=2).lower()

    assert "only organisers" in run("report", one["id"], "-o", arena.folder / "r.html", token=second, status=2)
    assert "there is no submission" in run("status", one["id"], status=2)
    assert "there is no challenge" in run("leaderboard", "nope", status=2)
    run("submit", "pets", arena.write("any.json", tools.results("y")), "--split", "val", "--method", "bob's")
    assert run("leaderboard", "pets").count("2026") <= 2
    page = arena.folder / "board.html"
    run("leaderboard", "pets", "-o", page)
    assert "bob&#39;s" in page.read_text()
    assert [row["user"] for row in csv.DictReader(io.StringIO(run("leaderboard", "pets", "--format", "csv")))] == [
        "ann",
        "bob",
    ]
    run("choose", "pets")
    assert len(json.loads(run("leaderboard", "pets", "--format", "json"))[0]["rows"]) == 1

    report = arena.folder / "report.html"
    run("report", one["id"], "-o", report, token=organiser)
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert run("rescore", "pets").strip() == "0"
    assert "--rank-by: there is no score 'CIDEr'" in run("update", "pets", "--rank-by", "CIDEr", status=2)
    empty = arena.write("captions_val_empty_results.json", "")
    assert run("submit", "pets", empty, status=2) == f"error: {empty}: the file is empty\n"
    run("update", "pets", "--rank-by", "SPICE_Color", "--digits", "3")
    stored = json.loads(run("show", "pets", "--format", "json"))["challenge"]["settings"]
    numbers = {"digits": 3, "category_images": 1, "equal_percent": 50, "error_images": 10}
    assert {name: stored[name] for name in numbers} == numbers
    run("update", "pets", "--total", "0", "--leaderboard", "organisers", "--closes", "never")
    assert "shown to participants" in run("leaderboard", "pets", token=first, status=2)
    more = ("--references", place, "--references", f"test/c2={references}", "--metrics", "rouge")
    run("create", "more", *more, token=organiser)
    assert (
        json.loads(run("show", "more", "--format", "json"))["challenge"]["settings"]["spice_text"]
        == "SPICE_TEXT_WRITTEN"
    )
    said = run("create", "words", *more, "--spice-text", "coco", status=2)
    assert "--spice-text: none of the chosen metrics uses it" in said
    for name, options, tokens in (("coco", (), True), ("plain", ("--spice-text", "written"), False)):
        run("create", name, "--references", place, *options)
        assert ("the tokens of the COCO toolkit" in run("show", name)) is tokens
        assert re.search(r"Scene graphs\s+as SPICE", run("show", name))
    run("create", "scenes", "--references", place, "--metrics", "spice", "--graph-style", "scene")
    assert re.search(r"Scene graphs\s+as people draw them", run("show", "scenes"))
    run("update", "more", "--split", "test", "--leaderboard", "organisers")
    shown = json.loads(run("leaderboard", "more", "--format", "json", token=first))
    assert [shown_board["split"] for shown_board in shown] == ["val"]  # what is hidden is left out, unless it is named
    assert "shown to participants" in run("leaderboard", "more", "--split", "test", status=2)
    run("user", "remove", "ann", token=organiser)
    assert "token is not valid" in run("show", token=first, status=2)
    assert "a user's token is needed" in run("show", token="", status=2)
    monkeypatch.setenv("SPICEGRAPH_SERVER", "127.0.0.1:1")
    assert "no server answers there" in run("show", token=organiser, status=2)
    assert server.stop() == 0


def board() -> pb.GetLeaderboardResponse:
    made = pb.GetLeaderboardResponse(title=NASTY, challenge="c", split="val", reference_set="c5", score="SPICE")
    for place, value in enumerate((0.4, 0.3, None)):
        row = made.rows.add(user=f"user-{place}", method=("=1+1", NASTY, "plain")[place])
        row.create_time.FromJsonString(f"2026-01-0{place + 1}T12:00:00Z")
        row.origin.version = "0.1.0"
        row.origin.outdated = place == 1
        row.origin.score_time.CopyFrom(row.create_time)
        row.scores.add(name="SPICE", value=value, low=None if value is None else value - 0.1, high=value)
        row.scores.add(name="SPICE_Color", value=0.1 * place)
        if value is not None:
            row.rank = place + 1
    return made


def test_the_page_holds_what_it_shows_and_nothing_runs_but_its_own() -> None:
    page = to_html([board()])
    assert "<script>hacked" not in page
    assert "&lt;script&gt;hacked" in page
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org\S*", "", page)
    assert "script-src 'sha256-" in page
    assert "1 of 3 rows were scored by another version" in page
    assert '<td data-value="">–</td>' in page  # an undefined rank
    assert "> tied</span>" not in page
    equal = board()
    equal.rows[1].scores[0].value = 0.4
    assert to_html([equal]).count("> tied</span>") == 2


def test_json_and_csv_hold_the_same() -> None:
    (data,) = json.loads(to_json([board()]))
    assert [row["rank"] for row in data["rows"]] == [1, 2, None]
    assert data["rows"][2]["scores"]["SPICE"] == {"value": None, "low": None, "high": None}
    rows = list(csv.DictReader(io.StringIO(to_csv([board()]))))
    assert [row["rank"] for row in rows] == ["1", "2", ""]
    assert rows[0]["method"] == "'=1+1"  # no spreadsheet computes it
    assert rows[1]["method"] == NASTY
    assert rows[1]["outdated"] == "yes"
    assert float(rows[1]["SPICE"]) == data["rows"][1]["scores"]["SPICE"]["value"]
    assert to_json([]) == "[]\n"
    assert to_html([])


@pytest.mark.timeout(120)
def test_columns_sort_by_a_click(tmp_path: Path) -> None:
    """In Chromium: the page's own script orders the rows, and the undefined stay last either way."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("the pages' tests need Chromium: apt-get install chromium")
    page = tmp_path / "board.html"
    content = to_html([board()])
    # The page's policy lets no other script in, so the clicks go into a copy without one.
    clicks = """<script>
      const order = () => [...document.querySelectorAll("tbody tr")].map((row) => row.cells[1].textContent).join(" ");
      const seen = [order()];
      const [rank, user, spice] = document.querySelectorAll("th button");
      for (const button of [spice, spice, user, user, rank]) { button.click(); seen.push(order()); }
      seen.push(document.querySelectorAll("th[aria-sort]").length);
      document.body.textContent = seen.join("|");
    </script></body>"""
    page.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", content).replace("</body>", clicks))
    done = subprocess.run(
        [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}/profile",
            "--dump-dom",
            str(page),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    up, down = "user-0 user-1 user-2", "user-1 user-0 user-2"
    assert "|".join([up, down, up, up, "user-2 user-1 user-0", up, "1"]) in done.stdout


def test_servers_that_start_together_make_one_schema(own_arena: Arena) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        databases = list(pool.map(lambda _: own_arena.database(), range(4)))
    for database in databases[1:]:
        database.close()
    with databases[0] as database:
        assert database.migrate(dry_run=True) == []


def test_a_database_of_another_version_is_left_alone(own_arena: Arena) -> None:
    from sqlalchemy import text

    from spicegraph_parser.errors import DataError

    with own_arena.database() as database, database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DataError, match="another version's: it has the schema 9999, not 0001"):
        own_arena.database()
    gc.collect()  # a connection that stayed open would say so here


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("mysql://host/x", "an SQLite file or a postgresql:// URL"),
        ("memory", "is a file"),
        ("postgresql://127.0.0.1:1/nothing", "the challenge database"),
        ("/proc/nothing/x.db", "No such file"),
    ],
)
def test_a_wrong_place_is_one_clear_error(place: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["challenge", "init", "me", "--challenges", place]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_a_url_needs_a_folder(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--challenges=postgresql://127.0.0.1:1/nothing", wait=False)
    assert server.process.wait(60) == 2
    assert "--challenge-files" in server.log.read_text()


def test_words_of_fields_and_values_of_words() -> None:
    assert _word("challenge.settings.splits[0].name", None) == "--references"
    assert _word("chunk", "captions.json") == "captions.json"
    assert value_of(pb.UserRole.DESCRIPTOR, Role.HOST) == pb.USER_ROLE_HOST
