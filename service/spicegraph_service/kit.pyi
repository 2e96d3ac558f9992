"""The names of the kit by the module that has them: what type checkers read, and ``kit.py`` at run time."""

from spicegraph_service.cli.options import (
    ControlTokensOption as ControlTokensOption,
    EmptyOption as EmptyOption,
    GraphStyle as GraphStyle,
    GraphStyleOption as GraphStyleOption,
    InputOptions as InputOptions,
    MetricOptions as MetricOptions,
    MetricsOption as MetricsOption,
    ParsingOptions as ParsingOptions,
    PipelineOption as PipelineOption,
    ScoringOptions as ScoringOptions,
    system_name as system_name,
    system_names as system_names,
)
from spicegraph_service.config import (
    default_store as default_store,
    host_and_port as host_and_port,
    is_local as is_local,
)
from spicegraph_service.cli.app import with_groups as with_groups
from spicegraph_service.cli.stores import ExpiresOption as ExpiresOption, token_end as token_end
from spicegraph_service.engines import Engine as Engine, Rewrite as Rewrite, System as System, Task as Task
from spicegraph_service.engines.local import Spread as Spread, local_facts as local_facts, spread_over as spread_over
from spicegraph_service.engines.objects import (
    ID_COLUMN as ID_COLUMN,
    METADATA as METADATA,
    filesystem_of as filesystem_of,
    flat_scores as flat_scores,
    is_url as is_url,
    object_errors as object_errors,
    object_stream as object_stream,
    parquet_extra as parquet_extra,
    score_table as score_table,
    table_bytes as table_bytes,
)
from spicegraph_service.engines.table import score_here as score_here
from spicegraph_service.output.charts import (
    HUMAN_INK as HUMAN_INK,
    Line as Line,
    Mark as Mark,
    Point as Point,
    box_chart as box_chart,
    histogram as histogram,
    ink as ink,
    interval_chart as interval_chart,
    line_chart as line_chart,
    scatter_chart as scatter_chart,
)
from spicegraph_service.output.grid import (
    Cell as Cell,
    Column as Column,
    Grid as Grid,
    Span as Span,
    cell_text as cell_text,
    csv_lines as csv_lines,
    headings as headings,
    page_text as page_text,
    ranked as ranked,
    to_csv as to_csv,
    to_latex as to_latex,
    to_rich as to_rich,
)
from spicegraph_service.output.pages import (
    PAGE_HEADERS as PAGE_HEADERS,
    REPORT_HEADERS as REPORT_HEADERS,
    number as number,
    render_page as render_page,
    static as static,
)
from spicegraph_service.output.results import ResultFormat as ResultFormat, ResultOutput as ResultOutput
from spicegraph_service.output.standing import best_points as best_points, standings as standings
from spicegraph_service.output.tables import rendered as rendered, signature_lines as signature_lines
from spicegraph_service.output.terminal import (
    check_output as check_output,
    format_by_ending as format_by_ending,
    made_folder as made_folder,
    note as note,
    printable as printable,
    progress_bar as progress_bar,
    refuse_overwriting as refuse_overwriting,
    say as say,
    say_error as say_error,
    say_warning as say_warning,
    use_utf8 as use_utf8,
    warned_progress as warned_progress,
    whole_path as whole_path,
    write_stdout as write_stdout,
    write_text as write_text,
)
from spicegraph_service.pool.processes import (
    ChildProcess as ChildProcess,
    ProcessEndedError as ProcessEndedError,
    do_one_task as do_one_task,
    frame as frame,
    limit as limit,
    read_frame as read_frame,
)
from spicegraph_service.pool.tasks import (
    NOTHING_GIVEN as NOTHING_GIVEN,
    ChunkStatistics as ChunkStatistics,
    ItemWork as ItemWork,
    MadeMetric as MadeMetric,
    RequestData as RequestData,
    WorkerInfo as WorkerInfo,
    parsed_texts as parsed_texts,
    unpack_data as unpack_data,
)
from spicegraph_service.registry import (
    Command as Command,
    DoorEntry as DoorEntry,
    NoOptions as NoOptions,
    ServiceEntry as ServiceEntry,
    StatePart as StatePart,
    services as services,
)
from spicegraph_service.rpc.host import Door as Door, DoorParts as DoorParts, Host as Host
from spicegraph_service.rpc.interceptor import (
    CallInterceptor as CallInterceptor,
    Context as Context,
    Handler as Handler,
    Malformed as Malformed,
    Refusal as Refusal,
    current_call as current_call,
)
from spicegraph_service.rpc.limits import (
    MOST_CONNECTIONS as MOST_CONNECTIONS,
    ByteBudget as ByteBudget,
    FullError as FullError,
    Limits as Limits,
)
from spicegraph_service.rpc.routes import (
    HTTP_STATUSES as HTTP_STATUSES,
    FailedCallError as FailedCallError,
    Gateway as Gateway,
    Origin as Origin,
    Pages as Pages,
    Requests as Requests,
    client_headers as client_headers,
    format_peer as format_peer,
    is_own_form as is_own_form,
    read_part_names as read_part_names,
)
from spicegraph_service.rpc.scheduler import (
    Scheduler as Scheduler,
    count_captions as count_captions,
    count_cost as count_cost,
)
from spicegraph_service.rpc.service import (
    Caller as Caller,
    HealthMonitor as HealthMonitor,
    Service as Service,
    TokenService as TokenService,
)
from spicegraph_service.rpc.status import (
    TOO_LONG as TOO_LONG,
    CallError as CallError,
    Violation as Violation,
    exhausted as exhausted,
    invalid as invalid,
    name_taken as name_taken,
    not_found as not_found,
    refused as refused,
    retry_info as retry_info,
    too_long as too_long,
    unauthenticated as unauthenticated,
    unavailable as unavailable,
    wrong as wrong,
)
from spicegraph_service.rpc.validation import (
    caption_faults as caption_faults,
    check_items as check_items,
    check_metrics as check_metrics,
    check_page_size as check_page_size,
    check_page_token as check_page_token,
    graph_style as graph_style,
    patiently as patiently,
    spice_text as spice_text,
)
from spicegraph_service.store import (
    DEFAULT_TENANT as DEFAULT_TENANT,
    OWNER as OWNER,
    READ as READ,
    ReferenceSet as ReferenceSet,
    StoreError as StoreError,
    StoreFullError as StoreFullError,
    TokenRecord as TokenRecord,
    make_private as make_private,
    parse_key as parse_key,
    why_not_opened as why_not_opened,
)
from spicegraph_service.store.places import file_of as file_of, open_store as open_store
