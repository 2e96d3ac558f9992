"""Scoring on a Ray cluster: what one machine gives, also when a node dies; clear errors; Parquet out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scorer import Item, score
from spicegraph_scorer.metrics import METRICS, WITH_FREQUENCIES, make_metrics
from spicegraph_scorer.readers import Columns
from spicegraph_scorer.scoring import resources
from spicegraph_service.cli import main
from spicegraph_service.engines.object_store import files_in, write_object
from spicegraph_service.engines.ray import RayOptions, score_on_ray
from spicegraph_service.engines.ray_workers import PATH, TEXT, RowReader

ITEMS = [
    Item(
        number,
        f"A {color} {animal} sits on a mat .",
        (f"The {animal} is {color} and sits on {count} mats.", f"{count} {color} {animal}s"),
    )
    for number, (color, animal, count) in enumerate(
        (color, animal, count)
        for color in ("brown", "red", "white", "green", "small")
        for animal in ("dog", "cat", "horse", "bus")
        for count in ("two", "three", "four", "five", "ten")
    )
]
FILES = 4


def record(item):
    return {"image_id": item.id, "candidate": item.candidate, "references": list(item.references)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    (folder / "lines").mkdir()
    (folder / "lines" / "_SUCCESS").write_text("")
    part = len(ITEMS) // FILES
    for number in range(FILES):
        lines = [json.dumps(record(item)) for item in ITEMS[number * part : (number + 1) * part]]
        (folder / "lines" / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n\n")
    pq.write_table(pa.Table.from_pylist([record(item) for item in ITEMS]), folder / "table.parquet", row_group_size=20)
    faulty = [record(ITEMS[0]), record(ITEMS[0]) | {"image_id": 7, "candidate": " "}, [1]]
    (folder / "faulty.jsonl").write_text("\n".join(map(json.dumps, faulty)) + "\nno json\n")
    (folder / "latin.jsonl").write_bytes('{"image_id": 1, "candidate": "a caf\u00e9"}'.encode("latin-1"))
    return folder


@pytest.fixture(scope="module")
def found(folder):
    program = Path(__file__).with_name("ray_two_nodes.py")
    done = subprocess.run([sys.executable, program, folder], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def expected(found):
    return json.loads(json.dumps(score(ITEMS, found["metrics"]).to_dict()))


@pytest.mark.model
def test_a_killed_node_costs_time_only(found, expected):
    assert found["nodes"] == [2, 1]
    assert 0 < found["killed_after"][0] < len(ITEMS)
    assert found["lines"] == expected


@pytest.mark.model
def test_parquet_gives_the_same(found, expected):
    assert found["table"] == expected


@pytest.mark.model
def test_faults_are_listed_with_their_file(found):
    faults = [
        "faulty.jsonl (image_id 7), candidate: is empty",
        "faulty.jsonl: '[1]' is no object",
        "faulty.jsonl: 'no json' is not JSON (JSON is malformed: invalid character (byte 4))",
    ]
    assert sorted(line.strip() for line in found["faulty"].splitlines()[1:]) == faults


@pytest.mark.model
def test_text_that_is_not_utf8_is_one_clear_error(found):
    assert "latin.jsonl: is not UTF-8" in found["latin"]


def test_a_local_cache_can_t_serve_a_cluster():
    with pytest.raises(InputError, match="redis"):
        score_on_ray("x.jsonl", ["spice"], RayOptions("en_caption", cache="parses.db"))


def test_a_cluster_that_is_not_there_is_one_clear_error(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    program = "import sys; from spicegraph_service.cli import main; sys.exit(main())"
    arguments = ["score", "x.jsonl", "--engine", "ray", "--metrics", "bleu"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "RAY_ADDRESS=127.0.0.1:1: the Ray cluster can't be reached" in done.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--references", "x.json", "--partial"], "--references, --partial"),
        (["--graphs"], "--graphs"),
        (["--candidates", "best"], "--candidates"),
        (["--format", "spice"], "--format spice"),
    ],
)
def test_what_ray_can_t_do_is_refused(options, named, capsys):
    assert main(["score", "x.jsonl", "--engine", "ray", *options]) == 2
    assert f"--engine ray has no {named}:" in capsys.readouterr().err


def test_rows_of_text_are_items_or_faults():
    lines = [json.dumps(record(item)) for item in ITEMS[:3]]
    rows = pa.table({TEXT: [lines[0], "  ", lines[1], "{"], PATH: ["s3/a.jsonl"] * 4})
    items, faults = RowReader().items(rows)
    assert items == tuple(ITEMS[:2])
    assert [fault.item for fault in faults] == ["a.jsonl"]


def test_rows_of_a_table_are_items_by_the_names_of_their_columns():
    rows = pa.table(
        {"key": ["1", "x"], "out": ["a dog", "a cat"], "r1": ["b", "c"], "r2": ["d", None], PATH: ["t"] * 2}
    )
    items, faults = RowReader(Columns("key", "out", ("r1", "r2"))).items(rows)
    assert items == (Item(1, "a dog", ("b", "d")), Item("x", "a cat", ("c",)))
    assert not faults


def test_the_metrics_with_frequencies_are_those_whose_signature_names_them():
    metrics = make_metrics(METRICS, resources("en_caption"))
    named = {name for name, metric in metrics.items() if "document frequencies" in metric.signature()}
    assert named == WITH_FREQUENCIES


def test_files_come_in_order_by_path_or_url(tmp_path):
    for name in ("b.jsonl", "a.jsonl", ".hidden", "_SUCCESS"):
        (tmp_path / name).write_text("x")
    for place in (str(tmp_path), f"file://{tmp_path}", f"local://{tmp_path}"):  # the last is fsspec's
        _, paths = files_in(place)
        assert [Path(path).name for path in paths] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("place", ["/no/such/file", "nosuch://bucket/x"])
def test_no_files_are_one_clear_error(place):
    with pytest.raises(InputError, match=place):
        files_in(place)


def test_an_object_is_written_to_a_url(tmp_path):
    write_object(f"file://{tmp_path}/scores.parquet", b"content")
    assert (tmp_path / "scores.parquet").read_bytes() == b"content"


def test_parquet_output_has_a_row_an_item(folder, tmp_path, capsys):
    path = tmp_path / "scores.parquet"
    source = str(folder / "table.parquet")
    assert main(["score", source, "--metrics", "bleu,rouge,cider", "-o", str(path)]) == 0
    table = pq.read_table(path)
    result = score(ITEMS, ("bleu", "rouge", "cider"))
    assert table.column("image_id").to_pylist() == [item.id for item in ITEMS]
    assert table.drop(["image_id"]).to_pylist() == result.item_scores()
    about = json.loads(table.schema.metadata[b"spicegraph"])
    assert about["corpus"] == result.corpus
    assert "CIDEr" in capsys.readouterr().out


def test_parquet_needs_a_file_and_a_url_needs_parquet(capsys):
    assert main(["score", "x.jsonl", "--format", "parquet"]) == 2
    assert main(["score", "x.jsonl", "-o", "s3://bucket/x.json"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: --format parquet is no text: name a file with -o",
        "error: s3://bucket/x.json: only Parquet is written to a URL; give --format parquet, or a file",
    ]
