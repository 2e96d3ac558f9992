"""What wings and other packages may use of the service, by subject.

Registration (:class:`Command`, :class:`ServiceEntry`, :class:`StatePart`); statuses of calls (``wrong``, ``refused``,
``CallError`` ...), the call under way (:func:`current_call`), what a server offers to a service (:class:`Host`), the
way to its workers (:class:`Scheduler`); child processes and their frames; the store's errors; validation; the web
(:class:`Gateway`, pages); options of commands, the terminal, tables, grids and charts. Other doors are
``spicegraph_service.client`` and ``spicegraph_service.report``. A name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spicegraph_service.cli.options import (
        EmptyOption,
        GraphStyle,
        GraphStyleOption,
        InputOptions,
        MetricOptions,
        MetricsOption,
        ParsingOptions,
        ScoringOptions,
        system_name,
    )
    from spicegraph_service.cli.stores import ExpiresOption, server_extra, token_end
    from spicegraph_service.engines import System
    from spicegraph_service.engines.local import ParseSource, Spread, local_facts, spread_over
    from spicegraph_service.output.charts import (
        HUMAN_INK,
        Box,
        Line,
        Mark,
        Point,
        Row,
        box_chart,
        ink,
        interval_chart,
        line_chart,
        scatter_chart,
    )
    from spicegraph_service.output.grid import Cell, Column, Grid, Span, cell_text, headings, ranked, to_rich
    from spicegraph_service.output.pages import PAGE_HEADERS, render_page, static
    from spicegraph_service.output.studies import BY_ENDING, STUDY_FORMATS, Chart, Section, Study, StudyFormat
    from spicegraph_service.output.tables import rendered
    from spicegraph_service.output.terminal import (
        check_output,
        format_by_ending,
        note,
        printable,
        progress_bar,
        say_warning,
        warned_progress,
        whole_path,
        write_stdout,
        write_text,
    )
    from spicegraph_service.pool.processes import ChildProcess, ProcessEndedError, frame, open_replies, read_frame
    from spicegraph_service.pool.tasks import (
        NOTHING_GIVEN,
        ChunkStatistics,
        ItemWork,
        RequestData,
        WorkerInfo,
        parsed_texts,
        unpack_data,
    )
    from spicegraph_service.registry import Command, NoOptions, ServiceEntry, StatePart
    from spicegraph_service.rpc.gateway import FailedCallError, Gateway, Origin
    from spicegraph_service.rpc.host import Host
    from spicegraph_service.rpc.http import HTTP_STATUSES, peer_of
    from spicegraph_service.rpc.interceptor import Context, current_call
    from spicegraph_service.rpc.scheduler import Scheduler
    from spicegraph_service.rpc.service import Caller, Service, TokenService
    from spicegraph_service.rpc.status import (
        CallError,
        Violation,
        denied,
        invalid,
        name_taken,
        not_found,
        quota_used,
        refused,
        taken_name,
        unauthenticated,
        unavailable,
        wrong,
        wrong_references,
    )
    from spicegraph_service.rpc.telemetry import QueueState
    from spicegraph_service.rpc.validation import (
        EMPTY_VALUES,
        check_metrics,
        check_page_size,
        check_page_token,
        empty_candidates,
        graph_style,
        graph_style_value,
        patiently,
        spice_text,
        spice_text_value,
    )
    from spicegraph_service.store import (
        DEFAULT_TENANT,
        StoreError,
        StoreFullError,
        make_private,
        open_store,
        why_not_opened,
    )
    from spicegraph_service.store.backup import file_of

__all__ = [
    "BY_ENDING",
    "DEFAULT_TENANT",
    "EMPTY_VALUES",
    "HTTP_STATUSES",
    "HUMAN_INK",
    "NOTHING_GIVEN",
    "PAGE_HEADERS",
    "STUDY_FORMATS",
    "Box",
    "CallError",
    "Caller",
    "Cell",
    "Chart",
    "ChildProcess",
    "ChunkStatistics",
    "Column",
    "Command",
    "Context",
    "EmptyOption",
    "ExpiresOption",
    "FailedCallError",
    "Gateway",
    "GraphStyle",
    "GraphStyleOption",
    "Grid",
    "Host",
    "InputOptions",
    "ItemWork",
    "Line",
    "Mark",
    "MetricOptions",
    "MetricsOption",
    "NoOptions",
    "Origin",
    "ParseSource",
    "ParsingOptions",
    "Point",
    "ProcessEndedError",
    "QueueState",
    "RequestData",
    "Row",
    "Scheduler",
    "ScoringOptions",
    "Section",
    "Service",
    "ServiceEntry",
    "Span",
    "Spread",
    "StatePart",
    "StoreError",
    "StoreFullError",
    "Study",
    "StudyFormat",
    "System",
    "TokenService",
    "Violation",
    "WorkerInfo",
    "box_chart",
    "cell_text",
    "check_metrics",
    "check_output",
    "check_page_size",
    "check_page_token",
    "current_call",
    "denied",
    "empty_candidates",
    "file_of",
    "format_by_ending",
    "frame",
    "graph_style",
    "graph_style_value",
    "headings",
    "ink",
    "interval_chart",
    "invalid",
    "line_chart",
    "local_facts",
    "make_private",
    "name_taken",
    "not_found",
    "note",
    "open_replies",
    "open_store",
    "parsed_texts",
    "patiently",
    "peer_of",
    "printable",
    "progress_bar",
    "quota_used",
    "ranked",
    "read_frame",
    "refused",
    "render_page",
    "rendered",
    "say_warning",
    "scatter_chart",
    "server_extra",
    "spice_text",
    "spice_text_value",
    "spread_over",
    "static",
    "system_name",
    "taken_name",
    "to_rich",
    "token_end",
    "unauthenticated",
    "unavailable",
    "unpack_data",
    "warned_progress",
    "whole_path",
    "why_not_opened",
    "write_stdout",
    "write_text",
    "wrong",
    "wrong_references",
]

_MODULES = {
    "cli.options": (
        "EmptyOption",
        "GraphStyle",
        "GraphStyleOption",
        "InputOptions",
        "MetricOptions",
        "MetricsOption",
        "ParsingOptions",
        "ScoringOptions",
        "system_name",
    ),
    "cli.stores": ("ExpiresOption", "server_extra", "token_end"),
    "engines": ("System",),
    "engines.local": ("ParseSource", "Spread", "local_facts", "spread_over"),
    "output.charts": (
        "HUMAN_INK",
        "Box",
        "Line",
        "Mark",
        "Point",
        "Row",
        "box_chart",
        "ink",
        "interval_chart",
        "line_chart",
        "scatter_chart",
    ),
    "output.pages": ("PAGE_HEADERS", "render_page", "static"),
    "output.grid": ("Cell", "Column", "Grid", "Span", "cell_text", "headings", "ranked", "to_rich"),
    "output.studies": ("BY_ENDING", "STUDY_FORMATS", "Chart", "Section", "Study", "StudyFormat"),
    "output.tables": ("rendered",),
    "output.terminal": (
        "check_output",
        "format_by_ending",
        "note",
        "printable",
        "progress_bar",
        "say_warning",
        "warned_progress",
        "whole_path",
        "write_stdout",
        "write_text",
    ),
    "pool.processes": ("ChildProcess", "ProcessEndedError", "frame", "open_replies", "read_frame"),
    "pool.tasks": (
        "NOTHING_GIVEN",
        "ChunkStatistics",
        "ItemWork",
        "RequestData",
        "WorkerInfo",
        "parsed_texts",
        "unpack_data",
    ),
    "registry": ("Command", "NoOptions", "ServiceEntry", "StatePart"),
    "rpc.gateway": ("FailedCallError", "Gateway", "Origin"),
    "rpc.host": ("Host",),
    "rpc.http": ("HTTP_STATUSES", "peer_of"),
    "rpc.interceptor": ("Context", "current_call"),
    "rpc.scheduler": ("Scheduler",),
    "rpc.service": ("Caller", "Service", "TokenService"),
    "rpc.status": (
        "CallError",
        "Violation",
        "denied",
        "invalid",
        "name_taken",
        "not_found",
        "quota_used",
        "refused",
        "taken_name",
        "unauthenticated",
        "unavailable",
        "wrong",
        "wrong_references",
    ),
    "rpc.telemetry": ("QueueState",),
    "rpc.validation": (
        "EMPTY_VALUES",
        "check_metrics",
        "check_page_size",
        "check_page_token",
        "empty_candidates",
        "graph_style",
        "graph_style_value",
        "patiently",
        "spice_text",
        "spice_text_value",
    ),
    "store": ("DEFAULT_TENANT", "StoreError", "StoreFullError", "make_private", "open_store", "why_not_opened"),
    "store.backup": ("file_of",),
}
"""The names by the module that has them. The imports above are for type checkers; a test checks that both agree."""


if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for one of ours

    def __getattr__(name: str) -> object:
        for module, names in _MODULES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f"spicegraph_service.{module}"), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
