"""Choose the COCO train2014 captions that the reference parser is to parse.

Writes three files, one caption a line: ``edited.txt`` (as people typed them), ``lower.txt`` (other captions,
lower-cased and without end punctuation: what captioning models emit) and ``bare.txt`` (others again, also without
the article they begin with: what older captioning models emit). Captions of the evaluation files, compared
without case and end punctuation, and captions parsed already are left out.
"""

import argparse
import gzip
import json
import random
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ARTICLE = re.compile(r"^(?:an?|the) ")
ANNOTATIONS = "coco/annotations/captions_train2014.json"
END_PUNCTUATION = re.compile(r"[\s.!?,;:]+$")


def plain(caption: str) -> str:
    """Return the caption lower-cased and without end punctuation, white space made single."""
    return END_PUNCTUATION.sub("", " ".join(caption.lower().split()))


def bare(caption: str) -> str:
    """Return the caption plain and without the article that it begins with."""
    return ARTICLE.sub("", plain(caption))


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


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jar", type=Path, help="spice-1.0.jar of the pycocoevalcap wheel")
    parser.add_argument("out", type=Path, help="folder of the three files")
    parser.add_argument(
        "--evaluation", type=Path, nargs="*", default=[], help="evaluation files (jsonl.gz) to leave out"
    )
    parser.add_argument("--parsed", type=Path, nargs="*", default=[], help="parses (conllu.gz) already made")
    parser.add_argument("--lower", type=float, default=0.4, help="share of captions that are lower-cased (default 0.4)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chosen = choose(
        read_captions(options.jar),
        evaluation={plain(caption) for path in options.evaluation for caption in json_captions(path)},
        parsed={plain(caption) for path in options.parsed for caption in conllu_captions(path)},
        seed=options.seed,
    )
    lower, rest = round(len(chosen) * options.lower), round(len(chosen) * (options.lower + options.bare))
    styles = {
        "lower": dict.fromkeys(map(plain, chosen[:lower])),
        "bare": dict.fromkeys(bare(caption) for caption in chosen[lower:rest] if ARTICLE.match(plain(caption))),
        "edited": chosen[rest:],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for style, captions in styles.items():
        text = "".join(f"{caption}\n" for caption in captions if caption)
        (options.out / f"{style}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
