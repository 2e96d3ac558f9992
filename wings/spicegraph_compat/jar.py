"""The command line of the SPICE 1.0 program: the same input, flags, output file and printed scores.

Where a script runs ``java -Xmx8G -jar spice-1.0.jar in.json -out out.json -subset -silent``, it runs
``spicegraph-spice in.json -out out.json -subset -silent`` instead.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec

from spicegraph_parser.errors import SpicegraphError
from spicegraph_parser.pipelines import DEFAULT_PIPELINE
from spicegraph_scorer.core.categories import ALL, Counts
from spicegraph_scorer.core.items import marks_of
from spicegraph_scorer.metrics.spice.metric import jar_output
from spicegraph_scorer.readers import read_items
from spicegraph_scorer.readers.marks import marks_notes
from spicegraph_scorer.scoring import score
from spicegraph_service import kit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_scorer.core.results import Result

_BAD_INPUT = 2
_CACHE_FILE = "spicegraph.db"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spicegraph-spice",
        description="SPICE, with the command line of the SPICE 1.0 program.",
        allow_abbrev=False,
    )
    parser.add_argument("input", metavar="input.json", help='[{"image_id": 1, "test": "...", "refs": ["..."]}]')
    parser.add_argument("-out", metavar="outfile", help="write scores as JSON to this file")
    parser.add_argument("-cache", metavar="dir", help="keep parses in this folder")
    parser.add_argument(
        "-threads", metavar="num", type=_at_least_one, help="processes that parse (default: one per processor)"
    )
    parser.add_argument("-detailed", action="store_true", help="add the tuples of every caption to the JSON")
    parser.add_argument("-noSynsets", action="store_true", dest="exact", help="match without synonyms")
    parser.add_argument("-subset", action="store_true", help="add the scores by category")
    parser.add_argument("-silent", action="store_true", help="do not print the scores")
    parser.add_argument(
        "--pipeline", default=DEFAULT_PIPELINE, help="what parses captions: en_caption (bundled), or a spaCy pipeline"
    )
    parser.add_argument("--version", action="version", version=f"spicegraph {version('spicegraph')}")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a number of at least 1")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line of the SPICE program; return 0, or 2 where the input or the command is wrong."""
    kit.use_utf8()
    start = time.perf_counter()
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else _BAD_INPUT
    workers, metric = options.threads or os.cpu_count() or 1, "spice-exact" if options.exact else "spice"
    try:
        if options.out is not None:
            kit.check_output(options.out)
            kit.refuse_overwriting([options.out], [options.input])
        items = read_items(options.input, control_tokens="keep").items
        for note in marks_notes(len(items), marks_of(items)):
            kit.say_warning(f"{options.input}: {note}")
        # The folder of the cache is made where it is missing, as the program does.
        cache = None if options.cache is None else str(kit.made_folder(options.cache) / _CACHE_FILE)
        with kit.local_facts(options.pipeline, workers=workers, cache=cache) as facts, kit.progress_bar() as progress:
            result = score(items, [metric], pipeline=facts, progress=progress)
        if options.out is not None:
            rows = jar_output(result, detailed=options.detailed, subset=options.subset)
            kit.write_text(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode(), options.out)
        if not options.silent:
            kit.write_stdout("\n".join(printed_scores(result, subset=options.subset)) + "\n\n")
            kit.write_stdout(f"SPICE evaluation took: {time.perf_counter() - start:.2f} s\n")
    except SpicegraphError as error:
        kit.say_error(str(error))
        return _BAD_INPUT
    return 0


def printed_scores(result: Result, *, subset: bool) -> Iterator[str]:
    """Yield the lines that the program prints: means over the images, and counts."""
    yield "********  SPICE Evaluation  ********"
    for name, means in result.runs[0].categories().items():
        if subset or name == ALL:
            counts = means.micro or Counts()
            yield f"\n{name} tuples"
            yield f"  f-score:\t{_shown(means.f)} (SPICE metric)"
            yield f"  precision:\t{_shown(means.pr)}"
            yield f"  recall:\t{_shown(means.re)}"
            yield f"  true pos:\t{counts.matched}"
            yield f"  false pos:\t{counts.false_positives}"
            yield f"  false neg:\t{counts.false_negatives}"
            yield f"  num images:\t{means.items}"


def _shown(value: float | None) -> str:
    return "NaN" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
