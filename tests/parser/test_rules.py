"""Every rule alone on hand-written parses (tests/cases/<rule>.conllu), and its docstring against them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from spicegraph_parser.fronts.conllu import read_conllu
from spicegraph_parser.spice.cleanup import clean_up
from spicegraph_parser.spice.collapse import collapse
from spicegraph_parser.spice.rules import RULES, Fact, FactPool, Rule, apply_rules

if TYPE_CHECKING:
    from spicegraph_parser.spice.parse import Parse

_FOLDER = Path(__file__).parents[1] / "cases"
_EXAMPLE = re.compile(r"^ +(\S.*?) {2,}-> (\(.*\))$", re.MULTILINE)
_NO_RULE = {"collapse", "cleanup"}

_Facts = list[tuple[str, ...]]


class _Case(NamedTuple):
    text: str
    purpose: str
    facts: _Facts
    parse: Parse


def _facts(text: str) -> _Facts:
    """Read ``(dog, brown) (dog)``."""
    return [tuple(fact.split(", ")) for fact in re.findall(r"\(([^()]*)\)", text)]


def _cases(name: str) -> list[_Case]:
    cases = []
    path = _FOLDER / f"{name}.conllu"
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        fields = dict(re.findall(r"^# (\w+) = ?(.*)$", block, re.MULTILINE))
        (caption,) = read_conllu(block.splitlines(), source=path.name)
        cases.append(_Case(fields["text"], fields["purpose"], _facts(fields["facts"]), *caption.sentences))
    return cases


def _run(rule: Rule, parse: Parse) -> _Facts:
    return [fact.words for fact in apply_rules(clean_up(collapse(parse)), rules={"alone": rule})]


@pytest.mark.parametrize(
    ("name", "case"), [pytest.param(name, case, id=f"{name}: {case.text}") for name in RULES for case in _cases(name)]
)
def test_rule_alone(name: str, case: _Case) -> None:
    """A rule gives exactly the facts of the case, in order."""
    assert _run(RULES[name], case.parse) == case.facts, case.purpose


@pytest.mark.parametrize("name", RULES)
def test_docstring_examples_are_cases(name: str) -> None:
    """What a rule's docstring shows is what it does: every example is a case with the same facts.

    A docstring has a relation as people read it, (subject, relation, object); cases have SPICE's order.
    """
    examples = _EXAMPLE.findall(RULES[name].__doc__ or "")
    assert examples, "the docstring has no example"
    known = {case.text: case.facts for case in _cases(name)}
    for text, facts in examples:
        read = [(fact[0], fact[2], fact[1]) if len(fact) == 3 else fact for fact in _facts(facts)]
        assert known.get(text) == read


def test_every_case_file_has_a_rule() -> None:
    """A case file that no test reads would be dead weight."""
    assert {path.stem for path in _FOLDER.glob("*.conllu")} == RULES.keys() | _NO_RULE


def test_every_rule_is_seen_to_hold_back() -> None:
    """Every rule has a case in which it gives nothing, but for amod, which asks for no more than its label."""
    eager = {name for name in RULES if all(case.facts for case in _cases(name))}
    assert eager == {"amod"}


def test_facts_carry_rule_and_tokens() -> None:
    """A fact knows its rule and, slot by slot, the caption's words, counted through earlier sentences."""
    (case,) = [case for case in _cases("clause") if case.text == "a cat sits in front of a car"]
    facts = list(apply_rules(clean_up(collapse(case.parse), offset=10)))
    assert facts[0] == (("cat", "car", "sit in front of"), "clause", ((11,), (17,), (12, 13, 14, 15)))
    assert [fact.rule for fact in facts] == ["clause", "objects", "objects", "objects"]


def test_equal_facts_become_one_object() -> None:
    """A pool gives back the object that it saw first."""
    pool = FactPool()
    first, again = (pool.share([Fact(("dog",), "objects", ((1,),))])[0] for _ in range(2))
    assert first is again
