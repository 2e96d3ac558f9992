"""Values of a wrong kind, which programs hand to functions for captions, items and references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spicegraph_parser.errors import SpicegraphError

if TYPE_CHECKING:
    from collections.abc import Callable

VALUES: tuple[Any, ...] = (
    None,
    3,
    "x",
    b"x",
    [],
    {},
    [None],
    [3],
    ["x"],
    [[]],
    [{}],
    {1: "x"},
    {1: None},
    {1: [None]},
    {1: [3]},
    {1: [{}]},
    {1: []},
    {1: [["x"]]},
    [{"image_id": 1}],
    [{"image_id": 1, "caption": 3}],
    {None: ["x"]},
    object(),
)


def check_wrong_values(name: str, call: Callable[[Any], object]) -> None:
    """Fail where a function raises something else than an error with a message; values that it takes are right."""
    for value in VALUES:
        try:
            call(value)
        except SpicegraphError as error:
            first = str(error).splitlines()[0]
            assert first.strip(), (name, value)
        except Exception as error:  # noqa: BLE001 (what the callers' tests are for)
            pytest.fail(f"{name} of {value!r}: {type(error).__name__}: {error}")
