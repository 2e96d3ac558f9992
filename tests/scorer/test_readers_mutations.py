"""Items in every format and quoting are read back equal or refused; so are files that were changed by a mutation."""

from __future__ import annotations

import csv
import io
import json
import random
import warnings
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser.errors import SpicegraphError
from spicegraph_scorer.readers import read_items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Row = dict[str, object]

TEXTS = (
    "A dog runs, fast.",
    'A man says "no".',
    "The dogs' owner.",
    "a cat; a bed | a rug",
    "Two men\ttalk.",
    "It's [music] time",
    "l'été à la plage",
    "A girl; she reads, and sings, twice",
)
IDS = (
    lambda number: number,
    lambda number: f"img{number}.jpg",
    lambda number: f"{number:012d}",
    lambda number: f"v_{number}",
)
KEYS = ("candidate", "prediction", "generated_caption", "response")
LISTS = ("references", "refs", "gts", "labels")


def numpy_print(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(repr, texts))}]"


PRINTS: dict[str, Callable[[list[str]], object]] = {
    "list": list,
    "json": json.dumps,
    "python": str,
    "numpy": numpy_print,
}


def rows_of(chosen: random.Random) -> tuple[list[Row], tuple[str, str, str]]:
    id_of, key, refs = chosen.choice(IDS), chosen.choice(KEYS), chosen.choice(LISTS)
    rows: list[Row] = [
        {"image_id": id_of(n), key: chosen.choice(TEXTS), refs: chosen.sample(TEXTS, chosen.randint(2, 4))}
        for n in range(1, chosen.randint(3, 6))
    ]
    return rows, ("image_id", key, refs)


def table(rows: Sequence[Row], delimiter: str, quoting: int, *, header: bool = True) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    if header:
        writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return out.getvalue()


def written(rows: Sequence[Row], refs: str) -> Iterator[tuple[str, str]]:
    for name, shown in PRINTS.items():
        given = [{**row, refs: shown(row[refs])} for row in rows]  # type: ignore[arg-type]
        yield f"{name} in JSON", json.dumps(given, indent=2)
        yield f"{name} in JSON Lines", "".join(json.dumps(row) + "\n" for row in given)
        if name != "list":
            for delimiter in ",;\t|":
                for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC):
                    yield f"{name} with {delimiter!a}, {quoting}", table(given, delimiter, quoting)


def read_of(content: str, write: Callable[[object], str]) -> list[tuple[str, str, tuple[str, ...]]] | None:
    """Return what is read; ``None``: it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [(str(item.id), item.candidate, item.references) for item in read_items(write(content))]
        except SpicegraphError:
            return None


def id_text(image: object) -> str:
    return str(int(image)) if isinstance(image, str) and image.isdigit() and image[0] != "0" else str(image)


@pytest.mark.parametrize("seed", range(20))
def test_items_in_every_format_are_read_back_equal_or_refused(seed: int, write: Callable[[object], str]) -> None:
    rows, (image, key, refs) = rows_of(random.Random(seed))
    wanted = [(id_text(row[image]), row[key], tuple(row[refs])) for row in rows]  # type: ignore[arg-type]
    read = {name: read_of(content, write) for name, content in written(rows, refs)}
    assert {name: found for name, found in read.items() if found not in (wanted, None)} == {}
    assert sum(found == wanted for found in read.values()) >= len(read) / 2


def mutated(rows: list[Row], keys: tuple[str, str, str], chosen: random.Random) -> tuple[str, str]:
    """Return the name of a mutation, and what a file becomes by it."""
    _, key, refs = keys
    kind = chosen.choice(("renamed", "dropped", "header", "delimiter", "printed"))
    delimiter = chosen.choice(",;\t|")
    given = [{**row, refs: json.dumps(row[refs])} for row in rows]
    if kind == "renamed":
        name = chosen.choice(keys)
        rows = [{("zzz" if old == name else old): value for old, value in row.items()} for row in given]
        return f"{kind} {name}", chosen.choice((json.dumps(rows), table(rows, delimiter, csv.QUOTE_MINIMAL)))
    if kind == "dropped":
        name = chosen.choice(keys)
        rows = [{old: value for old, value in row.items() if old != name} for row in given]
        return f"{kind} {name}", chosen.choice((json.dumps(rows), table(rows, delimiter, csv.QUOTE_MINIMAL)))
    if kind == "header":
        return kind, table(given, delimiter, csv.QUOTE_MINIMAL, header=False)
    if kind == "delimiter":
        first, _, rest = table(given, delimiter, csv.QUOTE_MINIMAL).partition("\n")
        return kind, f"{first.replace(delimiter, chosen.choice(',;|'))}\n{rest}"
    return kind, json.dumps([{**row, key: str([row[key], "another"])} for row in rows])


@pytest.mark.parametrize("seed", range(200))
def test_a_mutation_makes_no_silent_difference(seed: int, write: Callable[[object], str]) -> None:
    chosen = random.Random(seed)
    rows, keys = rows_of(chosen)
    _, key, refs = keys
    name, content = mutated(rows, keys, chosen)
    wanted = [(row[key], tuple(row[refs])) for row in rows]  # type: ignore[arg-type]
    found = read_of(content, write)
    # Without a column of ids, rows are numbered, which is said.
    assert found is None or [each[1:] for each in found] == wanted, (name, content)
