"""The commands and services of this package, as its entry points name them; a new command is a function and a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from spicegraph_service.registry import Command, ServiceEntry

_CLI: Final = "spicegraph_service.cli"

COMMANDS: Final = (
    Command("score", f"{_CLI}.score:score", "Score captions: SPICE by category, the COCO metrics.", "Score"),
    Command("compare", f"{_CLI}.compare:compare", "Compare two systems, with tests of every difference.", "Score"),
    Command("report", f"{_CLI}.report:report", "Show what systems get wrong, on one HTML page.", "Score"),
    Command("parse", f"{_CLI}.parse:parse", "Turn captions into the tuples of their scene graphs.", "Score"),
    Command("inputs", f"{_CLI}.inputs:inputs", "Say what a file is taken for.", "Prepare"),
    Command("idf", f"{_CLI}.learn:idf", "Freeze CIDEr's document frequencies.", "Prepare"),
    Command("pipelines", f"{_CLI}.parse:pipelines", "Print the model card of the bundled pipeline.", "Prepare"),
    Command("cache", f"{_CLI}.stores:cache", "Show, trim or clear a cache of parses.", "Prepare"),
    Command("config", f"{_CLI}.config:config", "Show which settings apply, and where they come from.", "Prepare"),
    Command("serve", f"{_CLI}.serve:serve", "Serve parses and scores over gRPC.", "Server"),
    Command("health", f"{_CLI}.health:health", "Ask a server whether it serves.", "Server"),
    Command("token", f"{_CLI}.stores:token", "Make, list and revoke tokens for a server.", "Server"),
)

EVALUATION: Final = ServiceEntry("spicegraph_service.rpc.host:open_evaluation")
REFERENCES: Final = ServiceEntry("spicegraph_service.rpc.host:open_references")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportServing:
    """How a server makes reports.

    Reports:
        reports: How many error reports are made at the same time, each in a process of its own; others wait.
        report_memory: Memory that a report's process may take, in MiB; 0: any.
        report_gauges: Show Prometheus SPICE by category and the rates of errors of so many systems, by their names,
            those of the last reports; 0: none.
    """

    reports: Annotated[int, typer.Option(min=1)] = 1
    report_memory: Annotated[int, typer.Option(metavar="MIB", min=0)] = 8_192
    report_gauges: Annotated[int, typer.Option(min=0, max=100)] = 0


REPORTS: Final = ServiceEntry("spicegraph_service.rpc.reports:open_reports", options=ReportServing)
