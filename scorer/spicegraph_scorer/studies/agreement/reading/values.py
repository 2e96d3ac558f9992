"""Checked values out of decoded JSON: each function returns what it found and yields nothing but faults."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spicegraph_scorer.readers.checks import caption_faults, id_faults, reference_faults
from spicegraph_scorer.readers.faults import Fault, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Row", "field_of", "is_number"]


def is_number(value: object) -> bool:
    """Say whether a value is a finite number; truth values are none.

    Example:
        >>> is_number(1.5), is_number(True), is_number("1")
        (True, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def field_of(fields: Mapping[str, object], names: Sequence[str]) -> str:
    """Return the first of the names that the record has, or the best of them."""
    return next((name for name in names if name in fields), names[0])


class Row:
    """One record that is being read: its fields, and the faults found so far."""

    def __init__(self, place: str, fields: Mapping[str, object], faults: list[Fault]) -> None:
        self.place = place
        self.fields = fields
        self._faults = faults

    def fault(self, field: str, reason: str) -> None:
        """Note that a field is wrong."""
        self._faults.append(Fault(self.place, field, reason))

    def image(self, names: Sequence[str]) -> str | None:
        """Return the image's id as text; ``None`` if the record names no image."""
        name = field_of(self.fields, names)
        if name not in self.fields:
            return None
        value = self.fields[name]
        for reason in id_faults(value):
            self.fault(name, reason)
        return str(value)

    def caption(self, names: Sequence[str]) -> str:
        """Return a caption."""
        name = field_of(self.fields, names)
        if name not in self.fields:
            self.fault(name, "is missing")
            return ""
        return self.checked_caption(name, self.fields[name])

    def checked_caption(self, name: str, value: object) -> str:
        """Return a value as a caption."""
        for reason in caption_faults(value):
            self.fault(name, reason)
        return value if isinstance(value, str) else ""

    def references(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the references; none if the record has none, which only some uses forbid."""
        name = field_of(self.fields, names)
        if name not in self.fields:
            return ()
        value = self.fields[name]
        for place, reason in reference_faults(value):
            self.fault(f"{name}{place}", reason)
        return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a number or a list of numbers; nothing for null, or where nulls are all that a list holds."""
        value = self.fields[name]
        found = value if isinstance(value, list) else [value]
        for index, number in enumerate(found):
            if number is not None and not is_number(number):
                where = f"{name}[{index}]" if isinstance(value, list) else name
                self.fault(where, f"is {shown(number)}, expected a number")
        return tuple(float(number) for number in found if isinstance(number, int | float) and is_number(number))

    def text(self, name: str) -> str | None:
        """Return a text field, if there is one."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            self.fault(name, f"is {shown(value)}, expected a string")
        return value if isinstance(value, str) else None

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a field that holds an object, empty if it is missing."""
        value = self.fields.get(name, {})
        if not isinstance(value, dict):
            self.fault(name, f"is {shown(value)}, expected an object")
            return {}
        return value

    def number(self, name: str, value: object) -> float | None:
        """Return a number, or ``None`` for null."""
        if value is not None and not is_number(value):
            self.fault(name, f"is {shown(value)}, expected a number or null")
        return float(value) if isinstance(value, int | float) and is_number(value) else None
