"""Scoring on a Ray cluster: what one machine gives, also when a node dies; clear errors; Parquet out; S3 and Redis."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from ray.exceptions import RaySystemError, WorkerCrashedError

from spicegraph_parser.errors import DataError, InputError
from spicegraph_scale.corpus import (
    PATH,
    TEXT,
    BlockScorer,
    CorpusJob,
    Keep,
    RowReader,
    ScoredBlock,
    SeenIds,
    check_rows,
    hashes_of,
)
from spicegraph_scale.engine import ABOUT, clear_errors, packed, score_on_ray, unpacked_rows
from spicegraph_scale.objects import files_in, new_folder
from spicegraph_scorer import Item, score
from spicegraph_scorer.core.data import MetricData
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import METRICS, make_metrics
from spicegraph_scorer.readers import Columns
from spicegraph_scorer.scoring import resources
from spicegraph_service.cli import main
from spicegraph_service.engines import Task
from spicegraph_service.engines.objects import flat_scores, write_object

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

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


@contextmanager
def listening(command, port):
    """Run a server until something listens at its port, and to the end of the block."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def s3():
    """The environment that leads to an S3 server of this machine."""
    port = free_port()
    with listening([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@pytest.fixture(scope="module")
def bucket(s3, folder):
    """A bucket with the items."""
    s3fs = s3_filesystem(s3, allow_bucket_creation=True)
    s3fs.create_dir("bucket")
    for path in [*(folder / "lines").glob("*.jsonl"), folder / "table.parquet"]:
        with s3fs.open_output_stream(f"bucket/{path.relative_to(folder)}") as stream:
            stream.write(path.read_bytes())
    return s3fs


def s3_filesystem(s3, **options):
    return fs.S3FileSystem(
        access_key=s3["AWS_ACCESS_KEY_ID"],
        secret_key=s3["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=s3["AWS_ENDPOINT_URL"],
        region=s3["AWS_DEFAULT_REGION"],
        **options,
    )


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory):
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("redis-server is not installed")
    port = free_port()
    command = [server, "--port", str(port), "--save", "", "--dir", str(tmp_path_factory.mktemp("redis"))]
    with listening(command, port):
        yield f"redis://127.0.0.1:{port}/0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    for name in ("lines", "twice", "empty"):
        (folder / name).mkdir()
    (folder / "lines" / "_SUCCESS").write_text("")
    part = len(ITEMS) // FILES
    for number in range(FILES):
        lines = [json.dumps(record(item)) for item in ITEMS[number * part : (number + 1) * part]]
        (folder / "lines" / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n\n")
    pq.write_table(pa.Table.from_pylist([record(item) for item in ITEMS]), folder / "table.parquet", row_group_size=20)
    faulty = [record(ITEMS[0]), record(ITEMS[0]) | {"image_id": 7, "candidate": " "}, [1]]
    (folder / "faulty.jsonl").write_text("\n".join(map(json.dumps, faulty)) + "\nno json\n")
    (folder / "latin.jsonl").write_bytes('{"image_id": 1, "candidate": "a caf\u00e9"}'.encode("latin-1"))
    for name, ids in {"a": (1, 2, 3), "b": ("1", 3, 4), "c": (3, 4.5)}.items():
        lines = [json.dumps(record(ITEMS[0]) | {"image_id": image_id}) for image_id in ids]
        (folder / "twice" / f"{name}.jsonl").write_text("\n" + "\n".join(lines))
    (folder / "empty" / "a.jsonl").write_text("\n \n")
    return folder


@pytest.fixture(scope="module")
def found(folder, s3, bucket, redis_url):
    program = Path(__file__).with_name("ray_two_nodes.py")
    command = [sys.executable, program, folder, "s3://bucket", redis_url]
    environment = os.environ | s3
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def expected(found):
    return json.loads(json.dumps(score(ITEMS, found["metrics"]).to_dict()))


@pytest.mark.model
@pytest.mark.full("ray")
def test_a_killed_node_costs_time_only(found, expected):
    assert found["nodes"] == [2, 1]
    assert 0 < found["killed_after"][0] < len(ITEMS)
    assert found["lines"] == {key: value for key, value in expected.items() if key != "items"}


@pytest.mark.model
@pytest.mark.full("ray")
def test_the_parts_of_a_folder_hold_every_item_once(found, expected, folder):
    about = json.loads((folder / "parts" / ABOUT).read_text())
    assert {"parts": about.pop("parts"), **about} == {"parts": parts_in(folder / "parts"), **found["lines"]}
    assert rows_of(folder / "parts") == flat_rows(expected)


def parts_in(folder):
    """The names of a folder's parts, in the order of the ids of their first rows, which is that of the items."""
    first = {path.name: pq.read_table(path)["image_id"][0].as_py() for path in folder.glob("*.parquet")}
    return sorted(first, key=first.__getitem__)


def rows_of(folder):
    """The rows of a folder's parts, as any reader of Parquet sees them."""
    return sorted(pq.read_table(folder).to_pylist(), key=lambda row: row["image_id"])


def flat_rows(expected):
    return [{"image_id": row["image_id"], **dict(flat_scores(row["scores"]))} for row in expected["items"]]


@pytest.mark.model
@pytest.mark.full("ray")
def test_parquet_gives_the_same(found, expected):
    assert found["table"] == expected


@pytest.mark.model
@pytest.mark.full("ray")
def test_faults_are_listed_with_their_file(found):
    faults = [
        "faulty.jsonl (image_id 7), candidate: is empty",
        "faulty.jsonl: '[1]' is not an object",
        "faulty.jsonl: 'no json' is not JSON (expecting value, line 1, column 1)",
    ]
    assert sorted(line.strip() for line in found["refused"]["faulty.jsonl"].splitlines()[1:]) == faults


@pytest.mark.model
@pytest.mark.full("ray")
def test_ids_that_two_files_share_are_found(found, folder):
    assert found["refused"]["twice"].splitlines() == [
        f"{folder}/twice: 3 faults",
        "  c.jsonl, image_id: is a number, expected an integer or a string",
        "  b.jsonl (image_id 3), id: is also the id of an item of a.jsonl",
        "  c.jsonl (image_id 3), id: is also the id of an item of a.jsonl",
    ]


@pytest.mark.model
@pytest.mark.full("ray")
def test_no_items_are_one_clear_error(found, folder):
    assert found["refused"]["empty"] == f"{folder}/empty: contains no items"


@pytest.mark.model
@pytest.mark.full("ray")
def test_text_that_is_not_utf8_is_one_clear_error(found):
    assert "latin.jsonl: is not UTF-8" in found["refused"]["latin.jsonl"]


@pytest.mark.model
@pytest.mark.full("ray")
def test_what_a_worker_says_arrives(found):
    assert "for the metric bleu, tokenizer is ptb-coco" in found["told"]


@pytest.mark.model
@pytest.mark.full("ray")
def test_a_bucket_is_read_and_written(found, bucket):
    assert found["bucket"] == [0, 0]
    expected = score(ITEMS, ("spice", "cider"))
    for place in ("bucket/out/scores.parquet", "bucket/parts"):
        rows = pq.read_table(place, filesystem=bucket).to_pylist()
        assert sorted(rows, key=lambda row: row["image_id"]) == flat_rows(expected.to_dict())
    metadata = pq.read_schema("bucket/out/scores.parquet", filesystem=bucket).metadata
    with bucket.open_input_stream(f"bucket/parts/{ABOUT}") as stream:
        abouts = json.loads(metadata[b"spicegraph"]), json.loads(stream.read())
    assert all(about["corpus"] == expected.corpus for about in abouts)


@pytest.mark.model
@pytest.mark.full("ray")
def test_a_second_run_with_a_shared_cache_parses_nothing(found):
    expected = score(ITEMS, ("spice",)).corpus
    assert found["cached"]["corpora"] == [expected, expected]
    captions = {text for item in ITEMS for text in (item.candidate, *item.references)}
    first, second = found["cached"]["puts"]
    assert first == second >= len(captions)


def test_a_cache_that_can_t_be_reached_is_one_clear_error(tmp_path, capsys):
    source = tmp_path / "x.jsonl"
    source.write_text(json.dumps(record(ITEMS[0])))
    url = f"redis://127.0.0.1:{free_port()}/0"
    assert main(["score", str(source), "--engine", "ray", "--cache", url]) == 2
    assert capsys.readouterr().err.startswith("error: Redis fails: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["s3://bucket/nothing"], "s3://bucket/nothing: there is no such file, or no file in it"),
        (["s3://elsewhere/lines"], "s3://elsewhere/lines: there is no such file, or no file in it"),
        (["s3://bucket/lines", "-o", "s3://elsewhere/x.parquet"], "s3://elsewhere/x.parquet: can't be written"),
        (["s3://bucket/lines", "-o", "s3://elsewhere/x/"], "s3://elsewhere/x/: can't be made a folder"),
        (["s3://bucket/lines", "-o", "s3://bucket/full/"], "s3://bucket/full/: there are files in it already"),
        (["s3://bucket/lines", "-o", "s3://bucket/full", "--format", "parquet"], "s3://bucket/full: is a folder"),
        (["s3://bucket/lines", "-o", "s3://bucket/lines/"], "s3://bucket/lines/: this would overwrite an input"),
    ],
)
def test_what_a_bucket_has_not_is_one_clear_error(options, message, bucket, s3, monkeypatch, capsys):
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    with bucket.open_output_stream("bucket/full/part.jsonl") as stream:
        stream.write(b"{}\n")
    assert main(["score", *options, "--engine", "ray", "--metrics", "bleu"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert error.count("\n") == 1


def test_an_endpoint_that_is_not_there_is_one_clear_error(s3, monkeypatch, capsys):
    for name, value in {**s3, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}.items():
        monkeypatch.setenv(name, value)
    start = time.perf_counter()
    assert main(["score", "s3://bucket/lines", "--engine", "ray", "--metrics", "bleu"]) == 2
    assert "s3://bucket/lines: can't be read" in capsys.readouterr().err
    assert time.perf_counter() - start < 60


def test_a_local_cache_can_t_serve_a_cluster():
    with pytest.raises(InputError, match="redis"):
        score_on_ray(Task("x.jsonl", ("spice",), cache="parses.db"))


def test_a_cluster_that_is_not_there_is_one_clear_error(folder, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    program = "import sys; from spicegraph_service.cli import main; sys.exit(main())"
    arguments = ["score", str(folder / "lines"), "--engine", "ray", "--metrics", "bleu"]
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
    assert f"--engine ray does not support {named}\n" in capsys.readouterr().err


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


def test_the_metrics_that_take_frequencies_are_those_whose_signature_names_them():
    metrics = make_metrics(METRICS, resources("en_caption"))
    named = {name for name, metric in metrics.items() if "document frequencies" in metric.signature()}
    assert named == {name for name, entry in METRICS.items() if "frequencies" in entry.kind.needs.data}
    assert named == {name for name, metric in metrics.items() if metric.weigh is not None}
    frozen = DocumentFrequencies.from_references([item.references for item in Corpus(tuple(ITEMS)).tokens])
    assert not any(metrics[name].weighted(frozen).weigh for name in named)


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
        "error: --format parquet is binary and is not printed: name a file with -o",
        "error: s3://bucket/x.json: only Parquet is written to a URL or a folder; give --format parquet, or a file",
    ]


@pytest.mark.parametrize("run", [1, 7, 1000])
def test_repeated_ids_are_found_among_sorted_runs(run, tmp_path):
    ids = [*range(500), *map(str, range(100)), 7, 400, 7]
    seen = SeenIds(tmp_path, run=run)
    for start in range(0, len(ids), 50):
        seen.add(hashes_of(ids[start : start + 50]))
    expected = np.sort(hashes_of([7, 400]))
    found, count = seen.repeated(10)
    assert found.tolist() == expected.tolist()
    assert count == 3
    assert seen.repeated(1)[0].tolist() == expected[:1].tolist()


def test_a_folder_of_parts_needs_ray(tmp_path, capsys):
    source = tmp_path / "x.jsonl"
    source.write_text(json.dumps(record(ITEMS[0])))
    options = ["score", str(source), "--metrics", "bleu", "-o", f"{tmp_path}/parts/"]
    assert main(options) == 2
    assert main([*options, "--format", "json"]) == 2
    assert main([*options, "--engine", "ray", "--confidence"]) == 2
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        f"{tmp_path}/parts/: only --engine ray writes a folder of parts; name a file",
        f"{tmp_path}/parts/: only Parquet is written to a URL or a folder; give --format parquet, or a file",
        "--confidence resamples all items, but a folder of parts is for corpora whose items do not fit in memory: "
        "name a file",
    ]


def lines(items):
    return pa.table({TEXT: [json.dumps(record(item)) for item in items], PATH: ["s3/a.jsonl"] * len(items)})


def actor(**changes):
    """An actor without a cluster."""
    metrics = make_metrics(("spice", "cider"), resources("en_caption"))
    signatures = {name: metric.signature() for name, metric in metrics.items()}
    frequencies = DocumentFrequencies.from_references([item.references for item in Corpus(tuple(ITEMS)).tokens])
    job = CorpusJob(RowReader(), "en_caption", tuple(metrics), None, MetricData(), signatures, {"cider": frequencies})
    return partial(packed, BlockScorer(replace(job, **changes)))


def unpacked(table):
    [value] = unpacked_rows(SimpleNamespace(iter_rows=table.to_pylist))
    return value


@pytest.mark.model
def test_an_actor_writes_the_same_part_again_under_the_same_name(tmp_path):
    scorer = actor(keep=Keep.ROWS, folder=new_folder(f"{tmp_path}/parts/"), text_ids=True)
    parts = [unpacked(scorer(lines(items))).part for items in (ITEMS[:9], ITEMS[9:20], ITEMS[:9])]
    assert parts[0] == parts[2] != parts[1]
    rows = pq.read_table(tmp_path / "parts").to_pylist()
    assert sorted(row["image_id"] for row in rows) == sorted(str(item.id) for item in ITEMS[:20])


@pytest.mark.model
def test_blocks_without_items_are_nothing():
    rows = pa.table({TEXT: [" "], PATH: ["a.jsonl"]})
    assert unpacked(actor()(rows)) == ScoredBlock(0, ())


@pytest.mark.model
def test_a_machine_that_would_compute_other_scores_is_reported():
    scorer = actor(signatures={"spice": {"metric": "spice", "pipeline": "en_caption-0.9-x"}, "cider": {}})
    with pytest.raises(
        DataError, match=r"for the metric spice, pipeline is en_caption-.* there and en_caption-0.9-x here"
    ):
        unpacked(scorer(lines(ITEMS[:2])))


def test_a_machine_with_another_release_is_told():
    check = partial(check_rows, reader=RowReader(), release="0.0.7", weigh=(), keep=False)
    table = packed(check, lines(ITEMS[:2]))
    with pytest.raises(DataError, match=re.escape(f"has spicegraph {version('spicegraph')}, this one 0.0.7")):
        unpacked(table)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RaySystemError("No module named 'spicegraph_service'\nTraceback ..."), "lacks a package (No module named"),
        (
            RaySystemError("\x1b[36mray::f\x1b[39m\nTraceback (most recent call last):\nKeyError: 7"),
            "failed: KeyError: 7",
        ),
        (
            RaySystemError(
                "Traceback:\n  f()\nKeyError: 7\n\nThe above exception was the direct cause of ...\n\nTold: no more"
            ),
            "the Ray cluster failed: KeyError: 7",
        ),
        (WorkerCrashedError(), "the Ray cluster failed: The worker died unexpectedly"),
    ],
)
def test_what_fails_on_the_cluster_is_one_line(error, message):
    with pytest.raises(DataError) as told, clear_errors("x.jsonl"):
        raise error
    assert message in str(told.value)
    assert str(told.value).isprintable()
