"""``spicegraph platform``: the metric in the shape that a platform or another program calls."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from spicegraph_compat.benchmarks import plugin_output, score_submission
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_service import kit

platform = typer.Typer(
    help="Score for Codabench or CapEvalKit (for EvalAI: spicegraph_compat.evalai).", no_args_is_help=True
)


@platform.command()
def codabench(
    input_folder: Annotated[str, typer.Argument(metavar="INPUT", help="The folder with ref/ and res/.")],
    output_folder: Annotated[str, typer.Argument(metavar="OUTPUT", help="The folder to write to.")],
    *,
    scoring: kit.ScoringOptions,
    control_tokens: kit.ControlTokensOption = None,
    show_references: Annotated[
        bool,
        typer.Option(
            "--show-references", help="Write a full error report; it shows the private references to every team."
        ),
    ] = False,
    pipeline: kit.PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Run as a Codabench scoring program: write scores.json and detailed_results.html."""
    data = scoring.data()
    with kit.warned_progress():
        scores = score_submission(
            input_folder,
            output_folder,
            metrics=scoring.names,
            empty=scoring.empty,
            control_tokens=control_tokens or "refuse",
            show_references=show_references,
            pipeline=pipeline,
            data=data,
        )
    kit.write_stdout(
        kit.rendered([kit.Grid("Corpus scores", kit.headings("Score|text", "Value|score"), list(scores.items()))])
    )


@platform.command()
def capevalkit(
    *,
    predictions: Annotated[str, typer.Option(metavar="FILE", help='JSON Lines of {"id", "caption"}.')],
    references: Annotated[str, typer.Option(metavar="FILE", help='JSON Lines of {"id", "references"}.')],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The JSON file to write.")],
    scoring: kit.ScoringOptions,
    control_tokens: kit.ControlTokensOption = None,
    pipeline: kit.PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Run as a CapEvalKit plug-in: score predictions, write corpus and item scores as JSON."""
    kit.check_output(output)
    data = scoring.data()
    with kit.warned_progress():
        results = plugin_output(
            predictions,
            references,
            metrics=scoring.names,
            empty=scoring.empty,
            control_tokens=control_tokens or "refuse",
            pipeline=pipeline,
            data=data,
        )
    kit.write_text(msgspec.json.format(msgspec.json.encode(results), indent=2).decode() + "\n", output)
