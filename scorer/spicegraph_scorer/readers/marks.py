"""Captions with marks of models are a fault, or lose their marks, or keep them: one rule for all items of a corpus."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from spicegraph_parser.errors import counted
from spicegraph_scorer.core.items import CheckedItems, Item
from spicegraph_scorer.core.marks import DECODED, FoundMarks, may_have_marks, without_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ControlTokens = Literal["refuse", "strip", "keep"]
"""What is done with captions that hold control tokens: they are a fault, lose them, or are scored with them."""

_EXAMPLES: Final = 3
_NAMED: Final = 5
_SHOWN: Final = 60
REMEDY: Final = (
    "to take them off, say so: --control-tokens strip; to score them as words: --control-tokens keep "
    '(in Python control_tokens="strip")'
)


class Marks:
    """Applies the rule for leftover control tokens to captions, and counts them."""

    def __init__(self, rule: ControlTokens) -> None:
        self.rule = rule
        self._counts: Counter[str] = Counter()
        self._candidates = self._references = 0

    def candidate(self, text: str) -> tuple[str, Sequence[str]]:
        """Return a candidate as the rule has it, and the names of its marks."""
        clean, found = without_marks(text)
        self._candidates += bool(found)
        return self._minded(text, clean, found)

    def reference(self, text: str) -> tuple[str, Sequence[str]]:
        """Return a reference as the rule has it, and the names of its marks."""
        clean, found = without_marks(text)
        self._references += bool(found)
        return self._minded(text, clean, found)

    def _minded(self, text: str, clean: str, found: Mapping[str, int]) -> tuple[str, Sequence[str]]:
        self._counts.update(found)
        is_decoded = self.rule == "refuse" and DECODED.issuperset(found)
        return (clean if self.rule == "strip" or is_decoded else text), () if is_decoded else tuple(found)

    def found(self) -> FoundMarks:
        """Return the counts of control tokens so far."""
        return FoundMarks(self.rule == "keep", self._candidates, self._references, tuple(self._counts.most_common()))


def mind_marks(items: CheckedItems, rule: ControlTokens, *, remedy: str = REMEDY) -> tuple[CheckedItems, str]:
    """Apply the control-token rule: return the items with token counts, and any refusal reason."""
    marks = Marks(rule)
    examples: list[str] = []
    minded = [_minded(item, marks, examples) if _may_have_marks(item) else item for item in items]
    found = marks.found()
    if not found:
        return items, ""
    reason = ""
    if examples and rule == "refuse":
        shown = "; ".join(examples[:_EXAMPLES])
        reason = f"{_who(len(items), found)} what models leave behind, such as {shown}; {remedy}"
    return CheckedItems.with_marks(minded, found), reason


def _minded(item: Item, marks: Marks, examples: list[str]) -> Item:
    """Return an item as the rule has it, and add an example of each caption that has marks."""
    place = f"image_id {_shown(item.id)}"
    candidate, names = marks.candidate(item.candidate)
    if names:
        examples.append(f"{_shown(item.candidate)} ({place})")
    references = []
    for number, text in enumerate(item.references, start=1):
        reference, names = marks.reference(text)
        references.append(reference)
        if names:  # the text may be private
            examples.append(f"{named(names)} ({place}, reference {number})")
    minded = replace(item, candidate=candidate, references=tuple(references))
    return item if minded == item else minded


def _may_have_marks(item: Item) -> bool:
    return may_have_marks("\n".join((item.candidate, *item.references)))


def marks_notes(candidates: int, marks: FoundMarks) -> Iterator[str]:
    """Yield notes on control tokens removed or kept; ``candidates``: the number of candidates."""
    if not marks:
        return
    counts = dict(marks.counts)
    is_decoded = DECODED.issuperset(counts)
    what = "characters in another notation" if is_decoded else "what models leave behind"
    done = "is scored as words" if marks.kept else "was decoded" if is_decoded else "was taken off"
    yield f"{_who(candidates, marks)} {what}, which {done}: {named(counts)}"
    if marks.missing and not marks.kept:
        verb = "is" if marks.missing == 1 else "are"
        yield f"{counted(marks.missing, 'word')} {verb} missing in captions, where a token such as <unk> stood"


def kept_note(texts: Iterable[str]) -> str | None:
    """Return a note counting texts with leftover control tokens; ``None`` if there are none."""
    given = list(texts)
    found = [marks for text in given if (marks := without_marks(text)[1])]
    if not found:
        return None
    names = named([name for name, _ in Counter(name for marks in found for name in marks).most_common()])
    verb = "contains" if len(found) == 1 else "contain"
    what = "what models leave behind, which is scored as words"
    return f"{len(found):,} of {counted(len(given), 'caption')} {verb} {what}: {names}"


def _who(candidates: int, marks: FoundMarks) -> str:
    of_all = f"{marks.candidates:,} of {counted(candidates, 'candidate')}" if marks.candidates else ""
    references = counted(marks.references, "reference") if marks.references else ""
    verb = "contains" if marks.candidates + marks.references == 1 else "contain"
    return f"{' and '.join(filter(None, (of_all, references)))} {verb}"


def named(found: Iterable[str]) -> str:
    """Return the names of marks for a message."""
    names = list(found)
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return " ".join([", ".join(names[:_NAMED]), *more])


def _shown(value: object) -> str:
    text = value[:_SHOWN] if isinstance(value, str) else value
    return ascii(text) + ("..." if text != value else "")
