"""``--vectors``, ``--idf`` and ``--categories``: taken by every study that computes metrics, refused if unused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from metric_data import (
    UNUSED,
    Captured,
    check_other_files_are_refused,
    check_unused_is_refused,
    check_vectors_are_used,
    metric_data_folder,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["metric_data_folder"]

pytestmark = pytest.mark.model

COMMANDS = {
    "bounds": ("bounds", "{}/items.jsonl", "--draws", "5", "--lower", "none"),
    "captions": ("agree", "captions", "{}/rated.jsonl", "--draws", "5"),
    "pairs": ("agree", "pairs", "{}/pairs.jsonl", "--draws", "5"),
}
REFUSED = [
    *((COMMANDS["bounds"], option) for option in UNUSED),
    *((COMMANDS[name], option) for name in ("captions", "pairs") for option in ("--vectors", "--idf")),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_computes_with_the_given_vectors_and_says_so(
    command: str, metric_data_folder: Path, capsys: Captured
) -> None:
    check_vectors_are_used(COMMANDS[command], metric_data_folder, capsys, differs=command != "pairs")


@pytest.mark.parametrize(("command", "option"), REFUSED)
def test_a_file_that_no_metric_uses_is_refused(
    command: tuple[str, ...], option: str, metric_data_folder: Path, capsys: Captured
) -> None:
    check_unused_is_refused(command, option, metric_data_folder, capsys)


@pytest.mark.parametrize("command", COMMANDS.values())
def test_a_file_that_is_no_table_is_one_error(
    command: tuple[str, ...], metric_data_folder: Path, capsys: Captured
) -> None:
    check_other_files_are_refused(command, metric_data_folder, capsys)
