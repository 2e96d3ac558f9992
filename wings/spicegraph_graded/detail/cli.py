"""``spicegraph differences``: what descriptions say wrong, what nobody else says, and what they leave out."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from spicegraph_graded.detail.differences import differences_of
from spicegraph_service import kit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spicegraph_graded.detail.differences import Differences
    from spicegraph_scorer.core.items import ItemId


class DifferenceFormat(StrEnum):
    """How differences are written."""

    TEXT = "text"
    JSONL = "jsonl"


_UNNAMED: Final = 0.1  # of correctness, from which on a silent item says so
_BY_ENDING: Final = {".jsonl": DifferenceFormat.JSONL, ".json": DifferenceFormat.JSONL, ".txt": DifferenceFormat.TEXT}


def _described(item_id: ItemId, differing: Differences, least: float) -> Iterator[str]:
    """Yield the lines that say to people how an item differs from its references."""
    scores = f"correctness {differing.correctness:.2f}, coverage {differing.coverage:.2f}"
    if not differing.differences and differing.other_correctness >= _UNNAMED:
        scores += f"; {differing.other_correctness:.2f} of correctness is lost to claims too unsure to name"
    yield f"{kit.printable(str(item_id))}  {scores}"
    for difference in differing.differences:
        if difference.severity >= least:
            said = " -> ".join(kit.printable(words) for words in (difference.claim, difference.reference) if words)
            yield f"  {difference.kind:12}  {difference.aspect:9}  {difference.severity:.2f}  {said}"


def differences(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="Descriptions, as for score.")],
    *,
    given: kit.InputOptions,
    form: Annotated[
        DifferenceFormat | None,
        typer.Option(
            "--format", help="text for people, or a JSON object a line. Default: that of -o's ending, else text."
        ),
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")] = None,
    least: Annotated[
        float, typer.Option("--least", min=0, max=1, help="Leave out differences that are less severe, in text.")
    ] = 0.0,
    empty: kit.EmptyOption = "refuse",
    parsing: kit.ParsingOptions,
) -> None:
    """Find what descriptions say wrong, what their references do not say, and what they leave out."""
    chosen = form or kit.format_by_ending(output, _BY_ENDING, DifferenceFormat.TEXT)
    if output is not None:
        kit.check_output(output)
    with kit.warned_progress() as progress:
        task = kit.Task(
            source,
            ("detail",),
            parsing.parser,
            workers=parsing.workers,
            cache=parsing.cache_place,
            **given.reading(),
            control_tokens=given.control_tokens or "refuse",
            empty=empty,
            explain=True,
            progress=progress,
            say=kit.say,
        )
        result = kit.score_here(task)
    lines: list[str] = []
    for item, statistic in zip(result.items, result.runs[0].statistics, strict=True):
        differing = differences_of(statistic.evidence, item.candidate, item.references)
        if chosen is DifferenceFormat.JSONL:
            lines.append(msgspec.json.encode({"id": item.id, **differing.to_dict()}).decode())
        else:
            lines += _described(item.id, differing, least)
    text = "".join(f"{line}\n" for line in lines)
    if output is None:
        kit.write_stdout(text)
    else:
        kit.write_text(text, output)
