"""Which item of legal size holds a worker longest: every metric and both parsers, on captions that repeat and run on.

Captions have 2,000 characters and items 20,000, the most that the server takes by default. Tasks are those that the
server sends its workers, done by a worker's code in this process: captions to parse, with their graphs; items with one
metric, without and with all evidence; rewards with credit and a draft. Captions of items are parsed before, since
parses have times of their own. Times are processor time of this process, so that other work on the machine hardly
shows. An item that is refused counts with the time to its refusal; one that fails otherwise is a fault.

With ``--record FILE`` times are kept as they come, and a run that was ended goes on where it stopped. ``--mutate N``
goes on from the slowest captions: it exchanges, repeats and cuts pieces of them, and keeps what is slower, N times.
The last line says how far times are from what the server expects (``pool/costs.py``).
Usage: python bench/slowest_item.py [--references N ...] [--tasks NAME ...] [--random N] [--mutate N] [--record FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from load.captions import CANDIDATES
from spicegraph_api.v1 import scores_pb2
from spicegraph_parser import load_pipeline
from spicegraph_parser.runtime import RARE
from spicegraph_service.pool.costs import text_cost
from spicegraph_service.pool.evaluate import Evaluator
from spicegraph_service.pool.tasks import (
    CaptionsWork,
    GraphStyle,
    ItemsWork,
    ItemWork,
    MadeMetric,
    RequestData,
    StyledText,
    Work,
    WorkReply,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
LISTED = (
    "dog",
    "cat",
    "red",
    "big",
    "man",
    "blue",
    "car",
    "tree",
    "horse",
    "beach",
    "table",
    "woman",
    "small",
    "white",
)
REWARD = "guarded"
STYLES: Sequence[GraphStyle] = ("spice", "scene")
DETAILS = {"scores": scores_pb2.DETAIL_SCORES, "evidence": scores_pb2.DETAIL_CREDIT}
MOST_SECONDS = 0.5
MOST_TIMES = 50


class Timed(NamedTuple):
    """A task's processor time, and which it was; ``fault`` is an error that is none of the user's."""

    seconds: float
    what: str
    task: str
    references: int
    fault: str = ""


def captions(length: int, chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield captions with what they are: every piece repeated, then random mixes of pieces and of real captions."""
    for piece in PIECES:
        yield (piece * length)[:length].strip() or piece, f"{piece!r} repeated"
    yield "x" * length, "one long word"
    for space in (", ", " ", " and ", "; ", "\n"):  # lists of words without a full stop
        chance_of_list = random.Random(space)
        yield space.join(chance_of_list.choices(LISTED, k=length))[:length], f"a list of words with {space!r}"
    words = sorted({word for one in CANDIDATES for word in one.text.split()})
    for number in range(count):
        pool = chance.choice((PIECES, words, [one.text + " " for one in CANDIDATES]))
        some = chance.sample(list(pool), min(len(pool), chance.choice((2, 3, 5, 20, 200))))
        space = chance.choice(("", " "))
        text = space.join(chance.choices(some, k=length))[:length].strip()
        yield text or "x", f"mix {number} of {len(some)}: {text[:30]!r}"


def references_of(text: str, count: int) -> tuple[str, ...]:
    """Return references that share the caption's words in another order, and differ from each other."""
    chance = random.Random(text)
    found = []
    for _ in range(count):
        cut = chance.randrange(len(text))
        found.append((text[cut:] + text[:cut]).strip() or "x")
    return tuple(found)


class Worker:
    """A worker's code, and the tasks by name."""

    def __init__(self) -> None:
        self._evaluator = Evaluator(load_pipeline())
        gc.freeze()
        gc.set_threshold(*RARE)
        info = self._evaluator.info()
        for name, reason in info.missing.items():
            print(f"  {name}: {reason}")
        self.tasks = [f"parse {style}" for style in STYLES]
        self.tasks += [f"{metric.name}, {detail}" for metric in info.metrics for detail in DETAILS]
        self.tasks.append(f"reward {REWARD}")
        self._parsing = info.parsing

    def times(self, text: str, what: str, counts: Sequence[int], tasks: Sequence[str]) -> Iterator[Timed]:
        """Do the tasks with a caption."""
        for style in STYLES:
            if f"parse {style}" in tasks:
                yield self._timed(CaptionsWork((text,), graphs=True, style=style), what, f"parse {style}", 0)
        parses: dict[StyledText, bytes] = {}
        for count in counts:
            for task in tasks:
                draft = "a draft of a caption" if task.startswith("reward") else None
                item = ItemWork("1", text, references_of(text, count), draft)
                if (work := self._items(task, item)) is None:
                    continue
                new = dict.fromkeys(text for text in work.texts(self._parsing) if text not in parses)
                for style in STYLES:
                    texts = tuple(text.text for text in new if text.style == style)
                    parses |= self._run(CaptionsWork(texts, graphs=False, style=style), {}).parsed
                yield self._timed(work, what, task, count, parses)

    def _items(self, task: str, item: ItemWork) -> ItemsWork | None:
        if task == f"reward {REWARD}":
            given = RequestData(made=MadeMetric("reward", "spicegraph_graded.rewards.reward:make_reward", REWARD))
            return ItemsWork(("spice", "spice-g"), DETAILS["evidence"], (item,), finish=True, given=given)
        metric, _, detail = task.partition(", ")
        return ItemsWork((metric,), DETAILS[detail], (item,), finish=True) if detail else None

    def _timed(
        self,
        group: ItemsWork | CaptionsWork,
        what: str,
        task: str,
        count: int,
        parses: Mapping[str, bytes] | None = None,
    ) -> Timed:
        wanted = dict.fromkeys(group.texts(self._parsing) if isinstance(group, ItemsWork) else ())
        known = {text: parses[text] for text in wanted} if parses else {}
        began = time.process_time()
        (reply,) = self._run(group, known).groups
        return Timed(time.process_time() - began, what, task, count, "" if reply.refused else reply.error)

    def _run(self, group: ItemsWork | CaptionsWork, parses: dict[str, bytes]) -> WorkReply:
        done = self._evaluator.run(Work((group,), parses))
        if not isinstance(done, WorkReply):
            raise TypeError(done)
        return done


def measure(worker: Worker, options: argparse.Namespace) -> Iterator[Timed]:
    """Yield the times of all captions: those of the record, and new ones, which are written there."""
    recorded: dict[str, list[Timed]] = defaultdict(list)
    record: Path | None = options.record
    if record is not None and record.exists():
        for line in record.read_text(encoding="utf-8").splitlines():
            text, rows = json.loads(line)
            recorded[text] = [Timed(*row) for row in rows]
    list(worker.times("a warm-up, \u00e9\u00e9 \u72ac 1.5", "", options.references, options.tasks))
    for text, what in captions(options.characters, random.Random(0), options.random):
        if text not in recorded:
            recorded[text] = list(worker.times(text, what, options.references, options.tasks))
            if record is not None:
                with record.open("a", encoding="utf-8") as lines:
                    print(json.dumps([text, recorded[text]]), file=lines)
            print(f"  {what}: {max(recorded[text])}", flush=True)
        yield from recorded[text]


def mutated(text: str, length: int, chance: random.Random) -> str:
    """Return a caption with a piece of it exchanged, said twice or left out."""
    words = text.split(" ")
    start = chance.randrange(len(words))
    end = min(len(words), start + chance.choice((1, 2, 5, 20)))
    piece = chance.choice((words[start:end] * 2, [], [chance.choice(PIECES).strip()], chance.sample(LISTED, 3)))
    found = " ".join([*words[:start], *piece, *words[end:]])
    return (found * 2)[:length].strip() or "x"


def search(
    worker: Worker, slowest: Sequence[Timed], texts: Mapping[str, str], options: argparse.Namespace
) -> Iterator[Timed]:
    """Climb from the slowest captions to parse; yield what was found on the way."""
    chance = random.Random(1)
    best = {one.what: one.seconds for one in slowest if one.task.startswith("parse") and one.what in texts}
    pool = {texts[what]: seconds for what, seconds in list(best.items())[:5]}
    for number in range(options.mutate):
        text = mutated(chance.choice(sorted(pool)), options.characters, chance)
        rows = list(worker.times(text, f"mutation {number}: {text[:30]!r}", (), ["parse spice", "parse scene"]))
        yield from rows
        pool[text] = max(row.seconds for row in rows)
        if len(pool) > 5:
            del pool[min(pool, key=pool.__getitem__)]
    for text, seconds in sorted(pool.items(), key=lambda pair: -pair[1])[:1]:
        expected = text_cost(text)
        usual = next(worker.times("a man riding a wave on a surfboard", "", (), ["parse spice"])).seconds
        print(
            f"the slowest found takes {1000 * seconds:.0f} ms, a usual one {1000 * usual:.1f}; it counts as {expected}"
        )


def main() -> int:
    worker = Worker()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=2_000)
    parser.add_argument("--references", type=int, nargs="*", default=[1, 9])
    parser.add_argument("--tasks", nargs="*", choices=worker.tasks, default=worker.tasks, metavar="NAME")
    parser.add_argument("--random", type=int, default=40, help="random mixes")
    parser.add_argument("--mutate", type=int, default=0, help="steps of a search from the slowest captions")
    parser.add_argument("--record", type=Path, help="times so far; made by runs with the same options")
    options = parser.parse_args()
    found = sorted(measure(worker, options), reverse=True)
    texts = {what: text for text, what in captions(options.characters, random.Random(0), options.random)}
    found = sorted([*found, *search(worker, found, texts, options)], reverse=True) if options.mutate else found
    median = statistics.median(one.seconds for one in found)
    of_task: dict[str, list[Timed]] = defaultdict(list)
    for one in found:
        of_task[one.task].append(one)
    print(f"{'slowest':>10}  {'median':>9}  times  task")
    for task, own in sorted(of_task.items(), key=lambda pair: pair[1][0], reverse=True):
        usual = statistics.median(one.seconds for one in own)
        worst = own[0]
        times = f"{1000 * worst.seconds:7.0f} ms {1000 * usual:7.1f} ms  {worst.seconds / usual:5.0f}"
        print(f"{times}  {task}: {worst.what}, references: {worst.references}")
    faults = [one for one in found if one.fault]
    for one in faults:
        print(f"fault: {one}")
    slowest = found[0].seconds
    met = slowest <= MOST_SECONDS and slowest <= MOST_TIMES * median and not faults
    print(f"{len(found)} tasks: median {1000 * median:.1f} ms, slowest {slowest:.2f} s, {slowest / median:.0f} times")
    print(f"target: {MOST_SECONDS} s and {MOST_TIMES} times the median: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
