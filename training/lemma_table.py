"""Write what the lemma rules get wrong, read off the silver parses: a table by kind of tag and form."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import silver
from heldout import Hashes, add_hashes
from spicegraph_parser.caption_pipeline.lemmas import kind_of, rule_lemma


def exceptions(captions: Iterable[silver.Caption]) -> dict[str, dict[str, str]]:
    """Return the most frequent lemma of each pair of kind and form whose rule gives another."""
    seen: dict[tuple[str, str], Counter[str]] = {}
    for caption in captions:
        for sentence in caption.sentences:
            for word, tag, lemma in zip(sentence.words, sentence.tags, sentence.lemmas, strict=True):
                seen.setdefault((kind_of(tag), word.lower()), Counter())[lemma.lower()] += 1
    table: dict[str, dict[str, str]] = {}
    for (kind, form), lemmas in sorted(seen.items()):
        lemma = lemmas.most_common(1)[0][0]
        if lemma != rule_lemma(form, kind):
            table.setdefault(kind, {})[form] = lemma
    return table


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("silver", type=Path, nargs="+", help="parses (conllu, gzipped or not)")
    parser.add_argument(
        "--evaluation", type=Path, nargs="*", default=[], help="evaluation files (jsonl.gz) to leave out"
    )
    parser.add_argument("--out", type=Path, required=True, help="the table (JSON)")
    add_hashes(parser)
    options = parser.parse_args()
    hashes = Hashes.read(options.held_out_hashes)
    captions = (caption for path in options.silver for caption in silver.read(path, hashes))
    table = exceptions(silver.without_evaluation(captions, options.evaluation))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(table, ensure_ascii=False, indent=0, sort_keys=True)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
