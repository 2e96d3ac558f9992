"""Values of a wrong kind, which programs hand to functions for captions, items and references."""

from __future__ import annotations

from typing import Any

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
