"""``spicegraph bounds``: captions in, how high and how low scores can go out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.records import read_lines
from spicegraph_scorer.readers.references import read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS
from spicegraph_service import kit
from spicegraph_studies.bounds import SUBSTITUTES, BoundsStudy, Lower, Trial, find_bounds, lower_trials, system
from spicegraph_studies.cli import StudyOptions
from spicegraph_studies.pages.bounds import BOUNDS_TABLES, bounds_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.readers.checks import Empty

_DRAWN_FROM = {"inter": "--other", "sentences": "--sentences", "gibberish-sentences": "--sentences"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyInput(kit.InputOptions):
    """The inputs of ``bounds``, of which ``--partial`` also leaves out images with too few captions.

    Options:
        partial: Leave out images that have too few captions or lack a result of any system.
    """

    partial: Annotated[bool, typer.Option("--partial")] = False


def bounds(
    sources: Annotated[list[str] | None, typer.Argument(metavar="[NAME=]INPUT...")] = None,
    *,
    given: StudyInput,
    scoring: kit.ScoringOptions,
    captions: Annotated[int | None, typer.Option(metavar="N")] = None,
    lower: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"Lower bounds, comma-separated: {', '.join(SUBSTITUTES)}; all, or none. inter needs --other, "
            "the two with sentences --sentences.",
        ),
    ] = "all",
    others: Annotated[list[str] | None, typer.Option("--other", metavar="FILE")] = None,
    sentences: Annotated[str | None, typer.Option(metavar="FILE")] = None,
    lengths: Annotated[list[int] | None, typer.Option("--length", metavar="N")] = None,
    per_image: Annotated[int | None, typer.Option(metavar="N")] = None,
    options: StudyOptions,
    parsing: kit.ParsingOptions,
) -> None:
    """Find how high and how low scores can go: people against people, systems, and texts that fit no image.

    Options:
        sources: Systems to compare with people, one file each, as for score. Without any: only people and lower bounds.
        captions: Use only the first N captions of each image; default: all.
        others: Another corpus, as for --references. May be given several times.
        sentences: General text, one sentence per line, such as the Brown corpus.
        lengths: Length of gibberish in words; may be given several times. Default: 10, and the mean length of the
            captions.
        per_image: How many texts each lower bound draws per image; default: one for each of its captions.
    """
    names = scoring.names
    write = options.writer(BOUNDS_TABLES)
    data = scoring.data()
    texts = {"--other": bool(others), "--sentences": sentences is not None}
    kinds = tuple(name.strip() for name in lower.split(",") if name.strip()) if lower != "none" else ()
    for kind in kinds:
        option = _DRAWN_FROM.get(kind)
        if option is not None and not texts[option]:
            raise InputError(f"--lower: {kind} is drawn from the texts of {option} FILE, which is not given")
    wanted = Lower(
        tuple(SUBSTITUTES) if lower == "all" else kinds,  # of all, those without their texts are left out later
        tuple(
            tuple(chain.from_iterable(read_reference_files([path], limits=DEFAULT_LIMITS).captions.values()))
            for path in others or ()
        ),
        tuple(line for line in read_lines(sentences) if line.strip()) if sentences is not None else (),
        tuple(lengths) if lengths else (10, None),
        per_image,
        options.seed,
    )
    study, systems = _read(sources or [], given, first=captions, empty=scoring.empty)
    with kit.warned_progress() as progress, kit.spread_over(parsing.workers) as spread, parsing.facts() as facts:
        results = find_bounds(
            study,
            [*systems, *lower_trials(study, wanted)],
            names,
            pipeline=facts,
            resampling=options.resampling,
            data=data,
            spread=spread,
            progress=progress,
        )
    write(bounds_study(results))


def _read(
    sources: Sequence[str], given: kit.InputOptions, *, first: int | None, empty: Empty
) -> tuple[BoundsStudy, list[Trial]]:
    """Return the images with their captions, and the systems."""
    inputs = [given.system(source, empty=empty) for source in sources]
    known: dict[ItemId, Sequence[str]]
    if given.references:
        known = dict(given.annotations().captions)
    elif inputs:
        known = {}
        for name, item in [(each.name, item) for each in inputs for item in each.items]:
            if known.setdefault(item.id, item.references) != item.references:
                raise InputError(f"{name}: item {item.id!a} has different references in an earlier input")
    else:
        raise InputError("there are no captions: give --references, or inputs that contain references")
    texts = [{item.id: item.candidate for item in each.items} for each in inputs]
    if given.partial:
        known = {name: captions for name, captions in known.items() if all(name in by_name for by_name in texts)}
    study = BoundsStudy.of(known, first=first, partial=given.partial)
    return study, [system(each.name, by_name, study) for each, by_name in zip(inputs, texts, strict=True)]
