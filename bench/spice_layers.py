"""What does each layer of SPICE cost, and what do the rules add to the parser's own time?

    python bench/spice_layers.py [--pipeline en_core_web_sm] [--captions 3000] [--rounds 5]

Prints, from tests/golden/spice: microseconds per caption from parse to facts, layer by layer; ready tuples
scored a second (one candidate, the references of its image); and the throughput of the whole parse stage
against bare ``nlp.pipe`` of the same pipeline, in turns. All in one process and in processor time, the best
of several rounds, so that a busy machine disturbs little.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import deque
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from spicegraph_parser.fronts.spacy import load_spacy
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_parser.spice.cleanup import clean_up
from spicegraph_parser.spice.collapse import collapse
from spicegraph_parser.spice.extraction import extract
from spicegraph_parser.spice.graph import merge, merge_concepts
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.parse import Caption, Edge, Parse, Word
from spicegraph_parser.spice.rules import Fact, apply_rules
from spicegraph_scorer.metrics.spice.match import count_concepts, count_match, match_tuples
from spicegraph_scorer.metrics.spice.metric import score_tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "spice"
_Tuples = list[list[str]]


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    arguments.add_argument("--pipeline", default="en_core_web_sm")
    arguments.add_argument("--captions", type=int, default=3000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    captions, tuples = _read()
    layers(captions, options.rounds)
    ready(tuples, options.rounds)
    texts = [caption.text for caption in captions][: options.captions]
    overhead(options.pipeline, texts, options.rounds)


def _read() -> tuple[list[Caption], dict[str, _Tuples]]:
    with gzip.open(_FOLDER / "spice_parses.jsonl.gz", "rt", encoding="utf-8") as lines:
        goldens = [json.loads(line) for line in lines]
    captions = [Caption(g["text"], tuple(_parse(sentence) for sentence in g["sentences"])) for g in goldens]
    return captions, {g["text"]: g["tuples"] for g in goldens}


def _parse(sentence: dict[str, list[str]]) -> Parse:
    rows = zip(sentence["words"], sentence["tags"], sentence["lemmas"], strict=True)
    words = tuple(Word(form, tag, lemma.lower()) for form, tag, lemma in rows)
    return Parse(words, tuple(Edge(*edge) for edge in sentence["basic"]))


def _exhaust(results: Iterable[object]) -> None:
    deque(results, maxlen=0)


def _seconds(run: Callable[[], Iterable[object]]) -> float:
    start = process_time()
    _exhaust(run())
    return process_time() - start


def _report(name: str, seconds: float, number: int) -> None:
    print(f"{name:32} {1e6 * seconds / number:8.1f} us  {number / seconds:10,.0f} a second")


def layers(captions: list[Caption], rounds: int) -> None:
    """Print the cost of collapsing, cleaning up, the rules, and all three."""
    sentences = [parse for caption in captions for parse in caption.sentences]
    collapsed = [collapse(parse) for parse in sentences]
    graphs = [clean_up(parse) for parse in collapsed]
    stages: dict[str, Callable[[], Iterable[object]]] = {
        "collapse": lambda: map(collapse, sentences),
        "clean up": lambda: map(clean_up, collapsed),
        "rules": lambda: (list(apply_rules(graph)) for graph in graphs),
        "parse to facts, all of it": lambda: map(extract, captions),
    }
    print(f"per caption, of {len(captions):,}")
    for name, run in stages.items():
        _report(f"  {name}", min(_seconds(run) for _ in range(rounds)), len(captions))


def ready(tuples: dict[str, _Tuples], rounds: int) -> None:
    """Print the cost of scoring ready tuples, whole and by stage."""
    with gzip.open(_FOLDER / "spice_scores.jsonl.gz", "rt", encoding="utf-8") as lines:
        goldens = [json.loads(line) for line in lines]
    items = [(tuples[g["candidate"]], [tuples[text] for text in g["references"]]) for g in goldens]
    lexicon = load_lexicon()
    facts = [([_facts(mine)], [_facts(caption) for caption in theirs]) for mine, theirs in items]
    graphs = [(merge(mine, lexicon), merge(theirs, lexicon)) for mine, theirs in facts]
    bare = [(merge_concepts(mine, lexicon), merge_concepts(theirs, lexicon)) for mine, theirs in facts]
    lists = [(mine.tuples(), theirs.tuples()) for mine, theirs in graphs]
    matches = [match_tuples(*pair) for pair in lists]
    stages: dict[str, Callable[[], Iterable[object]]] = {
        "merge": lambda: ((merge(mine, lexicon), merge(theirs, lexicon)) for mine, theirs in facts),
        "list and sort tuples": lambda: ((mine.tuples(), theirs.tuples()) for mine, theirs in graphs),
        "match": lambda: (match_tuples(*pair) for pair in lists),
        "count": lambda: map(count_match, matches),
        "merge, no evidence": lambda: (
            (merge_concepts(mine, lexicon), merge_concepts(theirs, lexicon)) for mine, theirs in facts
        ),
        "match and count, no evidence": lambda: (count_concepts(*pair) for pair in bare),
        "score_tuples, all of it": lambda: (score_tuples(*item) for item in items),
        "score_tuples, exact": lambda: (score_tuples(*item, exact=True) for item in items),
    }
    print(f"per item of ready tuples, of {len(items):,} (4 or 5 references)")
    for name, run in stages.items():
        _report(f"  {name}", min(_seconds(run) for _ in range(rounds)), len(items))


def _facts(tuples: _Tuples) -> list[Fact]:
    return [Fact(tuple(words), "ready", ()) for words in tuples]


def overhead(name: str, texts: list[str], rounds: int) -> None:
    """Print the throughput of a spaCy pipeline's parse stage and its share of bare ``nlp.pipe``."""
    pipeline, nlp = load_pipeline(name), load_spacy(name).nlp
    bare, whole = [], []
    for _ in range(rounds):
        bare.append(_seconds(lambda: nlp.pipe(texts)))
        whole.append(_seconds(lambda: pipeline.captions(texts)))
    print(f"parse stage of {len(texts):,} captions, {pipeline.signature}")
    _report("  nlp.pipe alone", min(bare), len(texts))
    _report("  captions to facts", min(whole), len(texts))
    print(f"  throughput against nlp.pipe alone {min(bare) / min(whole):.3f}")


if __name__ == "__main__":
    main()
