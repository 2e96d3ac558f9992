"""Scene graphs as text, ``( man , ride , horse ) , ( horse , is , brown )``, as the FACTUAL parser writes them.

FACTUAL: Li et al., Findings of ACL 2023. There every fact is a triple, and an attribute is a triple whose
relation is "is". A lone object has no triple there; it is written here as ``( dog )``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spicegraph_parser.errors import InputError
from spicegraph_parser.spice.rules import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_IS = "is"
_GROUP = re.compile(r"\(([^()]*)\)")
_WHOLE = re.compile(r"\s*\([^()]*\)(?:(?:\s*,)?\s*\([^()]*\))*\s*")
_END = re.compile(r",[^(),]*[^(),:;=-]\)\s*$")  # but not in :-)
_MOST_WORDS = 3


def is_graph_text(text: str) -> bool:
    """Say whether a text is a graph: nothing but groups in parentheses, each of one to three non-empty words.

    Example:
        >>> is_graph_text("( man , ride , horse )"), is_graph_text("a man (left) rides")
        (True, False)
    """
    return _WHOLE.fullmatch(text) is not None and _group_fault(text) is None


def graph_fault(text: str) -> str | None:
    """Say why a text that looks like a graph is not one; ``None``: it is one, or an ordinary caption.

    A text looks like a graph if it begins with a parenthesis, or ends with a comma, words and a parenthesis. A caption
    may do that, too, but its parentheses pair up, and it has words outside of them.

    Example:
        >>> graph_fault("( man , ride , horse"), graph_fault("a man (left)")
        ("has a '(' without its ')'", None)
    """
    if _WHOLE.fullmatch(text):
        return _group_fault(text)
    begins = text.lstrip().startswith("(")
    if not begins and not _END.search(text):
        return None
    depth = deepest = 0
    for bracket in re.findall(r"[()]", text):
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            return "has a ')' without its '('"
        deepest = max(deepest, depth)
    if depth:
        return "has a '(' without its ')'"
    return "has parentheses inside of parentheses" if begins and deepest > 1 else None


def _group_fault(text: str) -> str | None:
    for group in _GROUP.findall(text):
        slots = _slots(group)
        if not all(slots):
            return f"has nothing between two commas or parentheses: {group.strip()[:60]!a}"
        if len(slots) > _MOST_WORDS:
            return f"has {len(slots)} entries where a fact has at most {_MOST_WORDS}: {group.strip()[:60]!a}"
    return None


def _slots(group: str) -> list[str]:
    return [" ".join(slot.split()).lower() for slot in group.split(",")]


def read_graph_text(text: str) -> tuple[Fact, ...]:
    """Return the facts of a graph, in its order, and of every fact its objects too.

    Words are taken as they are, in lower case; synonyms and inflected forms still match, through WordNet.

    Raises:
        InputError: the text is not a graph.

    Example:
        >>> [fact.words for fact in read_graph_text("( pigs , is , 2 ) , ( pigs , fly on , sky )")]
        [('pigs', '2'), ('pigs', 'sky', 'fly on'), ('pigs',), ('sky',)]
    """
    if not is_graph_text(text):
        raise InputError(f"is not a graph, expected ( subject , relation , object ) , ...: {text[:60]!a}")
    facts: dict[tuple[str, ...], None] = {}
    objects: dict[tuple[str, ...], None] = {}
    for group in _GROUP.findall(text):
        slots = _slots(group)
        if len(slots) == 3 and slots[1] != _IS:
            subject, relation, target = slots
            facts[(subject, target, relation)] = None
            objects |= {(subject,): None, (target,): None}
        elif len(slots) > 1:
            facts[(slots[0], slots[-1])] = None
            objects[(slots[0],)] = None
        else:
            objects[(slots[0],)] = None
    return tuple(Fact(words, "graph text", ()) for words in (*facts, *objects))


def tuple_text(words: Sequence[str]) -> str:
    """Return a fact's words for people, who read a relation in the middle.

    Example:
        >>> tuple_text(("man", "horse", "ride")), tuple_text(("horse", "brown"))
        ('(man, ride, horse)', '(horse, brown)')
    """
    return f"({', '.join((words[0], *words[2:], *words[1:2]))})"


def graph_text(tuples: Iterable[Sequence[str]]) -> str:
    """Return a caption's tuples as graph text; objects that stand in another tuple are not repeated.

    Parentheses and commas inside of words, which the form can't hold, become spaces.

    Example:
        >>> graph_text([("man", "horse", "ride"), ("horse", "brown"), ("man",), ("dog",)])
        '( man , ride , horse ) , ( horse , is , brown ) , ( dog )'
    """
    rows = [[" ".join(re.sub(r"[(),]", " ", word).split()) for word in words] for words in tuples]
    named = {word for words in rows if len(words) > 1 for word in (words[0], *words[1 : len(words) - 1])}
    groups = []
    for words in rows:
        if len(words) == 3:
            groups.append(f"( {words[0]} , {words[2]} , {words[1]} )")
        elif len(words) == 2:
            groups.append(f"( {words[0]} , {_IS} , {words[1]} )")
        elif words[0] not in named:
            groups.append(f"( {words[0]} )")
    return " , ".join(dict.fromkeys(groups))


_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS, 2)}


def with_digits(tuples: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return tuples whose attributes have numbers in digits, as FACTUAL's graphs do.

    Example:
        >>> with_digits([("dogs", "two"), ("two",)])
        [('dogs', '2'), ('two',)]
    """
    return [(words[0], _DIGITS.get(words[1], words[1])) if len(words) == 2 else tuple(words) for words in tuples]
