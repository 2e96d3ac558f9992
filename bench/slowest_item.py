"""Which item of legal size holds a worker longest: every metric and the parser, on captions that repeat and run on.

Captions have 2,000 characters and items 20,000, the most that the server takes by default. Times are processor time of
this process, so that other work on the machine hardly shows. An item that a metric refuses counts with the time to its
refusal. Usage: python bench/slowest_item.py [--characters N] [--references N ...] [--metrics NAME ...] [--random N]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from load.captions import CANDIDATES
from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import DataError, LimitError
from spicegraph_scorer.core.facts import FactCache
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.tokens import Corpus
from spicegraph_scorer.metrics import METRICS, MetricData, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECES = (
    *(
        "(",
        ")",
        "'",
        '"',
        '"the" ',
        "'s ",
        "-",
        "--",
        ".",
        ". ",
        "...",
        ",",
        ", ",
        "!",
        "/",
        "&",
        "@",
        "<",
        "[]",
        "{}",
        "=",
        "$",
    ),
    *(
        "a",
        "a ",
        "a b ",
        "ab ",
        "1",
        "1,",
        "1.",
        "1 ",
        "1/2 ",
        "10:30 ",
        "www.a.b/",
        "x@y.z ",
        "won't ",
        "gonna ",
        "U.S.A. ",
    ),
    *(
        "the ",
        "the dog ",
        "dog ",
        "dogs ",
        "dog, ",
        "dog and ",
        "big red ",
        "of the ",
        "in front of the dog ",
        "and then ",
    ),
    *("dog which saw a ", "that ", "is ", "to ", "running ", "with a dog in a ", "not ", "two dogs ", "a group of "),
    *(
        "dog dogs cat cats ",
        "a dog a cat ",
        'the "',
        "a-b-",
        "dog-",
        "éé ",
        "犬",
        "犬 ",
        "😀",
        "😀 ",
        "\u0301",
        "\u200d",
        "ﬁ ",
        "İ",
    ),
    *("run runs running ran ", "happy happily happiness ", "a man riding a horse on a beach ", "one two three four "),
)
PARSER = "parser"
MOST_SECONDS = 0.5
MOST_TIMES = 50


class Timed(NamedTuple):
    """An item's processor time, and which it was."""

    seconds: float
    what: str
    metric: str
    references: int


def captions(length: int, chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield captions with what they are: every piece repeated, then random mixes of pieces and of real captions."""
    for piece in PIECES:
        yield (piece * length)[:length].strip() or piece, f"{piece!r} repeated"
    yield "x" * length, "one long word"
    words = sorted({word for one in CANDIDATES for word in one.text.split()})
    for number in range(count):
        pool = chance.choice((PIECES, words, [one.text + " " for one in CANDIDATES]))
        some = chance.sample(list(pool), min(len(pool), chance.choice((2, 3, 5, 20, 200))))
        space = chance.choice(("", " "))
        text = space.join(chance.choices(some, k=length))[:length].strip()
        yield text or "x", f"mix {number} of {len(some)}: {text[:30]!r}"


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    with suppress(LimitError):
        work()
    return time.process_time() - began


def references_of(text: str, count: int, chance: random.Random) -> tuple[str, ...]:
    """Return references that share the caption's words in another order, and differ from each other."""
    found = []
    for _ in range(count):
        cut = chance.randrange(len(text))
        found.append((text[cut:] + text[:cut]).strip() or "x")
    return tuple(found)


def measure(options: argparse.Namespace) -> Iterator[Timed]:
    chance = random.Random(0)
    pipeline = load_pipeline()
    cache = FactCache(pipeline)
    texts = list(captions(options.characters, chance, options.random))
    list(pipeline.facts(["a warm-up"]))
    for text, what in texts if PARSER in options.metrics else ():
        yield Timed(seconds(lambda text=text: list(pipeline.facts([text]))), what, PARSER, 0)  # type: ignore[misc]
    for name in (name for name in METRICS if name in options.metrics):
        try:
            metric = METRICS[name].make(Resources(lambda: cache, data=MetricData()))
        except DataError as error:
            print(f"  {name}: {error}")
            continue
        metric.total(metric.collect(Corpus((Item("1", "a dog", ("a dog",)),))))
        for count in options.references:
            for text, what in texts:
                item = Item("1", text, references_of(text, count, chance))
                if metric.needs.facts:
                    list(cache.facts([item.candidate, *item.references]))  # parses have their own times
                corpus = Corpus((item,))
                spent = seconds(lambda corpus=corpus, metric=metric: metric.total(metric.collect(corpus)))  # type: ignore[misc]
                yield Timed(spent, what, name, count)
        print(f"  {name} done", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=2_000)
    parser.add_argument("--references", type=int, nargs="*", default=[1, 9])
    everything = [PARSER, *METRICS]
    parser.add_argument("--metrics", nargs="*", choices=everything, default=everything, metavar="NAME")
    parser.add_argument("--random", type=int, default=40, help="random mixes")
    parser.add_argument("--slowest", type=int, default=12, help="how many to list")
    options = parser.parse_args()
    found = sorted(measure(options), reverse=True)
    median = statistics.median(one.seconds for one in found)
    for one in found[: options.slowest]:
        print(f"{one.seconds:8.3f} s  {one.metric:12} {one.references:3} references  {one.what}")
    slowest = found[0].seconds
    met = slowest <= MOST_SECONDS and slowest <= MOST_TIMES * median
    print(f"{len(found)} items: median {1000 * median:.1f} ms, slowest {slowest:.2f} s, {slowest / median:.0f} times")
    print(f"target: {MOST_SECONDS} s and {MOST_TIMES} times the median: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
