"""Scores of dense video captions as tables, and as long tables for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import counted
from spicegraph_service.kit import Column, Grid, headings
from spicegraph_studies.pages.output import Section, Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_service.kit import Cell
    from spicegraph_studies.dense import Dense

DENSE_TABLES: Final = ("figures", "videos")  # the tables that CSV can hold; the first is the default

_CAPTIONS: Final = (
    "Each caption against every reference that overlaps it by the threshold or more; a video's value is that of its "
    "pairs together, and captions without a reference lower it.",
    "Precision, Recall: captions that overlap a reference by more, and references that a caption does.",
)
_SODA: Final = (
    "Captions and references matched one to one in the order of time; overlap times score. The best file of references "
    "by video; F of each file: the mean of the files' F.",
)


def dense_study(found: Dense) -> Study:
    """Return the study of one system."""
    sections = [Section("captions", "Captions", (), (_captions(found),))]
    if found.soda:
        rows = [(name, s.precision, s.recall, s.f1, s.mean_f1) for name, s in found.soda.items()]
        columns = headings("SODA by|text", "Precision|score", "Recall|score", "F|score", "F of each file|score")
        sections.append(Section("soda", "In the order of time", (), (Grid("SODA", columns, rows, _SODA),)))
    if found.paragraphs:
        grid = Grid("Paragraphs", headings("Score|text", "value|score"), list(found.paragraphs.items()))
        sections.append(Section("paragraphs", "Paragraphs", (), (grid,)))
    captions = sum(count for _, count, _ in found.videos)
    names = list(found.videos[0][2])
    videos = [(name, count, *(values[key] for key in names)) for name, count, values in found.videos]
    return Study(
        "Dense video captions",
        [f"{counted(captions, 'caption')} of {counted(len(found.videos), 'video')}."],
        sections,
        {
            "figures": Grid("figures", headings("part|text", "figure|text", "at|text", "value"), list(_long(found))),
            "videos": Grid("videos", headings("video|text", "captions|count", *names), videos),
        },
        found.to_dict(),
        found.signature,
    )


def _captions(found: Dense) -> Grid:
    means = found.means()
    columns = (Column("Score", "text"), *(Column(f"{t:g}", "score") for t in found.thresholds), Column("mean", "score"))
    return Grid("Captions by least overlap", columns, [(n, *v, means[n]) for n, v in found.captions.items()], _CAPTIONS)


def _long(found: Dense) -> Iterator[Sequence[Cell]]:
    means = found.means()
    for name, values in found.captions.items():
        for threshold, value in zip(found.thresholds, values, strict=True):
            yield "captions", name, f"{threshold:g}", value
        yield "captions", name, "mean", means[name]
    for name, soda in found.soda.items():
        yield from (("soda", name, part, getattr(soda, part)) for part in ("precision", "recall", "f1", "mean_f1"))
    yield from (("paragraphs", name, "", value) for name, value in found.paragraphs.items())
