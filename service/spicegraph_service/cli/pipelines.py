"""``spicegraph pipelines``: print the model card of the bundled pipeline."""

from __future__ import annotations

from spicegraph_parser.pipelines import load_pipeline, model_card
from spicegraph_service.output.terminal import write_stdout


def pipelines() -> None:
    """Print the bundled pipeline's signature and its model card: data, licences, agreement with SPICE, weaknesses."""
    write_stdout(f"{load_pipeline().signature}\n\n{model_card()}")
