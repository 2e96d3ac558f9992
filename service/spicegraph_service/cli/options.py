"""What commands share: groups of options, what they are read as, and the systems that arguments name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

import typer

from spicegraph_parser.errors import InputError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, SCENE
from spicegraph_scorer.core.data import MetricData, with_spice_text
from spicegraph_scorer.core.tokens import SpiceText
from spicegraph_scorer.metrics import GROUPS, METRICS, metric_names, read_data
from spicegraph_scorer.readers import parse_columns, read_items
from spicegraph_scorer.readers.checks import Empty, notes_on
from spicegraph_scorer.readers.fields import Wanted
from spicegraph_scorer.readers.marks import ControlTokens
from spicegraph_scorer.readers.read import IdRule
from spicegraph_scorer.readers.references import Annotations, read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS
from spicegraph_service.engines import System
from spicegraph_service.engines.local import local_facts
from spicegraph_service.output.terminal import say, say_warning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.readers import Dataset
    from spicegraph_scorer.readers.tables import Columns
    from spicegraph_service.report.images import Pictures

MetricsOption = Annotated[
    str, typer.Option(metavar="NAMES", help=f"Comma-separated: {', '.join((*METRICS, *GROUPS))}.")
]
PipelineOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel="Parsing",
        help="What parses captions: en_caption (bundled, run without spaCy), or a spaCy pipeline by name or folder.",
    ),
]


class GraphStyle(StrEnum):
    """Whose scene graphs captions get."""

    SPICE = "spice"
    SCENE = "scene"


GraphStyleOption = Annotated[
    GraphStyle,
    typer.Option(
        rich_help_panel="Parsing",
        help="spice: graphs as SPICE 1.0 draws them, from the parses of --pipeline. scene: as people draw them, also "
        "of long descriptions and of charts, screens and the like, by a parser of its own.",
    ),
]


def parser_of(style: GraphStyle, pipeline: str) -> str:
    """Return the name of the pipeline that gives graphs of a style."""
    if style is GraphStyle.SPICE or pipeline == SCENE:
        return pipeline
    if pipeline != DEFAULT_PIPELINE:
        raise InputError(f"--graph-style scene has a parser of its own; it does not take --pipeline {pipeline}")
    return SCENE


ControlTokensOption = Annotated[
    ControlTokens | None,
    typer.Option(
        rich_help_panel="Input",
        help="What to do with captions that hold what models leave behind, such as <eos>, [PAD] or **: refuse the "
        "input, strip it off, or keep it, which scores it as words. Default: refuse; keep with --format spice.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """What is read beside the captions' own file, and how.

    Input:
        references: The references, if INPUT contains none: a file of any shape that spicegraph inputs knows, or plain
            text with one line per candidate. May be given several times.
        columns: The columns of tables and keys of JSON: id=NAME,candidate=NAME,references=NAME+NAME; a name may be a
            path such as doc.answer, or a column's number. Default: found by their usual names.
        delimiter: What separates the columns of CSV files, or none: lines are captions. Default: as the header shows.
        partial: Use only the images of --references that have a result.
        ids: How ids are compared with those of --references: as given; by the last number in them:
            COCO_val2014_000000000143.jpg is 143; or by stem: a/1.jpg is 1.
        split: The split of the references: test, val, train, restval. Default: the one of the results' ids.
        caption_language: The language of the captions, such as zh, in files that have several. Default: en.
        drop_empty_references: Drop empty references, with which lists of one length are padded.
    """

    references: Annotated[list[str] | None, typer.Option(metavar="FILE")] = None
    columns: Annotated[str | None, typer.Option(metavar="NAMES")] = None
    delimiter: Annotated[str | None, typer.Option(metavar="CHARACTER")] = None
    partial: Annotated[bool, typer.Option("--partial")] = False

    ids: Annotated[IdRule, typer.Option()] = IdRule.GIVEN
    control_tokens: ControlTokensOption = None
    split: Annotated[str | None, typer.Option("--split", metavar="NAME")] = None
    caption_language: Annotated[str | None, typer.Option(metavar="CODE")] = None
    drop_empty_references: Annotated[bool, typer.Option("--drop-empty-references")] = False

    def reading(self, language: str | None = None) -> ReadingOptions:
        """Return how files are read, as :func:`~spicegraph_scorer.read_items` and tasks take it.

        ``language``: what is scored, which is also what is read of files with captions in several.
        """
        return {
            "references": self.references,
            "columns": self.table,
            "partial": self.partial,
            "ids": self.ids,
            "split": self.split,
            "caption_language": self.caption_language or language,
            "drop_empty_references": self.drop_empty_references,
        }

    @property
    def table(self) -> Columns | None:
        """How tables are read; ``None``: as they show themselves."""
        return parse_columns(self.columns, delimiter=self.delimiter)

    def annotations(self) -> Annotations:
        """Read the references alone."""
        wanted = Wanted("references", self.table, self.caption_language, self.drop_empty_references)
        annotations = read_reference_files(self.references or (), limits=DEFAULT_LIMITS, wanted=wanted)
        for note in annotations.notes:
            say(note)
        return annotations.of_split(self.split)

    def system(self, source: str, *, empty: Empty, name: str | None = None, language: str | None = None) -> System:
        """Read a system; its name stands before the file (``mine=results.json``), or is given, or is the file's own."""
        called, dataset = self.read(source, empty=empty, language=language)
        return System(name or called, dataset.items)

    def read(self, source: str, *, empty: Empty, language: str | None, several: bool = False) -> tuple[str, Dataset]:
        """Return a file's name and what is in it; ``several``: images may have several candidates."""
        default, path = system_name(source)
        dataset = read_items(
            path, empty=empty, control_tokens=self.control_tokens or "refuse", several=several, **self.reading(language)
        )
        for line in dataset.describe():
            say(line)
        for note in notes_on(path, dataset.items, language=language):
            say_warning(note)
        return default, dataset


class ReadingOptions(TypedDict):
    """How files are read."""

    references: list[str] | None
    columns: Columns | None
    partial: bool
    ids: IdRule
    split: str | None
    caption_language: str | None
    drop_empty_references: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedInputOptions(InputOptions):
    """The same for commands that write pages, which have another ``--split``.

    Input:
        split: The split of the references: test, val, train, restval. Default: the one of the results' ids.
    """

    split: Annotated[str | None, typer.Option("--references-split", metavar="NAME")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """Which metrics a command computes, and from which data.

    Metrics:
        spice_text: What SPICE parses: captions as written, as its own program does, or the tokens that the COCO toolkit
            gives it. Default: coco with --metrics coco, else written.
        categories: TOML file with your own SPICE categories: word lists, or everything under a WordNet synset.
        frequencies: CIDEr's document frequencies, from spicegraph idf; default: counted in the references.
        vectors: The vectors of SPICE-G and CAPTURE, from spicegraph vectors build; default: those of COCO train2014.
        meaning: The table by which SPICE-G compares captions as wholes; default: the bundled
            one, for English.
        instances: COCO instances, such as instances_val2014.json: for chair, the objects of each image, beside those
            that its references mention.
        language: What captions are in, by code: fr, es, de ... Default: what --pipeline reads. SPICE looks words up in
            nltk's data of that language.
        reference_language: For captions in another language, references in English: en. SPICE matches what both
            languages share.
        cider_scale: The factor of CIDEr; 1 gives the values of its paper's equations. Default: 10.
    """

    metrics: MetricsOption = "spice"
    spice_text: Annotated[SpiceText | None, typer.Option()] = None
    categories: Annotated[str | None, typer.Option(metavar="FILE")] = None
    frequencies: Annotated[str | None, typer.Option("--idf", metavar="FILE")] = None
    vectors: Annotated[str | None, typer.Option(metavar="FILE")] = None
    meaning: Annotated[str | None, typer.Option(metavar="FILE")] = None
    instances: Annotated[str | None, typer.Option(metavar="FILE")] = None
    language: Annotated[str | None, typer.Option(metavar="CODE")] = None
    reference_language: Annotated[str | None, typer.Option(metavar="CODE")] = None
    cider_scale: Annotated[float | None, typer.Option(metavar="NUMBER")] = None

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, groups spelled out; an :class:`InputError` where a name is unknown, or there is none."""
        return metric_names(self.asked)

    @property
    def files(self) -> list[str | None]:
        """The files that metrics read."""
        return [getattr(self, name) for name in METRIC_DATA if name not in _NAMED]

    @property
    def asked(self) -> tuple[str, ...]:
        """What ``--metrics`` names."""
        return tuple(name.strip() for name in self.metrics.split(",") if name.strip())

    def data(self, *more: str) -> MetricData:
        """Read what the metrics take, and those of ``more``, which the command computes beside those asked for."""
        computed = {*self.names, *more}
        given = {name: value for name in METRIC_DATA if (value := getattr(self, name)) is not None}
        for name, value in given.items():
            users = [metric for metric, entry in METRICS.items() if name in entry.kind.needs.data]
            if name != "language" and computed.isdisjoint(users):
                do = "does" if len(users) == 1 else "do"
                raise InputError(
                    f"{METRIC_DATA[name]} {value}: none of the chosen metrics uses it; {', '.join(users)} {do}"
                )
        named = {name: given.pop(name, None) for name in _NAMED}
        return with_spice_text(self.asked, replace(read_data(given), **named))


_NAMED: Final = ("spice_text", "language", "reference_language", "cider_scale")  # fields that are no files


EmptyOption = Annotated[
    Empty,
    typer.Option(
        rich_help_panel="Input",
        help="What to do with an empty candidate: refuse the input, or score it as the original programs do: zero.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOptions(MetricOptions):
    """Which metrics a command computes for items that it reads."""

    empty: EmptyOption = "refuse"


METRIC_DATA: Final[Mapping[str, str]] = {
    "spice_text": "--spice-text",
    "frequencies": "--idf",
    "categories": "--categories",
    "vectors": "--vectors",
    "meaning": "--meaning",
    "instances": "--instances",
    "language": "--language",
    "reference_language": "--reference-language",
    "cider_scale": "--cider-scale",
}  # For each field of ``MetricData`` the option that gives it.


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What only an HTML page has.

    Page:
        images: Show the images: a folder, or an address with {id} or {id:012} in it.
        images_url: Where the files of the folder of --images will stand. Default: where they are, relative to the page.
        embed_images: Put the files of the folder of --images into the page.
        split_page: Put the details of the images into a folder next to the page, for very large sets.
    """

    images: Annotated[str | None, typer.Option(metavar="FOLDER|URL")] = None
    images_url: Annotated[str | None, typer.Option(metavar="URL")] = None
    embed_images: Annotated[bool, typer.Option("--embed-images")] = False
    split_page: Annotated[bool, typer.Option("--split")] = False

    def pictures(self, output: str | None) -> Pictures | None:
        """Return how the page shows images; ``None``: it shows none."""
        if self.embed_images and self.images_url is not None:
            raise InputError("--embed-images, --images-url: images are in the page or at an address, choose one")
        if self.images is None:
            if self.embed_images or self.images_url is not None:
                option = "--embed-images" if self.embed_images else "--images-url"
                raise InputError(f"{option}: which images? Name their folder with --images")
            return None
        from spicegraph_service.report.images import Pictures  # noqa: PLC0415 (pages alone need it)

        return Pictures(self.images, self.images_url, self.embed_images, Path(output).parent if output else Path())


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsingOptions:
    """How captions are parsed.

    Speed:
        workers: Number of processes that parse captions.
        cache: Keep parses between runs: an SQLite file, or redis://HOST.
    """

    workers: Annotated[int, typer.Option(min=1)] = 1
    cache: Annotated[str, typer.Option(metavar="PATH|URL|none", envvar="SPICEGRAPH_CACHE", show_envvar=True)] = "none"
    pipeline: PipelineOption = DEFAULT_PIPELINE
    graph_style: GraphStyleOption = GraphStyle.SPICE

    @property
    def parser(self) -> str:
        """The name of the pipeline that parses: that of ``--pipeline``, or the scene parser."""
        return parser_of(self.graph_style, self.pipeline)

    @property
    def cache_place(self) -> str | None:
        """Where parses are kept, in a folder that exists; ``None``: nowhere."""
        if self.cache == "none":
            return None
        if "://" not in self.cache and not (folder := Path(self.cache).absolute().parent).is_dir():
            raise InputError(f"--cache {self.cache}: there is no folder {folder}")
        return self.cache

    def facts(self) -> AbstractContextManager[FactSource]:
        """Give what parses captions."""
        return local_facts(self.parser, workers=self.workers, cache=self.cache_place)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOptions:
    """Where the work is done.

    Server:
        server: Have this server do the work (HOST:PORT); the files are read here.
        token: Your token for --server; the environment variable is safer.
        tls: Use TLS with the system's certificate authorities.
        tls_ca: Use TLS with this certificate authority (PEM).
    """

    server: Annotated[str | None, typer.Option(metavar="HOST:PORT")] = None
    token: Annotated[str, typer.Option(metavar="TOKEN", envvar="SPICEGRAPH_TOKEN", show_envvar=True)] = ""
    tls: Annotated[bool, typer.Option("--tls", envvar="SPICEGRAPH_TLS")] = False
    tls_ca: Annotated[Path | None, typer.Option(metavar="FILE", envvar="SPICEGRAPH_TLS_CA")] = None


def system_names(sources: Sequence[str]) -> tuple[str, ...]:
    """Return what systems are called, all differently: by the file's name, else by the argument, else with a number."""
    short = [system_name(source)[0] for source in sources]
    names: list[str] = []
    for source, name in zip(sources, short, strict=True):
        chosen = name if short.count(name) == 1 else source
        taken = {*names, *(other for other in short if short.count(other) == 1 and other != name)}
        spellings = (chosen, *(f"{chosen} ({number})" for number in range(2, len(sources) + 2)))
        names.append(next(spelling for spelling in spellings if spelling not in taken))
    return tuple(names)


def system_name(source: str) -> tuple[str, str]:
    """Return the name and the file that an argument such as ``mine=results.json`` holds."""
    name, equals, path = source.partition("=")
    return (name, path) if equals and name and "/" not in name else (PurePath(source).stem, source)
