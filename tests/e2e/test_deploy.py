"""The files in ``deploy``: they name metrics, options and files that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from spicegraph_service.cli.app import make_app
from spicegraph_service.rpc.telemetry import ProcessCollector, Telemetry

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXTS = [path for path in sorted(DEPLOY.rglob("*")) if path.is_file()]


def known_metrics() -> set[str]:
    telemetry = Telemetry()
    telemetry.registry.register(ProcessCollector(dict))
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
    app = make_app("serve", "health")
    from typer.main import get_command

    group = get_command(app)
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


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (["allowInsecure=true", "tokens=never"], ""),
        (["allowInsecure=true", "tokens=never", "http=true"], ""),
        (["tls.existingSecret=t", "tls.serverName=s", "store.existingSecret=s"], ""),
        (["tls.existingSecret=t", "tls.serverName=s", "tls.clientCa=ca.crt", "tls.probeSecret=p", "tokens=never"], ""),
        (["tls.existingSecret=t", "tls.serverName=s"], "tokens need"),
        (["allowInsecure=true", "store.existingSecret=s", "challenges.enabled=true", "challenges.claim=c"], ""),
        ([], "allowInsecure"),
        (["tls.existingSecret=t"], "tls.serverName"),
        (["allowInsecure=true", "challenges.enabled=true"], "challenges need"),
        (["allowInsecure=true", "tokens=always"], "tokens need"),
    ],
)
def test_the_chart_makes_manifests_or_says_what_is_missing(values: list[str], fault: str) -> None:
    command = ["helm", "template", "name", str(DEPLOY / "helm" / "spicegraph")]
    options = [part for value in values for part in ("--set", value)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if fault:
        assert done.returncode
        assert fault in done.stderr
        return
    kinds = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert set(kinds) == {"Deployment", "Service", "PodDisruptionBudget"}
    (container,) = kinds["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    ports = {port["name"] for port in container["ports"]}
    assert ports == {port["name"] for port in kinds["Service"]["spec"]["ports"]}
    assert ("http" in ports) == ("http=true" in values)
