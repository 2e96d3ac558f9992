"""Boards by domain: scores of the images of each, the same in calls, CSV, JSON and on pages; the page of a method."""

from __future__ import annotations

import csv
import io
import json
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import grpc
import pytest

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.client import ChallengeClient
from spicegraph_challenge.pages.tables import to_csv, to_json
from spicegraph_challenge.sandbox.files import read_images
from spicegraph_challenge.sandbox.tasks import WORK, Prepare
from spicegraph_scorer import Item, score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers import RunningServer

METRICS = ("bleu", "rouge", "cider")
WORDS = ["dog", "cat", "cup", "pen", "bus", "cow", "egg", "hat", "owl", "van"]
REFERENCES = {key: [f"a {word} on a table", f"the table has a {word} on it"] for key, word in enumerate(WORDS)}
DOMAINS = {"in-domain": [1, 3, 4, 8], "near-domain": [0, 2, 5, 6, 7, 9]}
CAPTIONS = {
    "ann": {key: f"a {word} on a {'table' if key % 3 else 'floor'}" for key, word in enumerate(WORDS)},
    "bob": {key: f"the {word} and a table" for key, word in enumerate(WORDS)},
    "cid": {key: f"a {word} sits on table" for key, word in enumerate(WORDS)},
}


def tagged(domains: dict[str, list[int]]) -> dict[str, object]:
    """COCO annotations as nocaps has them: every image says its domain."""
    of = {key: name for name, keys in domains.items() for key in keys}
    return {
        "images": [{"id": key, **({"domain": of[key]} if key in of else {})} for key in REFERENCES],
        "annotations": [{"image_id": key, "caption": text} for key, texts in REFERENCES.items() for text in texts],
    }


@pytest.fixture(scope="module")
def nocaps(
    tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., RunningServer], tools: type
) -> Iterator[tuple[RunningServer, int, ChallengeClient, ChallengeClient]]:
    """A challenge with a public board that two users have submitted to; the first organiser and the first user."""
    folder = tmp_path_factory.mktemp("domains")
    arena = tools.arena(str(folder / "challenges.db"), folder, start_server)
    port = tools.free_port()
    server = arena.start("--store=memory", f"--http=127.0.0.1:{port}")
    with ChallengeClient(server.address, arena.organiser()) as boss:
        boss.create_challenge(
            tools.challenge(
                "nocaps",
                metrics=list(METRICS),
                primary_score="CIDEr",
                secondary_score="ROUGE_L",
                public_board=True,
                category_images=5,
            )
        )
        boss.upload_references("nocaps", "val", "c5", arena.write("r.json", tagged(DOMAINS)))
        for user, captions in CAPTIONS.items():
            rows = [{"image_id": key, "caption": text} for key, text in captions.items()]
            path = arena.write(f"captions_val_{user}_results.json", rows)
            client = ChallengeClient(server.address, boss.create_user(user))
            links = {"team": f"Team {user}", "paper_url": "https://example.org/<paper>?a=1&b=2".replace("<paper>", "p")}
            sent, _ = client.submit("nocaps", path, **links)
            *_, done = client.watch(sent.id)
            assert done.state == pb.SUBMISSION_STATE_SUCCEEDED
            assert (done.team, done.paper_url) == tuple(links.values())
            if user == "ann":
                ann = client
        yield server, port, boss, ann
        ann.close()


def values(scores: pb.SplitScores | pb.LeaderboardRow) -> dict[str, float]:
    return {row.name: row.value for row in scores.scores}


def test_a_domain_is_scored_as_if_its_images_were_all(
    nocaps: tuple[RunningServer, int, ChallengeClient, ChallengeClient],
) -> None:
    *_, boss, _ = nocaps
    assert [
        list(each.domains) for each in boss.get_challenge("nocaps").challenge.settings.splits[0].reference_sets
    ] == [list(DOMAINS)]
    (sent,) = boss.list_submissions("nocaps", user="ann")
    for part in sent.scores:
        keys = DOMAINS[part.domain] if part.domain else list(REFERENCES)
        items = [Item(key, CAPTIONS["ann"][key], tuple(REFERENCES[key])) for key in sorted(keys)]
        assert values(part) == pytest.approx(score(items, METRICS).corpus, abs=1e-12)
        assert part.image_count == len(keys)
    assert [part.domain for part in sent.scores] == ["", *DOMAINS]
    for domain in ("", *DOMAINS):
        board = boss.leaderboard("nocaps", domain=domain)
        (row,) = (row for row in board.rows if row.user == "ann")
        assert values(row) == values(next(part for part in sent.scores if part.domain == domain))
        assert (board.domain, list(board.domains)) == (domain, list(DOMAINS))


def test_participants_see_no_domain_of_few_images(
    nocaps: tuple[RunningServer, int, ChallengeClient, ChallengeClient],
) -> None:
    *_, ann = nocaps
    assert list(ann.leaderboard("nocaps").domains) == ["near-domain"]
    (sent,) = ann.list_submissions("nocaps")
    assert [part.domain for part in sent.scores] == ["", "near-domain"]
    with pytest.raises(grpc.RpcError, match="there is no domain 'in-domain'; there are near-domain"):
        ann.leaderboard("nocaps", domain="in-domain")


def test_every_form_of_a_board_has_the_same_numbers(
    nocaps: tuple[RunningServer, int, ChallengeClient, ChallengeClient],
) -> None:
    _, port, boss, ann = nocaps
    boards = [boss.leaderboard("nocaps", domain=domain) for domain in ("", *DOMAINS)]
    wanted = [
        (board.domain, row.rank, row.user, row.team, values(row)["CIDEr"]) for board in boards for row in board.rows
    ]
    assert [
        (row["domain"], int(row["rank"]), row["user"], row["team"], float(row["CIDEr"]))
        for row in csv.DictReader(io.StringIO(to_csv(boards)))
    ] == wanted
    assert [
        (board["domain"] or "", row["rank"], row["user"], row["team"], row["scores"]["CIDEr"]["value"])
        for board in json.loads(to_json(boards))
        for row in board["rows"]
    ] == wanted
    shown = ann.leaderboard("nocaps", domain="near-domain")
    assert (
        json.loads(page(port, "?domain=near-domain&format=json"))[0]["rows"] == json.loads(to_json([shown]))[0]["rows"]
    )
    text = page(port, "?domain=near-domain")
    assert 'aria-current="page" href="?of=val/c5&amp;score=CIDEr&amp;domain=near-domain">near-domain</a>' in text
    assert "all images</a>" in text
    assert "in-domain</a>" not in text
    for row in shown.rows:
        assert f"{values(row)['CIDEr']:.4f}" in text


def test_the_page_of_a_method_has_its_paper_and_all_its_scores(
    nocaps: tuple[RunningServer, int, ChallengeClient, ChallengeClient],
) -> None:
    _, port, _, ann = nocaps
    assert 'href="/challenges/nocaps/leaderboard/ann?of=val/c5"' in page(port, "")
    text = page(port, "/ann?of=val/c5")
    assert "Team ann" in text
    assert 'href="https://example.org/p?a=1&amp;b=2" rel="noopener noreferrer nofollow">Paper</a>' in text
    for domain in ("", "near-domain"):
        (row,) = (row for row in ann.leaderboard("nocaps", domain=domain).rows if row.user == "ann")
        assert f"{values(row)['CIDEr']:.4f}" in text
    assert page(port, "/nobody", status=404)


def page(port: int, path: str, status: int = 200) -> str:
    """Return what somebody without an account sees of the board."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/challenges/nocaps/leaderboard{path}")
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == status, text
    return text


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://",
        "https://a b",
        'https://x/"onload',
        "https://u@x/",
        "https://x/\0",
        "https://x/\u202e",
    ],
)
def test_an_address_that_is_none_is_refused(
    nocaps: tuple[RunningServer, int, ChallengeClient, ChallengeClient], url: str, tmp_path: Path
) -> None:
    *_, ann = nocaps
    path = tmp_path / "captions_val_x_results.json"
    path.write_text("[]")
    for field in ("paper_url", "code_url"):
        with pytest.raises(grpc.RpcError, match=rf"settings\.{field}: expected an address"):
            ann.submit("nocaps", path, **{field: url})


def test_the_second_score_ranks_equal_rows(nocaps: tuple[RunningServer, int, ChallengeClient, ChallengeClient]) -> None:
    """By Bleu_4, which is 0 for two, the one with the better ROUGE_L is first, though it came later."""
    *_, boss, _ = nocaps
    board = boss.leaderboard("nocaps", score="Bleu_4", domain="in-domain")
    assert [values(row)["Bleu_4"] for row in board.rows][1:] == pytest.approx([0, 0], abs=1e-7)
    assert [row.user for row in board.rows] == ["ann", "cid", "bob"]
    boss.update_challenge("nocaps", pb.ChallengeSettings(secondary_score="CIDEr"))
    with pytest.raises(grpc.RpcError, match=r"settings\.secondary_score: there is no score 'SPICE'"):
        boss.update_challenge("nocaps", pb.ChallengeSettings(secondary_score="SPICE"))


@pytest.mark.parametrize(
    ("domains", "fault"),
    [
        ({}, ""),
        ({"a": list(REFERENCES)}, ""),
        ({"a": [0, 1]}, "annotations: image 2 lacks a domain, which others have (8 lack one)"),
        ({"a/b": list(REFERENCES)}, "annotations: the domain 'a/b' is not 1 to 40 letters, digits, '.', '_' or '-'"),
    ],
)
def test_domains_are_read_off_the_annotations(tmp_path: Path, domains: dict[str, list[int]], fault: str) -> None:
    path, output = tmp_path / "annotations.json", tmp_path / "references"
    path.write_text(json.dumps(tagged(domains)))
    prepared = WORK[Prepare](Prepare(str(path), str(output)))
    assert prepared.faults == ((fault,) if fault else ())
    if not fault:
        assert prepared.domains == {name: len(keys) for name, keys in domains.items()}
        assert {image.domain for image in read_images(output)} == (set(domains) or {""})


@pytest.mark.parametrize("domain", ["7", "[1]"])
def test_a_domain_that_is_no_text_is_a_fault(tmp_path: Path, domain: str) -> None:
    path = tmp_path / "annotations.json"
    image = f'{{"id": 1, "domain": {domain}}}'
    path.write_text(f'{{"images": [{image}], "annotations": [{{"image_id": 1, "caption": "a dog"}}]}}')
    prepared = WORK[Prepare](Prepare(str(path), str(tmp_path / "references")))
    assert prepared.faults[0].startswith("annotations: image 1, domain: is a ")
