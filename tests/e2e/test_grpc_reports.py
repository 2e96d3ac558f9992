"""Error reports over gRPC: every number of the command's JSON, its pages byte for byte, rights, faults, calls that end early."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_status import rpc_status
from prometheus_client import CollectorRegistry

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_api.report.v1.report_pb2_grpc import ReportServiceStub
from spicegraph_api.v1 import scores_pb2
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Resampling
from spicegraph_service.cli import main
from spicegraph_service.client import AsyncClient, Client, item
from spicegraph_service.engines import System
from spicegraph_service.report import ReportOptions, build_report
from spicegraph_service.report.verdict import verdict
from spicegraph_service.rpc.reports import Gauges
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer

pytestmark = pytest.mark.model

COCO = Path(__file__).parents[2] / "examples" / "coco"
FILES = {"human": COCO / "human.json", "retrieval": COCO / "retrieval.json"}
REFERENCES = COCO / "captions_without_first.json"


def items(count: int = 200) -> list[pb.SystemsItem]:
    captions: dict[int, list[str]] = {}
    for row in json.loads(REFERENCES.read_text())["annotations"]:
        captions.setdefault(row["image_id"], []).append(row["caption"])
    systems = [{row["image_id"]: row["caption"] for row in json.loads(f.read_text())} for f in FILES.values()]
    first = [row["image_id"] for row in json.loads(FILES["human"].read_text())]
    return [
        pb.SystemsItem(id=str(i), candidates=[system[i] for system in systems], references=captions[i])
        for i in first[:count]
    ]


def settings(**fields: Any) -> pb.AnalysisSettings:
    fields = {"systems": list(FILES), "resampling": scores_pb2.Resampling(draws=200), "integer_ids": True, **fields}
    return pb.AnalysisSettings(**fields)


def requests(given: pb.AnalysisSettings, sent: list[pb.SystemsItem], size: int = 64) -> Iterator[pb.AnalyzeRequest]:
    yield pb.AnalyzeRequest(settings=given)
    for start in range(0, len(sent), size):
        yield pb.AnalyzeRequest(items=pb.SystemsBatch(items=sent[start : start + size]))


@pytest.fixture(scope="module")
def stub(server: RunningServer) -> Iterator[ReportServiceStub]:
    options = [("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(server.address, options) as channel:
        yield ReportServiceStub(channel)


def analyse(stub: ReportServiceStub, given: pb.AnalysisSettings, sent: list[pb.SystemsItem]) -> pb.ErrorReport:
    *progress, last = stub.Analyze(requests(given, sent), timeout=300)
    assert all(each.WhichOneof("payload") == "progress" for each in progress)
    return last.report


def rendered(stub: ReportServiceStub, form: int, given: pb.AnalysisSettings, sent: list[pb.SystemsItem]) -> bytes:
    def messages() -> Iterator[pb.RenderReportRequest]:
        yield pb.RenderReportRequest(settings=pb.RenderSettings(analysis=given, format=form))  # type: ignore[arg-type]
        yield pb.RenderReportRequest(items=pb.SystemsBatch(items=sent))

    answers = list(stub.RenderReport(messages(), timeout=300))
    sizes = [answer.size for answer in answers if answer.WhichOneof("payload") == "size"]
    page = b"".join(answer.chunk for answer in answers)
    assert sizes == [len(page)]
    return page


def written(tmp_path: Path, name: str, *options: str) -> str:
    output = tmp_path / name
    files = [str(file) for file in FILES.values()]
    assert main(["report", *files, "--references", str(REFERENCES), "-o", str(output), "--draws", "200", *options]) == 0
    return output.read_text(encoding="utf-8")


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """Walk through the JSON, and compare every value with the field of its name."""
    if isinstance(got, Struct):
        got = dict(got)
    if expected is None:
        is_empty = got in (None, "", 0) or (hasattr(got, "__len__") and not got)
        if not is_empty and not (hasattr(got, "ByteSize") and got.ByteSize() == 0):
            yield f"{path}: undefined, got {got!r}"
    elif isinstance(expected, dict):
        for key, value in expected.items():
            yield from differences(value, field(got, key), f"{path}.{key}")
    elif isinstance(expected, list):
        names = [f.name for f in got.DESCRIPTOR.fields] if hasattr(got, "DESCRIPTOR") else None
        if names == ["value"]:
            yield from differences(expected, got.value, path)
            return
        parts = [field(got, name) for name in names][: len(expected)] if names else list(got)
        if len(parts) != len(expected):
            yield f"{path}: {len(expected)} values, got {len(parts)}"
        for number, (one, other) in enumerate(zip(expected, parts, strict=False)):
            yield from differences(one, other, f"{path}[{number}]")
    elif hasattr(got, "DESCRIPTOR"):  # a number that may be undefined
        yield from differences(expected, got.value, path)
    elif got != expected and not (str(got) == str(expected) or is_same_name(expected, got, path)):
        yield f"{path}: {expected!r}, got {got!r}"


def field(message: Any, name: str) -> Any:
    if not hasattr(message, "DESCRIPTOR"):
        return message[int(name) if name.isdecimal() else name]
    known = message.DESCRIPTOR.fields_by_name[name]
    value = getattr(message, name)
    if known.has_presence and known.message_type is None and not message.HasField(name):
        return None
    if known.enum_type is not None:
        prefix = known.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        found = known.enum_type.values_by_number[value].name.removeprefix(prefix).lower()
        return None if found == "unspecified" else found
    return value


STATES = ["matched", "missed", "invented", "near"]


def is_same_name(expected: Any, got: Any, path: str) -> bool:
    return path.endswith((".state", "[1]")) and isinstance(expected, int) and STATES[expected] == got


def test_every_number_of_the_json_is_in_the_message(stub: ReportServiceStub, tmp_path: Path) -> None:
    expected = json.loads(written(tmp_path, "report.json", "--metrics", "spice,bleu"))
    given = settings(metrics=["spice", "bleu"], max_examples=1000)
    report = analyse(stub, given, items())
    made = expected.pop("made")
    assert expected.pop("of_sets") is False  # a server makes no reports of sets
    assert made["command"] is None or made["command"].startswith("spicegraph")
    assert len(report.images) == len(expected["images"]) == 200
    assert list(differences(expected, report)) == []
    assert report.made.time
    rows = [row for system in report.systems for row in system.categories]
    names = {scores_pb2.SpiceCategory.Name(row.spice_category).rpartition("_")[2].capitalize() for row in rows}
    assert names == {row.name for row in rows} == {row.category for row in report.standings}
    assert all(row.spice_category for row in report.standings)


def test_spice_g_is_explained_as_in_score(stub: ReportServiceStub, server: RunningServer) -> None:
    report = analyse(stub, settings(metrics=["spice-g"]), items(2))
    with Client(server.address) as client:
        sent = [item(i.id, i.candidates[0], i.references) for i in items(2)]
        reply = client.score(sent, metrics=["spice-g"], detail=scores_pb2.DETAIL_VERDICTS)
    for image in report.images:
        graded = image.candidates[0].graded
        assert graded.explanation == reply.items[image.item].graded_matches[0]
        assert graded.score == reply.items[image.item]["SPICE-G"]


@pytest.mark.parametrize(("form", "name"), [(pb.PAGE_FORMAT_HTML, "a.html"), (pb.PAGE_FORMAT_MARKDOWN, "a.md")])
def test_pages_are_the_command_s_but_for_date_and_command(
    stub: ReportServiceStub, tmp_path: Path, form: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = written(tmp_path, name)
    inputs = re.findall(r'<dd><bdi>(.+?)</bdi> <span class="dim">SHA-256 <code>(\w+)</code>', expected)
    made = pb.Provenance(inputs=[pb.InputFile(name=file, sha256=digest) for file, digest in inputs])
    page = rendered(stub, form, settings(made=made), items()).decode()
    dated = re.compile(r"(<dt>Made</dt><dd>).*?(</dd>)|<dt>Command</dt>.*?</dd>\n?|\d{4}-\d\d-\d\d")
    assert dated.sub("", page) == dated.sub("", expected)


def test_json_by_rpc_is_the_command_s(stub: ReportServiceStub, tmp_path: Path) -> None:
    expected = json.loads(written(tmp_path, "a.json"))
    page = json.loads(rendered(stub, pb.PAGE_FORMAT_JSON, settings(), items()))
    del page["made"], expected["made"]
    assert page == expected


def test_what_is_left_out_is_not_sent(stub: ReportServiceStub) -> None:
    whole = analyse(stub, settings(), items(40))
    bare = analyse(stub, settings(leave_out=[pb.REPORT_PART_IMAGES, pb.REPORT_PART_GROUPS]), items(40))
    assert 0 < len(whole.images) <= 12
    assert whole.images[0].item == whole.verdict.telling[0].item
    assert any(kind.groups for system in whole.systems for kind in system.kinds)
    for hidden in (bare.images, bare.verdict.telling, bare.gained, bare.lost, bare.synsets):
        assert not hidden
    assert not any(kind.groups for system in bare.systems for kind in system.kinds)
    assert [[k.count for k in s.kinds] for s in bare.systems] == [[k.count for k in s.kinds] for s in whole.systems]
    assert bare.verdict.headline == whole.verdict.headline


def test_eight_systems_name_the_best_of_each_category(stub: ReportServiceStub) -> None:
    names = [f"s{n}" for n in range(8)]
    sent = [pb.SystemsItem(id=i.id, references=i.references, candidates=[*i.candidates] * 4) for i in items(30)]
    report = analyse(stub, settings(systems=names), sent)
    assert [row.category for row in report.standings][:2] == ["All", "Object"]
    assert len(report.standings[0].values) == 8
    assert 2 in report.standings[0].tied
    assert any(point.name == "Best at objects" for point in report.verdict.points)


def test_gates_are_answered_as_data(stub: ReportServiceStub) -> None:
    gates = ["SPICE < -0.005", "Color.f < -0.9", "object_invented.rate > +0.01", "Object.pr < 0"]
    report = analyse(stub, settings(gates=gates), items())
    assert [gate.condition for gate in report.gates] == gates
    assert [gate.passed for gate in report.gates] == [False, True, False, False]
    rates = [next(k.rate for k in s.kinds if k.key == scores_pb2.ERROR_KIND_OBJECT_INVENTED) for s in report.systems]
    assert report.gates[2].difference == pytest.approx(rates[1] - rates[0])
    assert report.gates[2].low < report.gates[2].difference < report.gates[2].high


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"systems": []}, "settings.systems"),
    ({"systems": ["a", "a"]}, "settings.systems[1]"),
    ({"systems": ["a", "\n"]}, "settings.systems[1]"),
    ({"metrics": ["nonsense"]}, "metrics[0]"),
    ({"resampling": scores_pb2.Resampling(draws=-1)}, "settings.resampling.draws"),
    ({"max_examples": 1001}, "settings.max_examples"),
    ({"leave_out": [0]}, "settings.leave_out[0]"),
]


@pytest.mark.parametrize(("fields", "path"), WRONG)
def test_wrong_settings_are_named(stub: ReportServiceStub, fields: dict[str, Any], path: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        analyse(stub, settings(**fields), items(2))
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert path in raised.value.details()


def test_wrong_items_are_named(stub: ReportServiceStub) -> None:
    def fault(*sent: pb.SystemsItem) -> str:
        with pytest.raises(grpc.RpcError) as raised:
            analyse(stub, settings(), list(sent))
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        return raised.value.details()

    good = items(1)[0]
    assert fault() == "items: is empty"
    assert fault(good, pb.SystemsItem(id="2", candidates=["a"], references=["b"])).startswith("items[1].candidates")
    assert fault(good, good).startswith("items[1].id")
    assert fault(pb.SystemsItem(id="x", candidates=["a", "b"], references=["b"])) == "items[0].id: is not an integer"
    assert fault(pb.SystemsItem(id="2", candidates=["a", "b\0"], references=["b"])).startswith("items[0].candidates[1]")
    assert fault(pb.SystemsItem(id="2", candidates=["a", "b"])).startswith("items[0].references")
    with pytest.raises(grpc.RpcError) as raised:
        list(stub.Analyze(iter([pb.AnalyzeRequest(items=pb.SystemsBatch(items=[good]))])))
    assert raised.value.details() == "payload: the first message holds settings"
    with pytest.raises(grpc.RpcError) as raised:
        analyse(stub, settings(gates=["SPICE is low"]), items(2))
    assert "expected NAME < NUMBER" in raised.value.details()


def test_a_cancelled_report_ends_its_process(stub: ReportServiceStub, server: RunningServer) -> None:
    sent = [replace_id(item, n) for n, item in enumerate(items() * 10)]
    call = stub.Analyze(requests(settings(), sent))
    assert next(call).WhichOneof("payload") == "progress"
    assert children(server)
    call.cancel()
    assert analyse(stub, settings(), items(3)).items == 3  # the turn is free again
    assert not children(server)


def replace_id(item: pb.SystemsItem, number: int) -> pb.SystemsItem:
    changed = pb.SystemsItem()
    changed.CopyFrom(item)
    changed.id = str(number)
    return changed


def children(server: RunningServer) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            command = (path.parent / "cmdline").read_text()
        except (OSError, ValueError):
            continue
        if parent == server.process.pid and "pool.reports" in command:
            found.append(command)
    return found


def test_gauges_show_the_systems_of_the_last_reports_and_no_more() -> None:
    registry = CollectorRegistry()
    gauges = Gauges(registry, 2)
    for number in range(4):
        report = pb.ErrorReport()
        system = report.systems.add(name=f"s{number}")
        system.categories.add(name="Color", f=number / 10)
        system.categories.add(name="Size")
        system.kinds.add(key=scores_pb2.ERROR_KIND_COLOR_CONFUSED, rate=0.5)
        gauges.show(report)
    assert registry.get_sample_value("spicegraph_report_f1", {"system": "s3", "category": "Color"}) == 0.3
    assert registry.get_sample_value("spicegraph_report_f1", {"system": "s3", "category": "Size"}) is None
    rate = registry.get_sample_value("spicegraph_report_error_rate", {"system": "s2", "kind": "color_confused"})
    assert rate == 0.5
    samples = [sample for family in registry.collect() for sample in family.samples]
    assert {sample.labels["system"] for sample in samples} == {"s2", "s3"}


def test_the_client_has_rows_sentences_and_pages(server: RunningServer, tmp_path: Path) -> None:
    sent = items(30)
    references = {int(i.id): list(i.references) for i in sent}
    systems = {name: {int(i.id): i.candidates[n] for i in sent} for n, name in enumerate(FILES)}
    told: list[str] = []
    draws = scores_pb2.Resampling(draws=200)
    with Client(server.address) as client:
        analysis = client.analyze(
            systems, references, resampling=draws, progress=lambda what, done, of: told.append(f"{what} {done}/{of}")
        )
        analysis.save(tmp_path / "report.html")
        analysis.save(tmp_path / "report.json")
        with pytest.raises(KeyError, match="is not in all systems"):
            client.analyze({"a": {1: "a dog"}, "b": {2: "a dog"}}, {1: ["a dog"]})
        with pytest.raises(ValueError, match="ends in"):
            analysis.save("report.pdf")
    expected = build_report(
        [System(name, tuple(Item(k, c, tuple(references[k])) for k, c in of.items())) for name, of in systems.items()],
        ReportOptions(resampling=Resampling(200)),
    )
    rows = [dict(row) for row in rows_of(analysis.categories)]
    assert [row["f"] for row in rows] == [row.f for system in expected.systems for row in system.categories]
    kinds = [dict(row) for row in rows_of(analysis.kinds)]
    assert [row["count"] for row in kinds] == [kind.count for system in expected.systems for kind in system.kinds]
    said = verdict(expected)
    assert analysis.verdict == f"{said.headline}. {said.detail}"
    assert "<table>" in analysis._repr_html_()
    assert str(analysis).startswith(analysis.verdict)
    assert json.loads((tmp_path / "report.json").read_text())["verdict"]["headline"] == said.headline
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")

    async def twin() -> str:
        async with AsyncClient(server.address) as client:
            again = await client.analyze(systems, references, resampling=draws)
            await again.save(tmp_path / "report.md")
            return again.verdict

    assert asyncio.run(twin()) == analysis.verdict
    assert (tmp_path / "report.md").read_text().startswith("# human and retrieval")


def rows_of(table: Any) -> list[dict[str, Any]]:
    if isinstance(table, list):
        return table
    return [{k: None if v != v else v for k, v in row.items()} for row in table.to_dict("records")]


def test_the_commands_have_a_server_do_the_work(
    server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(file) for file in FILES.values()]
    common = ["--references", str(REFERENCES)]
    here, there = tmp_path / "here.md", tmp_path / "there.md"
    assert main(["report", *files, *common, "-o", str(here), "--draws", "100"]) == 0
    assert main(["report", *files, *common, "-o", str(there), "--draws", "100", "--server", server.address]) == 0
    assert there.read_text() == here.read_text()
    options = ["--metrics", "spice,bleu", "--format", "json", "--confidence"]
    capsys.readouterr()
    assert main(["score", files[0], *common, *options]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main(["score", files[0], *common, *options, "--server", server.address]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert main(["score", files[0], *common, "--server", server.address, "--explain", "--metrics", "spice-g"]) == 2
    assert main(["report", *files, *common, "--server", server.address, "--cache", "x.db"]) == 2
    assert "--cache: the server has its own" in capsys.readouterr().err
    assert main(["report", *files, *common, "--server", "127.0.0.1:1"]) == 2
    assert "no server answers there" in capsys.readouterr().err


def test_the_whole_report_comes_as_json_over_http(server: RunningServer) -> None:
    lines = [{"settings": {"systems": ["a"], "resampling": {"draws": 50}}}]
    lines += [{"items": {"items": [{"id": "1", "candidates": ["a blue car"], "references": ["a red car"]}]}}]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    url = f"{server.http_url}/spicegraph.report.v1.ReportService/Analyze"
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        report = json.loads(reply.read().splitlines()[-1])["report"]
    kinds = {kind["key"]: kind["count"] for kind in report["systems"][0]["kinds"] if kind.get("count")}
    assert kinds == {"ERROR_KIND_COLOR_CONFUSED": 1, "ERROR_KIND_COLOR_MISSED": 1}


def test_mutated_requests_get_one_status_with_a_reason(stub: ReportServiceStub, server: RunningServer) -> None:
    chance = random.Random(58)
    before = server.rss_mb(server.process.pid)
    failed: list[tuple[grpc.StatusCode, bool]] = []
    whole = [message.SerializeToString() for message in requests(settings(), items(3))]
    with grpc.insecure_channel(server.address) as channel:
        for _ in range(250):
            sent = [bytearray(message) for message in whole]
            for _ in range(chance.randint(1, 4)):
                message = chance.choice(sent)
                message[chance.randrange(len(message))] = chance.randrange(256)
            for name in ("Analyze", "RenderReport"):
                call = channel.stream_stream(f"/spicegraph.report.v1.ReportService/{name}")
                if chance.random() < 0.9:
                    sent[0] += b"\x08\x01" if chance.random() < 0.5 else b"\xff"
                try:
                    list(call(iter(bytes(m) for m in sent[: chance.randint(1, 2)]), timeout=60))
                except grpc.RpcError as error:
                    status = rpc_status.from_call(error)
                    told = [d.Is(ErrorInfo.DESCRIPTOR) for d in status.details] if status is not None else []
                    failed.append((error.code(), any(told)))
    assert set(failed) == {(grpc.StatusCode.INVALID_ARGUMENT, True)}
    assert len(failed) > 300
    assert server.rss_mb(server.process.pid) - before < 50
    assert not [line for line in server.lines() if "Traceback" in str(line)]
    assert analyse(stub, settings(), items(2)).items == 2


def test_cancelled_and_stalled_streams_leave_nothing(
    start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    server = start_server("--silence=2", env={"TMPDIR": str(tmp_path)})
    chance = random.Random(59)
    ended = threading.Event()

    def unfinished() -> Iterator[pb.AnalyzeRequest]:
        yield from requests(settings(), items(50))
        ended.wait(60)

    with grpc.insecure_channel(server.address) as channel:
        stub = ReportServiceStub(channel)
        assert analyse(stub, settings(), items(2)).items == 2
        before = server.rss_mb(server.process.pid)
        for number in range(60):
            call = stub.Analyze(requests(settings(), items(chance.randint(1, 200))))
            if number < 3:
                next(call)  # its process works
            call.cancel()
        stalled = [stub.Analyze(unfinished()) for _ in range(30)]
        for call in stalled:
            with pytest.raises(grpc.RpcError) as raised:
                list(call)
            status = rpc_status.from_call(raised.value)
            assert status is not None
            info = ErrorInfo()
            assert status.details[0].Unpack(info)
            assert (raised.value.code(), info.reason) == (grpc.StatusCode.ABORTED, "STREAM_STALLED")
        ended.set()
        wait_until(lambda: not list(tmp_path.glob("spicegraph-*")) and not children(server), timeout_s=60)
        assert analyse(stub, settings(), items(2)).items == 2
    assert server.rss_mb(server.process.pid) - before < 50
    assert not [line for line in server.lines() if "Traceback" in str(line)]


def test_an_unknown_method_has_a_reason_and_a_request_id(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/spicegraph.report.v1.ReportService/Nothing")(b"")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    status = rpc_status.from_call(raised.value)
    assert status is not None
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, bool(info.metadata["request_id"])) == ("UNIMPLEMENTED", True)


def test_groups_of_metrics_are_taken_and_faults_of_all_parts_are_named(server: RunningServer) -> None:
    with Client(server.address) as client:
        sent = [item(str(n), "A dog, on a couch.", ["A dog on a sofa.", "the dog"]) for n in range(2)]
        reply = client.score(sent, metrics=["coco"])
        single = client.score(
            sent, metrics=["bleu", "meteor", "rouge", "cider", "spice"], spice_text=scores_pb2.SPICE_TEXT_COCO
        )
        assert reply == single
        with pytest.raises(grpc.RpcError) as raised:
            client.score([item("", "a dog", [])], metrics=["nonsense"], detail=99)  # type: ignore[arg-type]
    status = rpc_status.from_call(raised.value)
    assert status is not None
    found = BadRequest()
    assert any(detail.Unpack(found) for detail in status.details)
    fields = {violation.field for violation in found.field_violations}
    assert fields == {"metrics[0]", "detail", "items[0].id", "items[0].references"}
