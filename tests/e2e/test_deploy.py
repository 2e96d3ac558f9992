"""The files in ``deploy``: they name metrics, options and files that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from typer.main import get_command

from spicegraph_challenge.service import gauges
from spicegraph_service.cli.app import make_app
from spicegraph_service.rpc.reports import Gauges
from spicegraph_service.rpc.telemetry import ProcessCollector, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer._click.core import Command

DEPLOY = Path(__file__).parents[2] / "deploy"
SUPPORT = Path(__file__).parents[1] / "support"
TLS = {"existingSecret": "t", "serverName": "s"}
TEXTS = [path for path in sorted(DEPLOY.rglob("*")) if path.is_file()]


def serve_command() -> Command:
    command: Command = get_command(make_app("serve", "health")).commands["serve"]  # type: ignore[attr-defined]
    return command


def known_metrics() -> set[str]:
    telemetry = Telemetry()
    telemetry.registry.register(ProcessCollector(dict))
    gauges(telemetry.registry)
    Gauges(telemetry.registry, 1)
    names = set()
    for family in telemetry.registry.collect():
        names |= {family.name, f"{family.name}_{'total' if family.type == 'counter' else 'info'}"}
        if family.type == "histogram":
            names |= {f"{family.name}_{end}" for end in ("bucket", "sum", "count")}
    return names


@pytest.mark.parametrize("name", ["prometheus/alerts.yaml", "grafana/spicegraph.json"])
def test_rules_and_panels_ask_for_metrics_that_the_server_has(name: str) -> None:
    if name.endswith("json"):
        panels = json.loads((DEPLOY / name).read_text())["panels"]
        expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    else:
        (group,) = yaml.safe_load((DEPLOY / name).read_text())["groups"]
        expressions = [rule["expr"] for rule in group["rules"]]
    assert len(expressions) >= 8
    asked = {found for expression in expressions for found in re.findall(r"\bspicegraph_\w+", expression)}
    assert asked <= known_metrics()


def test_environment_variables_are_those_of_commands() -> None:
    group = get_command(make_app("serve", "health"))
    commands = [group.commands[name] for name in ("serve", "health")]  # type: ignore[attr-defined]
    known = {str(parameter.envvar) for command in commands for parameter in command.params if parameter.envvar}
    for path in TEXTS:
        used = set(re.findall(r"\bSPICEGRAPH_[A-Z_]+\b", path.read_text()))
        assert used <= known, path


def test_image_and_compose_show_the_ports_on_which_the_server_listens() -> None:
    image = (DEPLOY / "Dockerfile").read_text()
    exposed = set(re.findall(r"\d+", re.findall(r"^EXPOSE (.*)$", image, re.MULTILINE)[0]))
    server = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["server"]
    assert exposed == set(server["expose"])
    listened = re.findall(r"0\.0\.0\.0:(\d+)", image + server["environment"]["SPICEGRAPH_HTTP"])
    assert set(listened) == exposed


def test_files_that_are_mounted_exist() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", ())]
    files = [mount for mount in mounts if mount.startswith("./")]
    assert len(files) == 2
    assert all((DEPLOY / file).is_file() for file in files)
    assert (DEPLOY / services["server"]["build"]["context"] / services["server"]["build"]["dockerfile"]).is_file()


# Of each alert: a series that makes it fire within two hours, as promtool writes series.
FIRING = {
    "SpicegraphDown": [('up{job="spicegraph",instance="a"}', "1x10 0x110")],
    "SpicegraphNoWorkers": [('spicegraph_workers{instance="a"}', "1x10 0x110")],
    "SpicegraphWorkersDie": [('spicegraph_worker_deaths_total{instance="a"}', "0+1x120")],
    "SpicegraphServiceDown": [('spicegraph_service_up{instance="a",service="s"}', "1x10 0x110")],
    "SpicegraphRefusals": [
        ('spicegraph_requests_total{instance="a",code="RESOURCE_EXHAUSTED"}', "0+6x120"),
        ('spicegraph_requests_total{instance="a",code="OK"}', "0+94x120"),
    ],
    "SpicegraphFlooded": [('spicegraph_refusals_total{instance="a",reason="OPEN_STREAMS"}', "0+60x120")],
    "SpicegraphErrors": [('spicegraph_requests_total{instance="a",code="INTERNAL"}', "0+1x120")],
    "SpicegraphSlow": [
        ('spicegraph_request_seconds_bucket{instance="a",method="EvaluationService/Score",le="5"}', "0+97x120"),
        ('spicegraph_request_seconds_bucket{instance="a",method="EvaluationService/Score",le="10"}', "0+100x120"),
        ('spicegraph_request_seconds_bucket{instance="a",method="EvaluationService/Score",le="+Inf"}', "0+100x120"),
    ],
    "SpicegraphStoreFails": [('spicegraph_parse_lookups_total{instance="a",result="error"}', "0+1x120")],
    "SpicegraphSubmissionsWait": [('spicegraph_challenge_oldest_queued_seconds{instance="a"}', "0+60x120")],
    "SpicegraphSubmissionsFail": [('spicegraph_challenge_submissions{instance="a",state="failed"}', "0+1x120")],
}
QUIET = [
    ('up{job="spicegraph",instance="a"}', "1x120"),
    ('spicegraph_workers{instance="a"}', "1x120"),
    ('spicegraph_service_up{instance="a",service="s"}', "1x120"),
    ('spicegraph_worker_deaths_total{instance="a"}', "3x120"),
    ('spicegraph_requests_total{instance="a",code="RESOURCE_EXHAUSTED"}', "0+4x120"),
    ('spicegraph_requests_total{instance="a",code="OK"}', "0+96x120"),
    ('spicegraph_refusals_total{instance="a",reason="OPEN_STREAMS"}', "0+20x120"),
    ('spicegraph_refusals_total{instance="a",reason="QUEUE_FULL"}', "0+600x120"),
    ('spicegraph_challenge_oldest_queued_seconds{instance="a"}', "1700x120"),
    ('spicegraph_challenge_submissions{instance="a",state="failed"}', "9x120"),
]


def promtool(*arguments: str | Path) -> str:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_takes_the_rules_and_they_fire_when_they_should(tmp_path: Path) -> None:
    alerts = DEPLOY / "prometheus" / "alerts.yaml"
    promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yaml")
    (group,) = yaml.safe_load(alerts.read_text())["groups"]
    rules = {rule["alert"]: rule for rule in group["rules"]}
    assert rules.keys() == FIRING.keys()

    def fires(alert: str, *, where: dict[str, str] | None) -> dict[str, object]:
        alerts = [] if where is None else [{"exp_labels": where | rules[alert]["labels"]}]
        if where is not None:
            summary = rules[alert]["annotations"]["summary"]
            for label, value in where.items():
                summary = summary.replace(f"{{{{ $labels.{label} }}}}", value)
            alerts[0]["exp_annotations"] = {"summary": summary}
        return {"eval_time": "2h", "alertname": alert, "exp_alerts": alerts}

    wheres: dict[str, dict[str, str]] = {rule: {"instance": "a"} for rule in rules} | {
        "SpicegraphDown": {"instance": "a", "job": "spicegraph"},
        "SpicegraphServiceDown": {"instance": "a", "service": "s"},
        "SpicegraphStoreFails": {"instance": "a", "result": "error"},
        "SpicegraphSubmissionsWait": {},
        "SpicegraphSubmissionsFail": {},
    }
    cases = [(series, [fires(alert, where=wheres[alert])]) for alert, series in FIRING.items()]
    cases.append((QUIET, [fires(alert, where=None) for alert in rules]))
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series],
            "alert_rule_test": expected,
        }
        for series, expected in cases
    ]
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(alerts)], "evaluation_interval": "1m", "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", file)


@pytest.fixture
def chart(tmp_path: Path) -> Callable[[dict[str, object]], subprocess.CompletedProcess[str]]:
    """Render the chart by helm with other values than its own."""
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed")

    def render(values: dict[str, object]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "values.json").write_text(json.dumps(values))
        command = [
            helm,
            "template",
            "name",
            str(DEPLOY / "helm" / "spicegraph"),
            "--values",
            str(tmp_path / "values.json"),
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return render


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"allowInsecure": True, "tokens": "never"}, ""),
        ({"allowInsecure": True, "tokens": "never", "http": True}, ""),
        ({"tls": TLS, "store": {"existingSecret": "s"}}, ""),
        ({"tls": TLS | {"clientCa": "ca.crt", "probeSecret": "p"}, "tokens": "never"}, ""),
        ({"tls": TLS}, "tokens need"),
        (
            {
                "allowInsecure": True,
                "store": {"existingSecret": "s"},
                "challenges": {"enabled": True, "claim": "c"},
                "options": {"SPICEGRAPH_RATE": "500"},
            },
            "",
        ),
        ({}, "allowInsecure"),
        ({"tls": {"existingSecret": "t"}}, "tls.serverName"),
        ({"allowInsecure": True, "challenges": {"enabled": True}}, "challenges need"),
        ({"allowInsecure": True, "tokens": "always"}, "tokens need"),
    ],
)
def test_the_chart_makes_manifests_or_says_what_is_missing(
    chart: Callable[[dict[str, object]], subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, object],
    fault: str,
) -> None:
    done = chart(values)
    if fault:
        assert done.returncode
        assert fault in done.stderr
        return
    assert not done.returncode, done.stderr
    kinds = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(done.stdout) if manifest}
    assert set(kinds) == {"Deployment", "Service", "PodDisruptionBudget"}
    (container,) = kinds["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    ports = {port["name"] for port in container["ports"]}
    assert ports == {port["name"] for port in kinds["Service"]["spec"]["ports"]}
    assert ("http" in ports) == bool(values.get("http"))
    # What the server is given is what it takes: it would start with it.
    given = {variable["name"]: variable.get("value", "") for variable in container["env"]}
    assert set(given) <= {str(parameter.envvar) for parameter in serve_command().params if parameter.envvar}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    read = serve_command().make_context("serve", []).params
    assert (str(read["workers"]), read["grace"]) == (given["SPICEGRAPH_WORKERS"], float(given["SPICEGRAPH_GRACE"]))
    assert bool(read["http"]) == ("http" in ports)
    assert read["rate"] == float(given.get("SPICEGRAPH_RATE", 0))
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in kinds["Deployment"]["spec"]["template"]["spec"]["volumes"]}
