"""From ClearNLP labels to Universal Dependencies v1, construction by construction, without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.fronts.clearnlp import reference_lemma, to_universal

# Each word is form/tag/lemma>head:label; expected are the edges label(head, dependent).
_CASES = {
    "a preposition becomes a case": (
        "cat/NN/cat>0:ROOT on/IN/on>1:prep mats/NNS/mat>2:pobj",
        "root(0, 1) case(3, 2) nmod(1, 3)",
    ),
    "the inner preposition of a chain has the noun": (
        "cat/NN/cat>0:ROOT out/IN/out>1:prep of/IN/of>2:prep boxes/NNS/box>3:pobj",
        "root(0, 1) advmod(4, 2) case(4, 3) nmod(1, 4)",
    ),
    "a preposition without a noun is an adverb": (
        "cat/NN/cat>0:ROOT inside/IN/inside>1:prep",
        "root(0, 1) advmod(1, 2)",
    ),
    "a preposition with a clause is its marker": (
        "runs/VBZ/run>0:ROOT without/IN/without>1:prep looking/VBG/look>2:pcomp",
        "root(0, 1) mark(3, 2) advcl(1, 3)",
    ),
    "the same below a noun": (
        "way/NN/way>0:ROOT of/IN/of>1:prep looking/VBG/look>2:pcomp",
        "root(0, 1) mark(3, 2) acl(1, 3)",
    ),
    "an indirect object without a preposition is one": (
        "gives/VBZ/give>0:ROOT dogs/NNS/dog>1:dative bones/NNS/bone>1:dobj",
        "root(0, 1) iobj(1, 2) dobj(1, 3)",
    ),
    "a copula hangs on its predicate, with everything else": (
        "he/PRP/he>2:nsubj is/VBZ/be>0:ROOT a/DT/a>4:det surfer/NN/surfer>2:attr ././.>2:punct",
        "nsubj(4, 1) cop(4, 2) det(4, 3) root(0, 4) punct(4, 5)",
    ),
    "an adjective as predicate": (
        "it/PRP/it>2:nsubj is/VBZ/be>0:ROOT red/JJ/red>2:acomp",
        "nsubj(3, 1) cop(3, 2) root(0, 3)",
    ),
    "a place as predicate": (
        "cat/NN/cat>2:nsubj is/VBZ/be>0:ROOT on/IN/on>2:prep mats/NNS/mat>3:pobj",
        "nsubj(4, 1) cop(4, 2) case(4, 3) root(0, 4)",
    ),
    '"there is" keeps its verb': (
        "there/EX/there>2:expl is/VBZ/be>0:ROOT dog/NN/dog>2:attr",
        "expl(2, 1) root(0, 2) nsubj(2, 3)",
    ),
    "an auxiliary is no copula": (
        "it/PRP/it>3:nsubj is/VBZ/be>3:aux running/VBG/run>0:ROOT",
        "nsubj(3, 1) aux(3, 2) root(0, 3)",
    ),
    "conjuncts and coordinators hang on the first conjunct": (
        "cats/NNS/cat>0:ROOT ,/,/,>1:punct dogs/NNS/dog>1:conj and/CC/and>3:cc cows/NNS/cow>3:conj",
        "root(0, 1) punct(1, 2) conj(1, 3) cc(1, 4) conj(1, 5)",
    ),
    "the agent of a passive verb is a prepositional phrase": (
        "ridden/VBN/ride>0:ROOT by/IN/by>1:agent men/NNS/man>2:pobj",
        "root(0, 1) case(3, 2) nmod(1, 3)",
    ),
    "other labels are renamed": (
        "man/NN/man>0:ROOT 's/POS/'s>1:case hat/NN/hat>1:poss who/WP/who>5:nsubj looks/VBZ/look>1:relcl up/RP/up>5:prt all/PDT/all>1:predet",
        "root(0, 1) case(1, 2) nmod:poss(1, 3) nsubj(5, 4) acl:relcl(1, 5) compound:prt(5, 6) det:predet(1, 7)",
    ),
    "a noun in front of a noun, which ClearNLP may call nmod": (
        "half/NN/half>2:nmod pizza/NN/pizza>0:ROOT",
        "compound(2, 1) root(0, 2)",
    ),
}


def _tree(text: str) -> tuple[list[str], list[str], list[int], list[str]]:
    tags, lemmas, heads, labels = [], [], [], []
    for token in text.split():
        word, _, arc = token.rpartition(">")
        _, tag, lemma = word.split("/")
        head, _, label = arc.partition(":")
        tags.append(tag)
        lemmas.append(lemma)
        heads.append(int(head))
        labels.append(label)
    return tags, lemmas, heads, labels


@pytest.mark.parametrize("name", _CASES)
def test_case(name: str) -> None:
    """The whole tree is as expected."""
    text, expected = _CASES[name]
    found = " ".join(f"{label}({head}, {dependent})" for label, head, dependent in to_universal(*_tree(text)))
    assert found == expected


_LABELS = st.sampled_from(
    [
        "ROOT",
        "prep",
        "pobj",
        "pcomp",
        "dative",
        "agent",
        "attr",
        "acomp",
        "nsubj",
        "csubj",
        "expl",
        "conj",
        "cc",
        "aux",
        "dep",
    ]
)


@given(st.data())
def test_every_word_keeps_one_head(data: st.DataObject) -> None:
    """Any tree with any labels becomes a tree over the same words, with one root for each that it had."""
    size = data.draw(st.integers(0, 9))
    heads = [data.draw(st.integers(0, position - 1)) for position in range(1, size + 1)]
    labels = data.draw(st.lists(_LABELS, min_size=size, max_size=size))
    tags = data.draw(st.lists(st.sampled_from(["NN", "IN", "TO", "VBZ"]), min_size=size, max_size=size))
    lemmas = ["be" if tag == "VBZ" else "x" for tag in tags]
    arcs = list(to_universal(tags, lemmas, heads, labels))
    assert [dependent for _, _, dependent in arcs] == list(range(1, size + 1))
    assert sum(not head for _, head, _ in arcs) == heads.count(0)
    above = {dependent: head for _, head, dependent in arcs}
    for start in above:
        path = [start]
        while path[-1]:
            path.append(above[path[-1]])
            assert len(path) <= size + 1, "a cycle"


@pytest.mark.parametrize(
    ("form", "tag", "lemma", "expected"),
    [
        ("Riding", "VBG", "rid", "ride"),
        ("shines", "VBZ", "shin", "shine"),
        ("hanging", "VBG", "hang", "hang"),
        ("sitting", "VBG", "sit", "sit"),
        ("older", "JJR", "old", "older"),
        ("An", "DT", "an", "a"),
        ("his", "PRP$", "his", "he"),
        ("jeans", "NNS", "jean", "jeans"),
        ("dogs", "NNS", "dog", "dog"),
    ],
)
def test_lemmas_are_the_references(form: str, tag: str, lemma: str, expected: str) -> None:
    """Where the two disagree by rule, the reference's lemma counts."""
    assert reference_lemma(form, tag, lemma) == expected
