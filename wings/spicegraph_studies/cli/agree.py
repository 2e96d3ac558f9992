"""``spicegraph agree``: how well metrics, and people, agree with people."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from spicegraph_parser.errors import InputError, counted
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.metrics import metric_names
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.marks import kept_note
from spicegraph_scorer.readers.references import read_reference_files
from spicegraph_scorer.readers.source import DEFAULT_LIMITS
from spicegraph_service import kit
from spicegraph_studies.agreement.captions import agree_on_captions
from spicegraph_studies.agreement.coefficients import COEFFICIENTS
from spicegraph_studies.agreement.hallucinations import agree_on_hallucinations, read_marked
from spicegraph_studies.agreement.judgements import JudgementScoring
from spicegraph_studies.agreement.pairwise import ALL, agree_on_pairs
from spicegraph_studies.agreement.protocols import (
    CAPTION_PROTOCOLS,
    HALLUCINATION_PROTOCOLS,
    PAIR_PROTOCOLS,
    CaptionProtocol,
    Own,
    PairProtocol,
    Ratings,
    ReferenceChoice,
    Ties,
    caption_protocol,
    pair_protocol,
    protocol_of,
)
from spicegraph_studies.agreement.reading import read_judgements, read_pairs, read_system_scores, read_system_table
from spicegraph_studies.agreement.systems import agree_on_systems
from spicegraph_studies.cli import OutputOptions, StudyOptions
from spicegraph_studies.pages import agreement as pages
from spicegraph_studies.pages.words import WORD_TABLES, word_study
from spicegraph_studies.words import find_word_agreement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_studies.agreement.pairwise import PairAgreement
    from spicegraph_studies.agreement.reading import SystemTable

NO_METRIC = "none"
CoefficientName = Literal["tau_b", "tau_c", "pearson", "spearman"]  # the keys of ``COEFFICIENTS``

agree = typer.Typer(
    help="Compare metrics with human judgements: ratings of captions, pairs, marked words, systems.",
    no_args_is_help=True,
)
_ALL = "all"
_MANY_TIES = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOptions(kit.MetricOptions):
    """Which metrics are computed for captions that people have judged.

    Metrics:
        metrics: Metrics to compute, comma-separated, as for score; none: use only the scores in the input.
    """

    metrics: Annotated[str, typer.Option(metavar="NAMES")] = "spice"

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, groups spelled out; empty if none is to be computed."""
        return () if self.metrics.strip() == NO_METRIC else metric_names(self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedOptions(JudgedOptions):
    """Which metrics are computed for captions that people have judged, some of which may be empty."""

    empty: kit.EmptyOption = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedParsing(kit.ParsingOptions):
    """How captions with marked words are parsed: as scene graphs, whose verdicts find more of these words.

    Parsing:
        graph_style: Whose scene graphs. Default: scene; with another --pipeline: spice.
    """

    graph_style: Annotated[kit.GraphStyle | None, typer.Option()] = None  # type: ignore[assignment]  # no style is named

    @property
    def parser(self) -> str:
        """The name of the pipeline that parses."""
        unnamed = kit.GraphStyle.SCENE if self.pipeline == DEFAULT_PIPELINE else kit.GraphStyle.SPICE
        return kit.ParsingOptions(pipeline=self.pipeline, graph_style=self.graph_style or unnamed).parser


@contextmanager
def computing(scoring: JudgedOptions, parsing: kit.ParsingOptions) -> Iterator[JudgementScoring]:
    """Give what computes the metrics, with a progress bar on a terminal."""
    names, data = scoring.names, scoring.data()
    empty = scoring.empty if isinstance(scoring, RatedOptions) else "refuse"
    with kit.warned_progress() as progress, parsing.facts() as facts:
        yield JudgementScoring(names, facts, data, progress, empty)


def _warn_of_captions(source: str, captions: Iterable[str]) -> None:
    texts = list(captions)
    if empty := sum(not text.strip() for text in texts):
        kit.say_warning(f"{source}: {counted(empty, 'empty candidate')} scored as zero")
    if note := kept_note(texts):
        kit.say_warning(f"{source}: {note}")


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Return the numbers of a comma-separated option."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and int(part) > 0)]
    if wrong or not parts:
        raise InputError(f"{option}: expected whole numbers such as 1,2,5, got {text!a:.60}")
    return tuple(dict.fromkeys(map(int, parts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionChoices:
    """The protocol for rated captions, and what is done otherwise.

    Protocol:
        coefficient: The coefficient that the tests compare. Default: the protocol's choice.
        ratings: Use every single rating, or the mean rating of each caption. Default: the protocol's choice.
        own: How to treat captions that are also a reference of their image. Default: the protocol's choice.
    """

    protocol: Annotated[
        str, typer.Option(metavar="NAME", help=f"What is averaged and removed: {', '.join(CAPTION_PROTOCOLS)}.")
    ] = "plain"
    coefficient: Annotated[CoefficientName | None, typer.Option()] = None
    ratings: Annotated[Ratings | None, typer.Option()] = None
    own: Annotated[Own | None, typer.Option()] = None

    @property
    def chosen(self) -> CaptionProtocol:
        """The protocol, as changed by the other options."""
        named = caption_protocol(self.protocol)
        wanted = {"coefficient": self.coefficient, "ratings": self.ratings, "own": self.own}
        given = {name: value for name, value in wanted.items() if value is not None and getattr(named, name) != value}
        if not given:
            return named
        said = ", ".join(f"{name} {value}" for name, value in given.items())
        about = f"As {self.protocol}, changed by options: {said}."
        changes = {**given, "name": f"{self.protocol}, changed", "about": about}
        return replace(named, **changes)  # type: ignore[arg-type]  # the options have the fields' types


@agree.command()
def captions(
    sources: Annotated[list[str], typer.Argument(metavar="INPUT")],
    *,
    choices: CaptionChoices,
    references: Annotated[list[str] | None, typer.Option(metavar="FILE")] = None,
    rating: Annotated[str | None, typer.Option(metavar="FIELD")] = None,
    scoring: RatedOptions,
    options: StudyOptions,
    parsing: kit.ParsingOptions,
) -> None:
    """Correlate metrics with ratings of captions: Kendall tau-b and tau-c, Pearson, Spearman.

    Every number comes with its protocol, ties, interval over images, and paired tests between the metrics.

    Input:
        sources: JSON Lines with candidate, references and ratings; Flickr8k's or Composite's annotation files;
            CLIPScore's JSON; several files are one set; - reads standard input.
        references: For Flickr8k's and Composite's files: Flickr8k.token.txt and its like, or COCO annotations. May be
            given several times.
        rating: The field that holds the ratings. Default: ratings, rating, human_score or score.
    """
    chosen = choices.chosen
    write = options.writer(pages.CAPTION_TABLES)
    judged = read_judgements(*sources, references=references or (), rating=rating, empty=scoring.empty)
    _warn_of_captions(judged.source, (each.candidate for each in judged.items))
    with computing(scoring, parsing) as computed:
        agreement = agree_on_captions(judged.items, chosen, scoring=computed, resampling=options.resampling)
    write(pages.caption_study(agreement, judged))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChoices:
    """The protocol for pairs, and what is done otherwise.

    Protocol:
        ties: How to count a pair whose captions score equally. Default: the protocol's choice.
        own: How to treat references that equal a caption. Default: the protocol's choice.
        count: References per pair. Default: the protocol's choice.
        choice: Which references to use, if fewer than all. Default: the protocol's choice.
        reference_draws: Random draws of references to average over. Default: the protocol's choice.
        curve: Also compute the accuracy with these numbers of references, such as 1,2,5,10,48.
    """

    protocol: Annotated[
        str, typer.Option(metavar="NAME", help=f"How ties and references count: {', '.join(PAIR_PROTOCOLS)}.")
    ] = "plain"
    ties: Annotated[Ties | None, typer.Option()] = None
    own: Annotated[Own | None, typer.Option()] = None
    count: Annotated[str | None, typer.Option("--references", metavar="NUMBER|all")] = None
    choice: Annotated[ReferenceChoice | None, typer.Option()] = None
    reference_draws: Annotated[int | None, typer.Option(min=1)] = None
    curve: Annotated[str | None, typer.Option(metavar="NUMBERS")] = None

    @property
    def chosen(self) -> PairProtocol:
        """The protocol, as changed by the other options."""
        given = pair_protocol(self.protocol)
        chosen = replace(
            given,
            ties=self.ties or given.ties,
            own=self.own or given.own,
            references=given.references if self.count is None else self._references(self.count),
            choice=self.choice or given.choice,
            draws=self.reference_draws or given.draws,
        )
        if chosen == given:
            return given
        return replace(chosen, name=f"{given.name}, changed", about=f"As {given.name}, changed by options.")

    def _references(self, count: str) -> int | None:
        """Return the number of references; ``None``: all."""
        if count.strip() == _ALL:
            return None
        number, *more = whole_numbers(count, "--references")
        if more:
            raise InputError(f"--references: expected one number or {_ALL!r}, got {count!a:.60}; see --curve")
        return number

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of references of the curve."""
        return whole_numbers(self.curve, "--curve") if self.curve is not None else ()


@agree.command()
def pairs(
    sources: Annotated[list[str], typer.Argument(metavar="INPUT")],
    *,
    annotations: Annotated[list[str] | None, typer.Option(metavar="FILE")] = None,
    choices: PairChoices,
    scoring: RatedOptions,
    options: StudyOptions,
    parsing: kit.ParsingOptions,
) -> None:
    """Count how often metrics prefer the caption that people prefer, by category of pair.

    For PASCAL-50S (HC, HI, HM, MM) and hard negatives such as FOIL, SugarCrepe and VALSE.

    Input:
        sources: JSON Lines with captions (two), preferred or label, references and category; the folder with
            PASCAL-50S's consensus_pascal.mat and pair_pascal.mat; SugarCrepe's, VALSE's or FOIL's JSON; several files
            are one set; - reads standard input.
        annotations: For SugarCrepe, VALSE and FOIL: COCO annotations with the references. May be given several times.
    """
    chosen, counts = choices.chosen, choices.counts
    write = options.writer(pages.PAIR_TABLES)
    judged = read_pairs(*sources, annotations=annotations or (), empty=scoring.empty)
    _warn_of_captions(judged.source, (text for each in judged.items for text in each.captions))
    with computing(scoring, parsing) as computed:
        agreement = agree_on_pairs(judged.items, chosen, scoring=computed, resampling=options.resampling, curve=counts)
    if chosen.ties is Ties.RIGHT:
        _warn_of_ties(agreement)
    write(pages.pair_study(agreement, judged))


def _warn_of_ties(agreement: PairAgreement) -> None:
    """Say where equal scores, which count as right, make up much of an accuracy."""
    for accuracy in agreement.accuracies:
        share = accuracy.tied / accuracy.pairs if accuracy.pairs and accuracy.category == ALL else 0.0
        if share > _MANY_TIES:
            kit.say_warning(
                f"{share:.1%} of the pairs have equal {accuracy.metric}, and {agreement.protocol.name} counts these as "
                "right; --protocol pascal50s-clipscore lets a coin decide them"
            )


@agree.command()
def hallucinations(
    sources: Annotated[list[str], typer.Argument(metavar="INPUT")],
    *,
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help=f"Which words are compared: {', '.join(HALLUCINATION_PROTOCOLS)}.")
    ] = "hat",
    scoring: JudgedOptions,
    options: StudyOptions,
    parsing: MarkedParsing,
) -> None:
    """Count how well metrics find captions with a hallucinated word, and the word itself.

    Average precision and AUC for every metric; SPICE-G (by its verdicts) and CHAIR also say which word is wrong. With
    SPICE-G come the probabilities above which 5, 10 and 20 % of the unmarked words are flagged.

    Protocol:
        sources: JSON Lines with candidate, references, words and hallucinated (true or false for each word), or
            captions (two) and label; HAT's and nocaps-FOIL's JSON; several files are one set; - reads standard input.
    """
    chosen = protocol_of(HALLUCINATION_PROTOCOLS, protocol, "hallucinations")
    if not scoring.names:
        raise InputError("--metrics none: there are no given scores of marked captions; name a metric")
    write = options.writer(pages.HALLUCINATION_TABLES)
    judged = read_marked(*sources)
    with computing(scoring, parsing) as computed:
        agreement = agree_on_hallucinations(judged.items, chosen, scoring=computed, resampling=options.resampling)
    write(pages.hallucination_study(agreement, judged))


@agree.command()
def words(
    captions: Annotated[str, typer.Argument(metavar="CAPTIONS")],
    *,
    system: Annotated[str | None, typer.Option(metavar="FILE")] = None,
    first: Annotated[int | None, typer.Option("--captions", metavar="N", min=2)] = None,
    count: Annotated[int, typer.Option("--words", metavar="N", min=1)] = 1000,
    show: Annotated[int, typer.Option(metavar="N", min=0)] = 25,
    options: OutputOptions,
) -> None:
    """Measure how far people agree on nouns, verbs and adjectives, and how precise a system is at people's recall.

    Precision and recall of one caption against 1, 2 ... others, and the model of the COCO captions paper that explains
    them.

    Input:
        captions: People's captions, as score takes references.
        system: A system's captions of the same images, one or several of each.
        first: Use only the first N captions of each image. Default: as many as every image has.
        count: How many words, the most frequent ones.
        show: How many of them a table shows; .csv, .json and .html have all.
    """
    write = options.writer(WORD_TABLES)
    people = read_reference_files([captions], limits=DEFAULT_LIMITS).captions
    theirs: dict[ItemId, list[str]] = {}
    if system is not None:
        dataset = read_items(system, references=captions, several=True, control_tokens="keep")
        images = dataset.images or [item.id for item in dataset.items]
        for image, item in zip(images, dataset.items, strict=True):
            theirs.setdefault(image, []).append(item.candidate)
    own = theirs if system is not None else None
    write(word_study(find_word_agreement(people, own, first=first, words=count), show))


@agree.command()
def systems(
    human: Annotated[str, typer.Argument(metavar="HUMAN")],
    scores: Annotated[list[str], typer.Argument(metavar="[NAME=]SCORES")],
    *,
    metrics: Annotated[str | None, typer.Option(metavar="NAMES")] = None,
    options: StudyOptions,
) -> None:
    """Correlate corpus scores with human results over systems: Pearson, Spearman, Kendall, with p-values.

    For instance the entries of a challenge with COCO's M1 to M5.

    Input:
        human: A table of human results: CSV or JSON with system and M1, M2 ...; a column words holds the mean number of
            words of a system's captions.
        scores: One file per system, the JSON that spicegraph score writes; or a table with a column system and one
            column per metric.
        metrics: Use only these scores, comma-separated. Default: all.
    """
    write = options.writer(pages.SYSTEM_TABLES)
    judged = read_system_table(human)
    by_system = _scores_by_system(scores)
    if metrics is not None:
        names = [name.strip() for name in metrics.split(",") if name.strip()]
        given = list(dict.fromkeys(chain.from_iterable(by_system.values())))
        unknown = [name for name in names if name not in given]
        if unknown or not names:
            raise InputError(f"--metrics: there is no score {', '.join(unknown)!a}; there are {', '.join(given)}")
        by_system = {system: {name: values.get(name) for name in names} for system, values in by_system.items()}
    with kit.warned_progress():
        agreed = agree_on_systems(judged, by_system, resampling=options.resampling)
    write(pages.system_study(agreed, human))


def _scores_by_system(scores: Sequence[str]) -> SystemTable:
    """Read the scores of systems, which may stand in several files."""
    by_system: SystemTable = {}
    for source in scores:
        name, path = kit.system_name(source)
        for system, values in read_system_scores(path, name).items():
            known = by_system.setdefault(system, {})
            twice = sorted(known.keys() & values.keys())
            if twice:
                raise InputError(f"{path}: {system!a} already has a score {twice[0]!a}")
            known.update(values)
    return by_system


@agree.command()
def protocols() -> None:
    """List the protocols: what each averages and removes, and where it comes from."""
    captions = kit.Grid(
        "For rated captions (agree captions --protocol)",
        kit.headings("Protocol|text", "Coefficient|text", "What it does|text"),
        [
            (
                each.name,
                COEFFICIENTS[each.coefficient].label,
                f"{each.about} In short: {pages.RATINGS_SAY[each.ratings]}; {pages.CAPTIONS_OWN_SAY[each.own]}. "
                f"{each.source}",
            )
            for each in CAPTION_PROTOCOLS.values()
        ],
    )
    pairs = kit.Grid(
        "For pairs (agree pairs --protocol)",
        kit.headings("Protocol|text", "Ties|text", "References|text", "What it does|text"),
        [
            (each.name, pages.TIES_SAY[each.ties], pages.references_say(each), f"{each.about} {each.source}")
            for each in PAIR_PROTOCOLS.values()
        ],
    )
    marked = kit.Grid(
        "For captions with marked words (agree hallucinations --protocol)",
        kit.headings("Protocol|text", "What it does|text"),
        [(each.name, f"{each.about} {each.source}") for each in HALLUCINATION_PROTOCOLS.values()],
    )
    grids = captions, pairs, marked
    kit.write_stdout(
        kit.rendered(part for grid in grids for part in (Text(grid.title), kit.to_rich(grid, titled=False)))
    )
