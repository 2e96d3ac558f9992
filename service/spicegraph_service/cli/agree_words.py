"""``spicegraph agree words``: reference captions in, how far people agree on words out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.studies.agreement.reading import read_captioned_images, read_word_scores
from spicegraph_scorer.studies.agreement.words import count_words, held_words, study_words
from spicegraph_service.cli.options import ParsingOptions, system_name
from spicegraph_service.cli.studies import (
    DrawsOption,
    FormatOption,
    OutputOption,
    SeedOption,
    TableOption,
    study_output,
)
from spicegraph_service.engines.local import WordSource, local_words
from spicegraph_service.output.agreement.words import WORD_TABLES, word_study
from spicegraph_service.output.terminal import warned_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.core.items import ItemId
    from spicegraph_scorer.studies.agreement.words import Tagged


def words(
    source: Annotated[
        str,
        typer.Argument(metavar="REFERENCES", help="COCO annotations, or any input of score that contains references."),
    ],
    *,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="A system to compare with people: its captions (COCO results, JSON Lines), or JSON Lines with "
            "image_id and words: {word: score}. May be given several times.",
        ),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="How many captions of each image to use; images with fewer are left out. Default: as many as "
            "every image has.",
        ),
    ] = None,
    size: Annotated[int, typer.Option("--words", min=1, help="How many of the most frequent words to study.")] = 1000,
    lemmas: Annotated[bool, typer.Option("--lemmas", help="Count dogs as dog, and riding as ride.")] = False,
    form: FormatOption = None,
    output: OutputOption = None,
    table: TableOption = None,
    draws: DrawsOption = 1000,
    seed: SeedOption = 12345,
    parsing: ParsingOptions,
) -> None:
    """Show how far people agree on nouns, adjectives and verbs, and how precise a system is at human recall.

    Fits the word model of the COCO captions paper: p, that a person names what is there, and q, that it is there.
    """
    writer = study_output(form, output, table, WORD_TABLES)
    images = read_captioned_images(source)
    named = dict(map(system_name, system or ()))
    said = {name: read_word_scores(path) for name, path in named.items()}
    with (
        warned_progress() as progress,
        local_words(parsing.parser, lemmas=lemmas, workers=parsing.workers, cache=parsing.cache_place) as tagger,
    ):
        counted = count_words(_tagged(images, tagger, progress), people=people, words=size)
        scores = {name: found.scores or _shares(_tagged(found.captions, tagger)) for name, found in said.items()}
        signature = {"pipeline": tagger.signature, "unit": "lemmas" if lemmas else "words"}
        study = study_words(counted, systems=scores, signature=signature, resampling=Resampling(draws, seed))
    writer.write(word_study(study, source))


def _tagged(
    images: Mapping[ItemId, Sequence[str]],
    tagger: WordSource,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[ItemId, list[frozenset[Tagged]]]:
    """Return the words of every caption of every image; equal captions are tagged once."""
    texts = list(dict.fromkeys(text for captions in images.values() for text in captions))
    found = dict(zip(texts, _reported(tagger.words(texts), len(texts), progress), strict=True))
    return {image: [found[text] for text in captions] for image, captions in images.items()}


def _reported(
    words_of: Iterable[frozenset[Tagged]], total: int, progress: Callable[[str, int, int], None] | None
) -> Iterator[frozenset[Tagged]]:
    for done, found in enumerate(words_of, start=1):
        if progress is not None:
            progress("tagging captions", done, total)
        yield found


def _shares(images: Mapping[ItemId, Sequence[frozenset[Tagged]]]) -> dict[ItemId, dict[str, float]]:
    """Return for each image the share of the system's captions that hold a word."""
    shares: dict[ItemId, dict[str, float]] = {}
    for image, captions in images.items():
        row = shares.setdefault(image, {})
        for caption in captions:
            for word in held_words(caption):
                row[word] = row.get(word, 0.0) + 1 / len(captions)
    return shares
