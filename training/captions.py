"""Choose the captions that the reference parser is to parse, and write them as people and programs would.

From the captions of COCO train2014: ``coco.txt`` as people typed them, ``coco_lower.txt`` in lower case without end
punctuation (as captioning models write), ``coco_toolkit.txt`` without any punctuation (as the COCO toolkit's tokenizer
leaves them), ``coco_cut.txt`` cut off after an article or a preposition (as models trained on CIDEr end) and
``coco_bare.txt`` without the first article (as older models write). The further files are written under their own
names. From them come ``toolkit.txt`` (without punctuation) and, together with what is left of COCO, ``cut.txt`` (cut
off) and ``made.txt`` (in every style); from captions of sounds ``mixed.txt``, whose clauses come from several; from all
of them ``crossed.txt``, whose halves come from two captions of a kind.
One caption per line. Captions of the evaluation files, compared without case and end punctuation, are left out, and
captions parsed already too, but not their other forms.
"""

import argparse
import gzip
import json
import random
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from heldout import FEWEST, Hashes, Held, add_hashes, is_held_out, kind_of
from styles import Clauses, Halves, bare, cut, plain, restyled, toolkit

SIZES = {
    "coco": 158_000,
    "coco_lower": 48_000,
    "coco_toolkit": 5_000,
    "coco_cut": 27_500,  # some have nothing to cut after
    "coco_bare": 4_200,
    "made": 18_000,
    "mixed": 10_000,
    "crossed": 10_000,
    "toolkit": 12_000,  # some are in that form as they are
    "cut": 6_000,
}
SOUNDS = "audiocaps"  # the kind whose clauses are mixed
ANNOTATIONS = "coco/annotations/captions_train2014.json"
LONGEST = 30  # words of a caption that is made into others


def read_captions(spice_jar: Path) -> list[str]:
    """Return the train2014 captions that the SPICE jar carries, white space made single."""
    with zipfile.ZipFile(spice_jar) as archive:
        annotations = json.loads(archive.read(ANNOTATIONS))["annotations"]
    return [" ".join(annotation["caption"].split()) for annotation in annotations]


def json_captions(path: Path) -> Iterator[str]:
    """Yield every caption of an evaluation file: lines with ``text``, or ``candidate`` and ``references``."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield from filter(None, [record.get("text"), record.get("candidate"), *record.get("references", [])])


def conllu_captions(path: Path) -> Iterator[str]:
    """Yield the captions of a CoNLL-U file of parses."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (line[9:].rstrip("\n") for line in lines if line.startswith("# text = "))


def choose(captions: Iterable[str], *, evaluation: set[str], parsed: set[str], seed: int, hashes: Hashes) -> list[str]:
    """Return distinct captions in a fixed random order, without those to be left out."""
    left_out = evaluation | parsed
    fresh = {caption: None for caption in hashes.kept(captions) if plain(caption) not in left_out}
    chosen = list(fresh)
    random.Random(seed).shuffle(chosen)
    return chosen


def without_held(write: Callable[[], str], held: Held, size: int) -> Iterator[str]:
    """Yield captions that ``write`` makes of others, those in which no held-out caption occurs."""
    while size:
        text = write()
        if FEWEST <= len(text.split()) <= LONGEST and not held.covers(text):
            size -= 1
            yield text


def text_lines(path: Path, hashes: Hashes) -> list[str]:
    """Read captions, one per line, gzipped or not, without those held out by hashes; white space is made single."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return hashes.kept(" ".join(line.split()) for line in lines if line.strip())


def size(text: str) -> tuple[str, int]:
    """Read KIND=N.

    Raises:
        ValueError: it is not that.
    """
    kind, number = text.split("=")
    if kind not in SIZES:
        raise ValueError(text)
    return kind, int(number)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jar", type=Path, help="spice-1.0.jar of the pycocoevalcap wheel")
    parser.add_argument("out", type=Path, help="folder of the files")
    parser.add_argument(
        "--others", type=Path, nargs="*", default=[], help="files of captions (KIND.txt or KIND.txt.gz)"
    )
    parser.add_argument(
        "--evaluation", type=Path, nargs="*", default=[], help="evaluation files (jsonl.gz) to leave out"
    )
    parser.add_argument("--parsed", type=Path, nargs="*", default=[], help="parses (conllu.gz) already made")
    parser.add_argument(
        "--sizes", type=size, nargs="*", default=[], help="captions of kinds, where not the usual: KIND=N"
    )
    parser.add_argument("--seed", type=int, default=1)
    add_hashes(parser)
    options = parser.parse_args()
    sizes = SIZES | dict(options.sizes)
    dice = random.Random(options.seed)
    evaluation = {plain(caption) for path in options.evaluation for caption in json_captions(path)}
    parsed = {plain(caption) for path in options.parsed for caption in conllu_captions(path)}
    hashes = Hashes.read(options.held_out_hashes)
    left = choose(read_captions(options.jar), evaluation=evaluation, parsed=parsed, seed=options.seed, hashes=hashes)
    files: dict[str, Iterable[str | None]] = {}
    for kind, style in (
        ("coco", str),
        ("coco_lower", plain),
        ("coco_toolkit", toolkit),
        ("coco_cut", partial(cut, dice=dice)),
        ("coco_bare", bare),
    ):
        files[kind] = list(map(style, left[: sizes[kind]]))
        left = left[sizes[kind] :]
    others: list[str] = []
    by_kind: list[Halves] = []
    held_out: list[str] = []
    for path in options.others:
        kind = kind_of(path)
        own = choose(text_lines(path, hashes), evaluation=evaluation, parsed=set(), seed=options.seed, hashes=hashes)
        files[kind] = [caption for caption in own if plain(caption) not in parsed]
        short = [caption for caption in own if len(caption.split()) <= LONGEST]
        open_ones = [caption for caption in short if not is_held_out(caption, kind)]
        others += open_ones
        halves = Halves.of(open_ones, dice)
        if halves.first:  # long descriptions alone have none
            by_kind.append(halves)
        kept_out = [caption for caption in own if is_held_out(caption, kind)]
        held_out += kept_out
        if kind == SOUNDS:
            files["mixed"] = without_held(partial(Clauses.of(open_ones).mixed, dice), Held(kept_out), sizes["mixed"])
    pool = others + left
    files["crossed"] = without_held(lambda: dice.choice(by_kind).crossed(dice), Held(held_out), sizes["crossed"])
    for kind, source, form in (
        ("toolkit", others, toolkit),
        ("cut", pool, partial(cut, dice=dice)),
        ("made", pool, partial(restyled, dice=dice)),
    ):
        files[kind] = map(form, dice.sample(source, min(len(source), sizes[kind])))
    written: set[str | None] = {None}
    options.out.mkdir(parents=True, exist_ok=True)
    for kind, captions in files.items():
        fresh = {caption: None for caption in captions if caption not in written}
        written.update(fresh)
        (options.out / f"{kind}.txt").write_text("".join(f"{caption}\n" for caption in fresh), encoding="utf-8")


if __name__ == "__main__":
    main()
