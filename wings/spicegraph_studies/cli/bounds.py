"""``spicegraph bounds``: captions in, how high and how low scores can go out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.records import read_lines
from spicegraph_scorer.readers.references import read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS
from spicegraph_service import kit
from spicegraph_studies.bounds import SUBSTITUTES, BoundsStudy, Lower, Trial, find_bounds, lower_trials, system
from spicegraph_studies.bounds.corpora import drawn, is_corpus, split_hyphens, with_own_frequencies
from spicegraph_studies.cli import StudyOptions
from spicegraph_studies.pages.bounds import BOUNDS_TABLES, bounds_study
from spicegraph_studies.pages.corpora import corpora_study

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.readers.checks import Empty

_DRAWN_FROM = {"inter": "--other", "sentences": "--sentences", "gibberish-sentences": "--sentences"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyInput(kit.InputOptions):
    """The inputs of ``bounds``, whose ``--partial`` also leaves out images with too few captions.

    Input:
        partial: Leave out images that have too few captions or lack a result of any system.
    """

    partial: Annotated[bool, typer.Option("--partial")] = False

    def corpora(self, sources: Sequence[str]) -> list[str]:
        """Return the files if each is a corpus of its own: all hold references alone; else nothing."""
        files = [kit.system_name(source)[1] for source in sources]
        return files if not self.references and all(map(is_corpus, files)) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOptions:
    """Which captions of each image are studied, and in which form.

    Input:
        captions: Use only the first N captions of each image; default: all.
        draw: Use N captions of each image, drawn at random by --seed.
        keep_hyphens: Take well-known for one word, or for two, as the study of eight data sets does.
    """

    captions: Annotated[int | None, typer.Option(metavar="N")] = None
    draw: Annotated[int | None, typer.Option(metavar="N")] = None
    keep_hyphens: Annotated[bool, typer.Option("--keep-hyphens/--split-hyphens")] = True

    def form(self, seed: int) -> CaptionForm:
        """Return which captions are studied, and in which form."""
        if self.draw is not None and self.captions is not None:
            raise InputError("--captions, --draw: the first captions of an image, or some at random, choose one")
        return CaptionForm(self.draw or self.captions, self.draw is not None, self.keep_hyphens, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerOptions:
    """Which texts that fit no image are scored, and where they are from.

    Input:
        others: Another corpus, as for --references. May be given several times. Default: the other corpora.

    Lower bounds:
        sentences: General text, one sentence per line, such as the Brown corpus.
        lengths: Length of gibberish in words; may be given several times. Default: 10, and the mean length of the
            captions.
        per_image: How many texts each lower bound draws per image; default: one for each of its captions.
    """

    lower: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"Lower bounds, comma-separated: {', '.join(SUBSTITUTES)}; all, or none. inter needs --other, "
            "the two with sentences --sentences.",
        ),
    ] = "all"
    others: Annotated[list[str] | None, typer.Option("--other", metavar="FILE")] = None
    sentences: Annotated[str | None, typer.Option(metavar="FILE")] = None
    lengths: Annotated[list[int] | None, typer.Option("--length", metavar="N")] = None
    per_image: Annotated[int | None, typer.Option(metavar="N")] = None

    def wanted(self, form: CaptionForm, *, has_others: bool) -> Lower:
        """Return the lower bounds; ``has_others``: each corpus has the captions of the others."""
        return Lower(
            self._kinds({"--other": bool(self.others) or has_others, "--sentences": self.sentences is not None}),
            tuple(tuple(form.of_all(_captions_of(path))) for path in self.others or ()),
            tuple(form.of_all(filter(str.strip, read_lines(self.sentences)))) if self.sentences is not None else (),
            tuple(self.lengths) if self.lengths else (10, None),
            self.per_image,
            form.seed,
        )

    def _kinds(self, texts: Mapping[str, bool]) -> tuple[str, ...]:
        """Return the kinds that are named; ``texts`` says of each option whether there are such texts."""
        if self.lower == "all":  # those without their texts are left out later
            return tuple(SUBSTITUTES)
        kinds = tuple(name.strip() for name in self.lower.split(",") if name.strip()) if self.lower != "none" else ()
        for kind in kinds:
            option = _DRAWN_FROM.get(kind)
            if option is not None and not texts[option]:
                raise InputError(f"--lower: {kind} is drawn from the texts of {option} FILE, which is not given")
        return kinds


def bounds(
    sources: Annotated[list[str] | None, typer.Argument(metavar="[NAME=]INPUT...")] = None,
    *,
    given: StudyInput,
    scoring: kit.ScoringOptions,
    studied: FormOptions,
    lowest: LowerOptions,
    options: StudyOptions,
    parsing: kit.ParsingOptions,
) -> None:
    """Find how high and how low scores can go: people against people, systems, and texts that fit no image.

    Input:
        sources: Systems to compare with people, one file each, as for score. Without any: only people and lower bounds.
            Without --references, files that hold references alone are corpora, which are shown side by side.
    """
    inputs, names = sources or [], scoring.names
    write = options.writer(BOUNDS_TABLES)
    data = scoring.data()
    form = studied.form(options.seed)
    corpora = given.corpora(inputs)
    wanted = lowest.wanted(form, has_others=len(corpora) > 1)
    studies: dict[str, tuple[BoundsStudy, list[Trial]]] = {}
    if corpora:
        for name, path in zip(kit.system_names(inputs), corpora, strict=True):
            known = read_reference_files([path], limits=DEFAULT_LIMITS).of_split(given.split).captions
            studies[name] = form.study(known, partial=given.partial), []
    else:
        studies[""] = _read(inputs, given, form, empty=scoring.empty)
    results = {}
    with kit.warned_progress() as progress, kit.spread_over(parsing.workers) as spread, parsing.facts() as facts:
        for name, (study, systems) in studies.items():
            from_others = [tuple(chain(*each.captions)) for other, (each, _) in studies.items() if other != name]
            its_own = wanted if wanted.others else replace(wanted, others=tuple(from_others))
            found = find_bounds(
                study,
                [*systems, *lower_trials(study, its_own)],
                names,
                pipeline=facts,
                resampling=options.resampling,
                data=with_own_frequencies(data, study, names) if len(studies) > 1 else data,
                spread=spread,
                progress=progress,
            )
            results[name] = replace(found, signature={**found.signature, **form.signature()})
    first, *more = results.values()
    write(corpora_study(results) if more else bounds_study(first))


@dataclass(frozen=True, slots=True)
class CaptionForm:
    """Which captions of each image are studied, and in which form."""

    count: int | None  # ``None``: all
    at_random: bool
    keep_hyphens: bool
    seed: int

    def signature(self) -> dict[str, str]:
        """Return what is done to captions, if anything."""
        taken = {"drawn": f"{self.count} captions of each image, seed {self.seed}"} if self.at_random else {}
        return taken if self.keep_hyphens else {**taken, "hyphens": "split"}

    def of_all(self, texts: Iterable[str]) -> list[str]:
        """Return texts as they are studied."""
        return list(texts) if self.keep_hyphens else list(map(split_hyphens, texts))

    def study(self, captions: Mapping[ItemId, Sequence[str]], *, partial: bool) -> BoundsStudy:
        """Return the study of an image's captions."""
        texts = {image: self.of_all(of_image) for image, of_image in captions.items()}
        chosen = drawn(texts, self.count, self.seed) if self.at_random and self.count is not None else texts
        return BoundsStudy.of(chosen, first=self.count, partial=partial)


def _captions_of(path: str) -> Iterable[str]:
    return chain.from_iterable(read_reference_files([path], limits=DEFAULT_LIMITS).captions.values())


def _read(
    sources: Sequence[str], given: kit.InputOptions, form: CaptionForm, *, empty: Empty
) -> tuple[BoundsStudy, list[Trial]]:
    """Return the images with their captions, and the systems."""
    inputs = [given.system(source, empty=empty) for source in sources]
    known = _captions_of_people(inputs, given)
    texts = [dict(zip([i.id for i in e.items], form.of_all(i.candidate for i in e.items), strict=True)) for e in inputs]
    if given.partial:
        known = {name: captions for name, captions in known.items() if all(name in by_name for by_name in texts)}
    study = form.study(known, partial=given.partial)
    return study, [system(each.name, by_name, study) for each, by_name in zip(inputs, texts, strict=True)]


def _captions_of_people(inputs: Sequence[kit.System], given: kit.InputOptions) -> Mapping[ItemId, Sequence[str]]:
    """Return the captions of each image: those of --references, or those that all inputs have."""
    if given.references:
        return given.annotations().captions
    if not inputs:
        raise InputError("there are no captions: give --references, or inputs that contain references")
    known: dict[ItemId, Sequence[str]] = {}
    for name, item in [(each.name, item) for each in inputs for item in each.items]:
        if known.setdefault(item.id, item.references) != item.references:
            raise InputError(f"{name}: item {item.id!a} has different references in an earlier input")
    return known
