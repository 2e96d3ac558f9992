"""Universal Dependencies v2 parses give the tuples that their v1 form gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser import InputError, extract, read_conllu
from spicegraph_parser.errors import DataError
from spicegraph_parser.fronts.ud2 import Scheme, is_ud2, ud1_label, ud1_lines, ud1_tag
from spicegraph_parser.languages import find_language

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "spice" / "spice_parses.jsonl.gz"
EXAMPLE = ROOT / "examples" / "other_parsers" / "parses.conllu"

_TO_V2 = {"dobj": "obj", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "auxpass": "aux:pass", "mwe": "fixed"}
_VERBAL = ("V", "J", "R")


def tuples(lines: Sequence[str], scheme: Scheme = Scheme.AUTO) -> list[tuple[str, ...]]:
    return [words for caption in read_conllu(ud1_lines(lines, scheme=scheme)) for words in extract(caption).tuples]


def test_the_example_gives_the_tuples_of_its_captions() -> None:
    captions = [extract(caption) for caption in read_conllu(ud1_lines(EXAMPLE.read_text().splitlines()))]
    found = {caption.text: set(caption.tuples) for caption in captions}
    assert found["A man is riding a brown horse on the beach."] == {
        ("man", "horse", "ride"),
        ("man", "beach", "ride on"),
        ("horse", "brown"),
        ("man",),
        ("horse",),
        ("beach",),
    }
    assert ("man", "horse", "ride") in found["A horse is ridden by a man."]
    assert {("man", "horse", "have"), ("man", "sea", "ride next to")} < found[
        "The man rides his horse next to the sea."
    ]
    assert {("dog", "bench", "sit in front of"), ("cat", "bench", "sit in front of"), ("dog", "two")} < found[
        "Two dogs and a cat sit in front of a bench."
    ]
    assert {("dog", "small"), ("dog", "grass", "sit on")} < found["A cat and two small dogs are sitting on the grass."]


def golden_sentences(limit: int) -> Iterator[tuple[list[str], list[str], list[str], list[tuple[str, int, int]]]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as stream:
        for line, _ in zip(stream, range(limit), strict=False):
            for sentence in json.loads(line)["sentences"]:
                edges = [(str(label), int(head), int(dependent)) for label, head, dependent in sentence["basic"]]
                yield sentence["words"], sentence["tags"], sentence["lemmas"], edges


def conllu(
    words: Sequence[str], tags: Sequence[str], lemmas: Sequence[str], edges: Sequence[tuple[str, int, int]]
) -> list[str]:
    above = {dependent: (str(head), label) for label, head, dependent in edges}
    rows = zip(range(1, len(words) + 1), words, tags, lemmas, strict=True)
    cells = [(str(n), w, lemma, "_", tag, "_", *above.get(n, ("_", "_")), "_", "_") for n, w, tag, lemma in rows]
    return ["\t".join(row) for row in cells]


def to_v2(tags: Sequence[str], edges: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Write v1 edges as v2 has them: labels, and coordinating words in front of their own conjunct."""
    found = []
    for label, head, dependent in edges:
        new, parent = _TO_V2.get(label, label), head
        if label.startswith("nmod") and label != "nmod:poss" and head and tags[head - 1].startswith(_VERBAL):
            new = {"nmod": "obl", "nmod:npmod": "obl:npmod", "nmod:tmod": "obl:tmod"}[label]
        if label == "cc":
            after = [d for other, h, d in edges if other == "conj" and h == head and d > dependent]
            parent = min(after, default=head)
        found.append((new, parent, dependent))
    return found


@pytest.mark.slow
def test_reference_parses_written_as_v2_give_the_same_tuples() -> None:
    compared = different_text = 0
    for words, tags, lemmas, edges in golden_sentences(1500):
        v1, v2 = conllu(words, tags, lemmas, edges), conllu(words, tags, lemmas, to_v2(tags, edges))
        different_text += v1 != v2
        compared += 1
        assert tuples(v2) == tuples(v1), words
        assert list(ud1_lines(v1)) == v1, "v1 stays as it is"
    assert compared > 1400
    assert different_text > 1000


def test_labels_and_tags() -> None:
    assert [ud1_label(label) for label in ("obl:agent", "obl:in_front_of", "flat", "nmod:poss", "conj")] == [
        "nmod",
        "nmod:in_front_of",
        "compound",
        "nmod:poss",
        "conj",
    ]
    rows = [
        ("NNS", "NOUN", "_", "NNS"),
        ("NOUN", "NOUN", "Number=Plur", "NNS"),
        ("_", "PROPN", "Number=Sing", "NNP"),
        ("_", "VERB", "Tense=Past|VerbForm=Part", "VBN"),
        ("_", "VERB", "Tense=Pres|VerbForm=Part", "VBG"),
        ("_", "PRON", "Poss=Yes", "PRP$"),
        ("_", "ADJ", "Degree=Cmp", "JJ"),
        ("odd", "_", "_", "odd"),
    ]
    assert [ud1_tag(*row[:3]) for row in rows] == [row[3] for row in rows]


V2 = [
    "# text = don't see it",
    "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_",
    "1\tdo\tdo\tAUX\tVB\t_\t3\taux\t3:aux\t_",
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_",
    "3\tsee\tsee\tVERB\tVB\t_\t0\troot\t_\t_",
    "3.1\tx\tx\t_\t_\t_\t_\t_\t_\t_",
    "4\tdogs\tdog\tNOUN\tNNS\t_\t3\tobj\t3:obj|3.1:dep\t_",
]


def test_multi_word_tokens_and_empty_nodes_are_left_out_and_line_numbers_stay() -> None:
    lines = list(ud1_lines(V2))
    assert len(lines) == len(V2)
    assert tuples(V2) == [("dog",)]
    broken = [*V2[:-1], V2[-1].replace("\t3\tobj", "\t9\tobj")]
    with pytest.raises(InputError, match="line 7: column HEAD is '9'"):
        tuples(broken)


def test_a_scheme_can_be_told() -> None:
    plain = ["1\tdogs\tdog\tNOUN\t_\tNumber=Plur\t0\troot\t_\t_"]
    assert not is_ud2([line.split("\t") for line in plain])
    assert tuples(plain) == []  # no tag, and nothing that shows v2
    assert tuples(plain, Scheme.UD2) == [("dog",)]
    with pytest.raises(InputError, match="plain words only"):
        tuples(V2, Scheme.UD1)


def test_what_is_no_conllu_comes_back_for_the_reader_to_refuse() -> None:
    with pytest.raises(InputError, match="10 tab-separated columns"):
        tuples(["1\tobj"])


def test_enhanced_graphs_alone_are_mapped() -> None:
    rows = [
        "1\tdog\tdog\t_\tNN\t_\t_\t_\t2:nsubj:pass\t_",
        "2\tseen\tsee\t_\tVBN\t_\t_\t_\t0:root\t_",
        "3\tman\tman\t_\tNN\t_\t_\t_\t2:obl:agent\t_",
    ]
    lines = [line.split("\t")[8] for line in ud1_lines(rows, scheme=Scheme.UD2)]
    assert lines == ["2:nsubjpass", "0:root", "2:nmod"]


CLEARNLP = """\
1 A a _ DT _ 2 det _ _
2 man man _ NN _ 3 nsubj _ _
3 rides ride _ VBZ _ 0 ROOT _ _
4 a a _ DT _ 5 det _ _
5 horse horse _ NN _ 3 dobj _ _
6 on on _ IN _ 3 prep _ _
7 the the _ DT _ 8 det _ _
8 beach beach _ NN _ 6 pobj _ _
""".replace(" ", "\t")


@pytest.mark.parametrize("code", ["en", "de"])
def test_labels_of_clearnlp_are_recognised(code: str) -> None:
    if code != "en":
        pytest.importorskip("spicegraph_languages")
    language = find_language(code)
    (caption,) = read_conllu(ud1_lines(CLEARNLP.splitlines(), language=language), language=language)
    assert {("man", "horse", "ride"), ("man", "beach", "ride on")} <= set(extract(caption).tuples)


@pytest.mark.parametrize("labels", ["NK SB OA MO NK", "det subj comp:obj udep comp:obj", "DET NSUBJ DOBJ PREP POBJ"])
def test_labels_of_no_scheme_are_refused_by_name(labels: str) -> None:
    lines = CLEARNLP
    for known, other in zip(["det", "nsubj", "dobj", "prep", "pobj"], labels.split(), strict=True):
        lines = lines.replace(f"\t{known}\t", f"\t{other}\t")
    with pytest.raises(DataError, match=r"'A man rides a horse on the beach' has labels of no scheme that is known: "):
        list(ud1_lines(lines.splitlines()))
