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
from spicegraph_service.server.telemetry import ProcessCollector, Telemetry

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


def test_files_that_are_mounted_exist() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", ())]
    files = [mount for mount in mounts if mount.startswith("./")]
    assert len(files) == 2
    assert all((DEPLOY / file).is_file() for file in files)
    assert (DEPLOY / services["server"]["build"]["context"] / services["server"]["build"]["dockerfile"]).is_file()


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (["allowInsecure=true"], ""),
        (["tls.existingSecret=t", "tls.serverName=s"], ""),
        (["tls.existingSecret=t", "tls.serverName=s", "tls.clientCa=ca.crt", "tls.probeSecret=p"], ""),
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
