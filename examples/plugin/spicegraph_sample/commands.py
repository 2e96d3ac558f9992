"""``spicegraph frequent-words``. Typer reads the annotations when the command runs."""

from collections import Counter
from typing import Annotated

import typer

from spicegraph_scorer import read_items
from spicegraph_service.kit import write_stdout


def frequent_words(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Candidates with their references.")],
    *,
    most: Annotated[int, typer.Option(min=1, help="How many words to list.")] = 10,
) -> None:
    """List the most frequent words of the candidates, with their numbers."""
    items = read_items(source).items
    counts = Counter(word for item in items for word in item.candidate.lower().split())
    write_stdout("".join(f"{count}\t{word}\n" for word, count in counts.most_common(most)))
