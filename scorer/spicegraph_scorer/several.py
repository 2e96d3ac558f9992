"""Several candidates of an image: which of them is scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spicegraph_scorer.core.items import Corpus, Item
from spicegraph_scorer.core.tokens import tokenize_texts
from spicegraph_scorer.metrics.cider import Cider
from spicegraph_scorer.metrics.ngram.frequencies import DocumentFrequencies
from spicegraph_scorer.metrics.spice.metric import Spice
from spicegraph_scorer.metrics.spider import Spider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_scorer.core.items import ItemId

__all__ = ["Choice", "choose_best"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate of every image, under the image's own id, and what it was chosen by.

    ``values`` holds each chosen candidate's value of the score ``by``.
    """

    items: tuple[Item, ...]
    by: str
    values: tuple[float, ...]


def choose_best(
    items: Sequence[Item],
    images: Sequence[ItemId],
    source: FactSource,
    *,
    frequencies: DocumentFrequencies | None = None,
) -> Choice:
    """Keep the candidate of every image with the highest SPIDEr, the first of equals (SPIDEr-max).

    With a single image and no ``frequencies``, CIDEr-D is undefined and SPICE alone decides.
    SPIDEr-max: Labbé, Pellegrini and Pinquier, DCASE 2022.

    Args:
        items: the candidates, each with its image's references.
        images: the id of each item's image.
        source: what turns captions into facts.
        frequencies: CIDEr-D's document frequencies; ``None``: those of the images' references, each image
            counted once.

    Example:
        >>> from spicegraph_parser import load_pipeline
        >>> both = [Item("7#1", "a cat", ("a dog",)), Item("7#2", "a dog", ("a dog",))]
        >>> choose_best(both, [7, 7], load_pipeline()).items
        (Item(id=7, candidate='a dog', references=('a dog',)),)
    """
    corpus = Corpus(tuple(items))
    spice = Spice(source, evidence=False)
    if frequencies is None:
        references = dict(zip(images, (item.references for item in items), strict=True))
        if len(references) > 1:
            frequencies = _frequencies(references)
    if frequencies is None:
        score = spice.total(spice.collect(corpus))[0]
    else:
        spider = Spider(spice, Cider(frequencies=frequencies))
        score = spider.total(spider.collect(corpus))[0]
    values = [0.0 if value is None else value for value in score.each]
    best: dict[ItemId, int] = {}
    for index, image in enumerate(images):
        if image not in best or values[index] > values[best[image]]:
            best[image] = index
    chosen = tuple(replace(items[index], id=image) for image, index in best.items())
    return Choice(chosen, score.name, tuple(values[index] for index in best.values()))


def _frequencies(references: Mapping[ItemId, Sequence[str]]) -> DocumentFrequencies:
    return DocumentFrequencies.from_references([tokenize_texts(texts) for texts in references.values()])
