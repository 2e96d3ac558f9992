"""``spicegraph agree words``: reference captions in, how far people agree on words out."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from spicegraph_parser.pipelines import DEFAULT_PIPELINE, CaptionPipeline, load_pipeline
from spicegraph_scorer.agreement.reading.words import read_captioned_images, read_word_scores
from spicegraph_scorer.agreement.words import count_words, study_words, tagged_words
from spicegraph_scorer.agreement.words.counts import held_words
from spicegraph_scorer.significance import Resampling
from spicegraph_service.agreement.word_study import word_study
from spicegraph_service.cli.agree.shared import (
    DrawsOption,
    FormatOption,
    OutputOption,
    PipelineOption,
    SeedOption,
    prepare_output,
    warned_progress,
    write_study,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from spicegraph_scorer.agreement.words.counts import Tagged
    from spicegraph_scorer.items import ItemId

__all__ = ["words"]


def words(
    source: Annotated[
        str,
        typer.Argument(metavar="REFERENCES", help="COCO annotations, or any input of score that holds references."),
    ],
    *,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="A system to hold against people: its captions (COCO results, JSON Lines), or JSON Lines with "
            "image_id and words: {word: score}. May be given several times.",
        ),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(
            min=2, help="Captions used of each image; images with fewer are left out. Default: as many as all have."
        ),
    ] = None,
    size: Annotated[int, typer.Option("--words", min=1, help="How many of the most frequent words.")] = 1000,
    lemmas: Annotated[bool, typer.Option("--lemmas", help="Count dogs as dog, and riding as ride.")] = False,
    form: FormatOption = None,
    output: OutputOption = None,
    draws: DrawsOption = 1000,
    seed: SeedOption = 12345,
    pipeline: PipelineOption = DEFAULT_PIPELINE,
) -> None:
    """Show how far people agree on nouns, adjectives and verbs, and how precise a system is at human recall.

    Fits the word model of the COCO captions paper: p, that a person names what is there, and q, that it is there.
    """
    write_as = prepare_output(form, output)
    images = read_captioned_images(source)
    named = dict(map(_name_and_path, system or ()))
    said = {name: read_word_scores(path) for name, path in named.items()}
    with warned_progress() as progress:
        tagger = load_pipeline(pipeline)
        table = count_words(_tagged(images, tagger, progress, lemmas=lemmas), people=people, words=size)
        scores = {name: found.scores or _shares(found.captions, tagger, lemmas=lemmas) for name, found in said.items()}
        signature = {"pipeline": tagger.signature, "unit": "lemmas" if lemmas else "words"}
        study = study_words(table, systems=scores, signature=signature, resampling=Resampling(draws, seed))
    write_study(word_study(study, source), write_as, output)


def _name_and_path(source: str) -> tuple[str, str]:
    name, equals, path = source.partition("=")
    return (name, path) if equals and name and "/" not in name else (PurePath(source).stem, source)


def _tagged(
    images: Mapping[ItemId, Sequence[str]],
    tagger: CaptionPipeline,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    lemmas: bool,
) -> dict[ItemId, list[frozenset[Tagged]]]:
    """Return the words of every caption of every image; equal captions are tagged once."""
    texts = list(dict.fromkeys(text for captions in images.values() for text in captions))
    found = dict(
        zip(texts, _reported(tagged_words(tagger.parse(texts), lemmas=lemmas), len(texts), progress), strict=True)
    )
    return {image: [found[text] for text in captions] for image, captions in images.items()}


def _reported(
    words_of: Iterable[frozenset[Tagged]], total: int, progress: Callable[[str, int, int], None] | None
) -> Iterator[frozenset[Tagged]]:
    for done, found in enumerate(words_of, start=1):
        if progress is not None:
            progress("tagging captions", done, total)
        yield found


def _shares(
    captions: Mapping[ItemId, Sequence[str]], tagger: CaptionPipeline, *, lemmas: bool
) -> dict[ItemId, dict[str, float]]:
    """Return for each image the share of the system's captions that hold a word."""
    shares: dict[ItemId, dict[str, float]] = {}
    for image, found in _tagged(captions, tagger, lemmas=lemmas).items():
        row = shares.setdefault(image, {})
        for caption in found:
            for word in held_words(caption):
                row[word] = row.get(word, 0.0) + 1 / len(found)
    return shares
