"""Choose the captions that the reference parser is to parse, and write them as people and programs would.

From the captions of COCO train2014: ``coco.txt`` as people typed them, ``coco_lower.txt`` in lower case without end
punctuation (as captioning models write), ``coco_cut.txt`` cut off after an article or a preposition (as models trained
on CIDEr end) and ``coco_bare.txt`` without the first article (as older models write). From what is left of them, and
from further files of captions: ``made.txt``, in every style.
The further files are written too, each under its own name. One caption per line. Captions of the evaluation files,
compared without case and end punctuation, and captions parsed already are left out.
"""

import argparse
import gzip
import json
import random
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from heldout import is_held_out, kind_of
from styles import bare, cut, plain, restyled

SIZES = {"coco": 133_000, "coco_lower": 48_000, "coco_cut": 24_000, "coco_bare": 5_000, "made": 20_000}
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


def choose(captions: Iterable[str], *, evaluation: set[str], parsed: set[str], seed: int) -> list[str]:
    """Return distinct captions in a fixed random order, without those to be left out."""
    fresh = {caption: None for caption in captions if plain(caption) not in evaluation and plain(caption) not in parsed}
    chosen = list(fresh)
    random.Random(seed).shuffle(chosen)
    return chosen


def text_lines(path: Path) -> list[str]:
    """Read captions, one a line, gzipped or not; white space is made single."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [" ".join(line.split()) for line in lines if line.strip()]


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
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    evaluation = {plain(caption) for path in options.evaluation for caption in json_captions(path)}
    parsed = {plain(caption) for path in options.parsed for caption in conllu_captions(path)}
    left = choose(read_captions(options.jar), evaluation=evaluation, parsed=parsed, seed=options.seed)
    files: dict[str, Iterable[str | None]] = {}
    styles = {"coco": str, "coco_lower": plain, "coco_cut": partial(cut, dice=dice), "coco_bare": bare}
    for kind, style in styles.items():
        files[kind] = list(map(style, left[: SIZES[kind]]))
        left = left[SIZES[kind] :]
    for path in options.others:
        kind = kind_of(path)
        files[kind] = choose(text_lines(path), evaluation=evaluation, parsed=parsed, seed=options.seed)
        left += [c for c in files[kind] if len(c.split()) <= LONGEST and not is_held_out(c, kind)]
    files["made"] = [restyled(caption, dice) for caption in dice.sample(left, min(len(left), SIZES["made"]))]
    options.out.mkdir(parents=True, exist_ok=True)
    for kind, captions in files.items():
        text = "".join(f"{caption}\n" for caption in dict.fromkeys(captions) if caption)
        (options.out / f"{kind}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
