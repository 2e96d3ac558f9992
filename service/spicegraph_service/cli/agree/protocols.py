"""``spicegraph agree protocols``: the protocols by name, with what each does."""

from __future__ import annotations

from rich.text import Text

from spicegraph_scorer.studies.agreement.coefficients import COEFFICIENTS
from spicegraph_scorer.studies.agreement.protocols import CAPTION_PROTOCOLS, PAIR_PROTOCOLS
from spicegraph_service.output.agreement.captions import OWN_SAY, RATINGS_SAY
from spicegraph_service.output.agreement.pairs import TIES_SAY, references_say
from spicegraph_service.output.studies import Column, Grid, to_rich
from spicegraph_service.output.tables import rendered
from spicegraph_service.output.terminal import printable, write_stdout


def protocols() -> None:
    """List the protocols: what each averages and removes, and where it comes from."""
    captions = Grid(
        "For rated captions (agree captions --protocol)",
        (Column("Protocol", "text"), Column("Coefficient", "text"), Column("What it does", "text")),
        [
            (
                each.name,
                COEFFICIENTS[each.coefficient].label,
                f"{each.about} In short: {RATINGS_SAY[each.ratings]}; {OWN_SAY[each.own]}. {each.source}",
            )
            for each in CAPTION_PROTOCOLS.values()
        ],
    )
    pairs = Grid(
        "For pairs (agree pairs --protocol)",
        (
            Column("Protocol", "text"),
            Column("Ties", "text"),
            Column("References", "text"),
            Column("What it does", "text"),
        ),
        [
            (each.name, TIES_SAY[each.ties], references_say(each), f"{each.about} {each.source}")
            for each in PAIR_PROTOCOLS.values()
        ],
    )
    write_stdout(rendered(part for grid in (captions, pairs) for part in (Text(grid.title), to_rich(grid, printable))))
