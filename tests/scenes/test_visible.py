"""What a text denies or hedges, against sentences marked by hand."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spicegraph_parser import load_pipeline
from spicegraph_parser.caption_pipeline.encoder import float_product
from spicegraph_parser.spice.extraction import ApartReason
from spicegraph_parser.spice.parse import Parse
from spicegraph_scenes import SCENE_WEIGHTS
from spicegraph_scenes.denial import Scope, Standing, scopes
from spicegraph_scenes.parser import load_network, read_texts
from spicegraph_scenes.passes import run
from spicegraph_scenes.words import NOUNS

if TYPE_CHECKING:
    from spicegraph_parser.spice.extraction import ParsedCaption

_MARKS = {"-": ApartReason.DENIED, "?": ApartReason.HEDGED}
_MARKED = re.compile(r"([A-Za-z]+)([-?])(?=[\s.,]|$)")
_FOLDER = Path(__file__).parent


def _lines(name: str) -> list[str]:
    return (_FOLDER / name).read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.model
@pytest.mark.parametrize("standing", _MARKS.values())
def test_marks_of_200_sentences(standing: ApartReason) -> None:
    """Nouns that are denied or hedged are so by hand, too, in 95 of 100, and few are missed."""
    lines = _lines("marked.txt")
    counts: Counter[str] = Counter()
    wrong = []
    texts = [_MARKED.sub(r"\1", line) for line in lines]
    for line, text in zip(lines, read_texts(load_network(SCENE_WEIGHTS), float_product, texts, 0), strict=True):
        marked = Counter(word.lower() for word, mark in _MARKED.findall(line) if _MARKS[mark] is standing)
        decided = [run(sentence)[0] for sentence, _ in text.sentences]
        found = Counter(
            word
            for own in decided
            for word, tag, why in zip(own.words, own.labels.tags, own.why, strict=True)
            if why is standing and (tag in NOUNS or word == "one") and word not in {"none", "neither"}
        )
        counts += Counter(right=(marked & found).total(), found=found.total(), marked=marked.total())
        if marked != found:
            wrong.append((line, sorted((found - marked).elements()), sorted((marked - found).elements())))
    assert len(lines) == 200
    assert counts["right"] >= 0.95 * counts["found"], wrong
    assert counts["right"] >= 0.9 * counts["marked"], wrong


def _faults(line: str, caption: ParsedCaption) -> set[str]:
    """Return the words that a graph says though they are denied, and the nouns it keeps apart though they are there."""
    words = [(word.form.lower(), word.tag) for parse in caption.sentences for word in parse.words]
    marked = {word.lower() for word, _ in _MARKED.findall(line)}
    said = {words[token][0] for fact in caption.facts for slot in fact.tokens for token in slot}
    drawn = {words[token][0] for fact in caption.facts if len(fact.words) == 1 for token in fact.tokens[0]}
    apart = {words[token][0] for fact in caption.apart for slot in fact.tokens for token in slot}
    nouns = {word for word, tag in words if tag.startswith("NN")} - marked
    return (marked & said) | ((nouns & apart) - drawn)


@pytest.mark.model
@pytest.mark.parametrize("half", [0, 1], ids=["open", "set aside"])
def test_denials_by_hand(half: int) -> None:
    """At least 95 of 100: what is denied is not drawn, and what stands beside it is."""
    lines = _lines("denials.txt")[half::2]
    texts = [_MARKED.sub(r"\1", line) for line in lines]
    faults = {
        line: _faults(line, caption)
        for line, caption in zip(lines, load_pipeline("scene").captions(texts), strict=True)
    }
    wrong = {line: words for line, words in faults.items() if words}
    assert len(lines) == 100
    assert len(wrong) <= 5, wrong


_SUBJECTS = ("man", "woman", "boy", "girl", "child", "person")
_LACKS = ("a helmet", "a shirt", "a coat", "gloves", "shoes", "makeup", "any hat")
_RIDES = (
    "rides a motorcycle", "surfs a wave", "skis down a hill", "looks at a dog", "waves at the camera",
    "paints a picture", "brushes a horse", "plays frisbee", "ski jumps", "rides a scooter down the street",
    "walks a dog", "throws a ball",
)  # fmt: skip


@pytest.mark.model
@pytest.mark.parametrize(
    "text",
    [
        "Bar stools, some with backs and some without, stand there.",
        "It looks down at the bouquet but not directly overhead.",
    ],
)
def test_a_trigger_with_nothing_behind_it_denies_nothing(text: str) -> None:
    """What stands before it is drawn."""
    (caption,) = load_pipeline("scene").captions([text])
    assert caption.tuples
    assert "denied" not in [fact.rule for fact in caption.apart]


@pytest.mark.model
def test_a_subject_without_something_does_what_it_does() -> None:
    """All 504: the graph is that of the same caption without what is lacked, which is denied."""
    forms = [
        (f"A {who} without {lack} {does}.", f"A {who} {does}.", lack)
        for who in _SUBJECTS
        for lack in _LACKS
        for does in _RIDES
    ]
    pipeline = load_pipeline("scene")
    pairs = zip(*(pipeline.captions(column) for column in list(zip(*forms, strict=True))[:2]), strict=True)
    for (lacking, plain), (text, _, lack) in zip(pairs, forms, strict=True):
        assert set(lacking.tuples) == set(plain.tuples), text
        assert [fact.rule for fact in lacking.apart if fact.words == (lack.split()[-1],)] == ["denied"], text


def _scopes(text: str, arcs: str) -> list[Scope]:
    """Return the scopes of words with tags, and edges as "head>dependent:label"."""
    words, tags = zip(*(word.rsplit("/", 1) for word in text.split()), strict=True)
    rows = [(label, *map(int, ends.split(">"))) for ends, label in (arc.split(":", 1) for arc in arcs.split())]
    return scopes(Parse.from_columns(words, tags, words, [(label, a, b) for label, a, b in rows], ()))


@pytest.mark.parametrize(
    ("text", "arcs", "wanted"),
    [
        (
            "neither/DT of/IN the/DT dogs/NNS wears/VBZ a/DT hat/NN",
            "5>1:nsubj 4>2:case 4>3:det 1>4:nmod 0>5:root 7>6:det 5>7:dobj",
            [Scope(1, (1, 5, 7, 6))],
        ),
        (
            "a/DT man/NN without/IN hat/NN or/CC tie/NN sits/VBZ",
            "2>1:det 7>2:nsubj 4>3:case 2>4:nmod 4>5:cc 4>6:conj 0>7:root",
            [Scope(3, (4, 6), modifier=range(3, 7), owner=2)],
        ),
        (
            "the/DT cat/NN is/VBZ not/RB on/IN the/DT mat/NN",
            "2>1:det 7>2:nsubj 7>3:cop 7>4:neg 7>5:case 7>6:det 0>7:root",
            [Scope(4, (5,))],
        ),
        (
            "a/DT cat/NN tries/VBZ to/TO catch/VB a/DT bird/NN",
            "2>1:det 3>2:nsubj 0>3:root 5>4:mark 3>5:xcomp 7>6:det 5>7:dobj",
            [Scope(3, (5,), Standing.HEDGED)],
        ),
        (
            "runners/NNS have/VBP yet/RB to/TO cross/VB a/DT line/NN",
            "2>1:nsubj 0>2:root 2>3:advmod 5>4:mark 2>5:xcomp 7>6:det 5>7:dobj",
            [Scope(3, (5,))],
        ),
        (
            "apart/RB from/IN a/DT gull/NN the/DT harbor/NN is/VBZ empty/JJ",
            "4>1:advmod 4>2:case 4>3:det 8>4:nmod 6>5:det 8>6:nsubj 8>7:cop 0>8:root",
            [Scope(1, (1, 2))],
        ),
        (
            "neither/DT glasses/NNS nor/CC plates/NNS are/VBP on/IN trays/NNS",
            "2>1:cc:preconj 7>2:nsubj 2>3:cc 2>4:conj 7>5:cop 7>6:case 0>7:root",
            [Scope(1, (2, 4, 6))],
        ),
        (
            "he/PRP never/RB takes/VBZ his/PRP$ eyes/NNS off/IN a/DT ball/NN",
            "3>1:nsubj 3>2:neg 0>3:root 5>4:nmod:poss 3>5:dobj 8>6:case 8>7:det 3>8:nmod",
            [Scope(2, (3, 6))],
        ),
        (
            "a/DT woman/NN avoids/VBZ stepping/VBG in/IN a/DT puddle/NN",
            "2>1:det 3>2:nsubj 0>3:root 3>4:xcomp 7>5:case 7>6:det 4>7:nmod",
            [Scope(3, (4,))],
        ),
        (
            "a/DT runner/NN nearly/RB trips/VBZ over/IN a/DT hurdle/NN",
            "2>1:det 4>2:nsubj 4>3:advmod 0>4:root 7>5:case 7>6:det 4>7:nmod",
            [Scope(3, (4, 5), Standing.HEDGED)],
        ),
        (
            "guards/NNS prevent/VBP a/DT man/NN from/IN entering/VBG a/DT bank/NN",
            "2>1:nsubj 0>2:root 4>3:det 2>4:dobj 6>5:mark 2>6:advcl 8>7:det 6>8:dobj",
            [Scope(2, (6,))],
        ),
        (
            "rather/RB than/IN climbing/VBG the/DT stairs/NNS the/DT woman/NN rides/VBZ",
            "8>1:advmod 3>2:mark 8>3:advcl 5>4:det 3>5:dobj 7>6:det 8>7:nsubj 0>8:root",
            [Scope(1, (3,))],
        ),
        (
            "a/DT man/NN refuses/VBZ to/TO shake/VB hands/NNS with/IN a/DT mayor/NN",
            "2>1:det 3>2:nsubj 0>3:root 5>4:mark 3>5:xcomp 5>6:dobj 9>7:case 9>8:det 5>9:nmod",
            [Scope(3, (5, 7))],
        ),
        ("a/DT hiker/NN never/RB stop/VB smiling/VBG", "2>1:det 4>2:nsubj 4>3:neg 0>4:root 4>5:xcomp", []),
        (
            "a/DT Do/VB Not/RB Enter/VB sign/NN stands/VBZ near/IN a/DT hydrant/NN",
            "5>1:det 4>2:aux 4>3:neg 5>4:dep 6>5:nsubj 0>6:root 9>7:case 9>8:det 6>9:nmod",
            [],
        ),
        (
            "none/NN other/JJ than/IN a/DT mayor/NN cuts/VBZ a/DT ribbon/NN",
            "6>1:nsubj 1>2:amod 5>3:case 5>4:det 1>5:nmod 0>6:root 8>7:det 6>8:dobj",
            [],
        ),
        (
            "stools/NNS with/IN backs/NNS and/CC some/DT without/IN stand/VBP",
            "7>1:nsubj 3>2:case 1>3:nmod 3>4:cc 3>5:conj 3>6:dep 0>7:root",
            [Scope(6, ())],
        ),
        ("a/DT no/DT parking/NN sign/NN", "4>1:det 4>2:neg 4>3:compound 0>4:root", []),
        ("a/DT rather/RB tall/JJ man/NN", "4>1:det 3>2:advmod 4>3:amod 0>4:root", []),
        ("a/DT man/NN sits/VBZ", "2>1:det 3>2:nsubj 0>3:root", []),
    ],
    ids=[
        "neither of",
        "without",
        "not on",
        "tries to",
        "yet to",
        "apart from",
        "neither nor",
        "off",
        "avoids",
        "nearly",
        "prevents from",
        "rather than at the start",
        "refuses to",
        "never stops",
        "a title",
        "none other than",
        "some without",
        "a name",
        "rather tall",
        "no trigger",
    ],
)
def test_the_scope_of_a_trigger(text: str, arcs: str, wanted: list[Scope]) -> None:
    """What it covers, and the modifier that says nothing else."""
    assert _scopes(text, arcs) == wanted
