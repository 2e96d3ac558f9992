"""What the studies of metrics add to the program: the commands ``agree``, ``bounds``, ``dense`` and ``diversity``."""

from __future__ import annotations

from typing import Final

from spicegraph_service.kit import Command

COMMANDS: Final = (
    Command("bounds", "spicegraph_studies.cli.bounds:bounds", "Find how high and how low scores can go.", "Study"),
    Command(
        "diversity",
        "spicegraph_studies.cli.diversity:diversity",
        "Measure how different several captions of one image are.",
        "Study",
    ),
    Command(
        "dense", "spicegraph_studies.cli.dense:dense", "Score dense video captions: tIoU, SODA, paragraphs.", "Study"
    ),
    Command(
        "agree",
        "spicegraph_studies.cli.agree:agree",
        "Compare metrics with people: ratings, pairs, words, systems.",
        "Study",
    ),
)
