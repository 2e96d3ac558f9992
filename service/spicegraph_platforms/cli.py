"""``spicegraph platform``: the metric in the shape that a platform or another program calls."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_platforms.benchmarks import plugin_output, score_submission
from spicegraph_service.kit import (
    Grid,
    PipelineOption,
    ScoringOptions,
    check_output,
    headings,
    rendered,
    warned_progress,
    write_stdout,
    write_text,
)

platform = typer.Typer(
    help="Score for Codabench or CapEvalKit (for EvalAI: spicegraph_scorer.adapters.evalai).", no_args_is_help=True
)


@platform.command()
def codabench(
    input_folder: Annotated[str, typer.Argument(metavar="INPUT")],
    output_folder: Annotated[str, typer.Argument(metavar="OUTPUT")],
    *,
    scoring: ScoringOptions,
    show_references: Annotated[bool, typer.Option("--show-references")] = False,
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Run as a Codabench scoring program: write scores.json and detailed_results.html.

    Options:
        input_folder: The folder with ref/ and res/.
        output_folder: The folder to write to.
        show_references: Write a full error report; it shows the private references to every team.
    """
    data = scoring.data()
    with warned_progress():
        scores = score_submission(
            input_folder,
            output_folder,
            metrics=scoring.names,
            empty=scoring.empty,
            show_references=show_references,
            pipeline=pipeline,
            data=data,
        )
    write_stdout(rendered([Grid("Corpus scores", headings("Score|text", "Value|score"), list(scores.items()))]))


@platform.command()
def capevalkit(
    *,
    predictions: Annotated[str, typer.Option(metavar="FILE")],
    references: Annotated[str, typer.Option(metavar="FILE")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE")],
    scoring: ScoringOptions,
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Run as a CapEvalKit plug-in: score predictions, write corpus and item scores as JSON.

    Options:
        predictions: JSON Lines of {"id", "caption"}.
        references: JSON Lines of {"id", "references"}.
        output: The JSON file to write.
    """
    check_output(output)
    data = scoring.data()
    with warned_progress():
        results = plugin_output(
            predictions, references, metrics=scoring.names, empty=scoring.empty, pipeline=pipeline, data=data
        )
    write_text(msgspec.json.format(msgspec.json.encode(results), indent=2).decode() + "\n", output)
