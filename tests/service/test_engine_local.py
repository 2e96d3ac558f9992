"""Parsing in one process or several, with and without a store: the same facts."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import load_pipeline
from spicegraph_parser.errors import DataError
from spicegraph_parser.spice.loose import without_loose
from spicegraph_service.engines import local
from spicegraph_service.engines.local import local_facts
from spicegraph_service.store import StoreError

CAPTIONS = [
    f"A {color} {animal} sits on {count} mats."
    for color in ("brown", "red")
    for animal in ("dog", "cat")
    for count in ("two", "three")
] * 3 + ["", "  ", "A dog. A cat."]

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def expected():
    return list(load_pipeline().facts(CAPTIONS))


@pytest.mark.parametrize("workers", [1, 2])
def test_facts_do_not_depend_on_processes_or_the_store(workers, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_AHEAD", 1)
    monkeypatch.setattr(local, "_TASK", 60)
    monkeypatch.setattr(local, "_LOOK_UP", 7)
    cache = str(tmp_path / "parses.db")
    with local_facts("en_caption", workers=workers) as source:
        assert list(source.facts(CAPTIONS)) == expected
    for _ in range(2):
        with local_facts("en_caption", workers=workers, cache=cache) as source:
            assert list(source.facts(CAPTIONS)) == expected


@given(st.lists(st.text(max_size=30), max_size=400), st.integers(1, 500), st.integers(1, 4))
def test_tasks_hold_every_caption_once_in_order(texts, characters, count):
    for given_as in (texts, (text for text in texts)):
        tasks = list(local.in_tasks(given_as, characters=characters, processes=count))
        assert [text for task in tasks for text in task] == texts
        assert all(len(task) == 1 or sum(map(len, task)) <= characters for task in tasks)


def test_the_last_tasks_get_shorter():
    sizes = list(map(len, local.in_tasks(["a dog"] * 3000, characters=4000, processes=2)))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 5 * sizes[-2] > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_loose_words_are_left_out_on_demand(workers, expected):
    with local_facts("en_caption", workers=workers, loose=False) as source:
        assert list(source.facts(CAPTIONS)) == [tuple(without_loose(facts)) for facts in expected]


def test_a_warm_store_parses_nothing(expected, tmp_path, monkeypatch):
    cache = str(tmp_path / "parses.db")
    with local_facts("en_caption", cache=cache) as source:
        list(source.facts(CAPTIONS))

    def encoded(_pipeline, texts):
        raise AssertionError(list(texts))

    monkeypatch.setattr(local, "encoded_parses", encoded)
    with local_facts("en_caption", cache=cache) as source:
        assert list(source.facts(CAPTIONS)) == expected


def test_a_damaged_cache_is_one_clear_error(expected, tmp_path):
    cache = tmp_path / "parses.db"
    with local_facts("en_caption", cache=str(cache)) as source:
        list(source.facts(CAPTIONS))
    with closing(sqlite3.connect(cache)) as connection:
        connection.execute("UPDATE parses SET value = x'00'")
        connection.commit()
    with local_facts("en_caption", cache=str(cache)) as source, pytest.raises(StoreError, match="not a parse"):
        list(source.facts(CAPTIONS))


def test_processes_say_why_they_cannot_load():
    with local_facts("no_such_pipeline", workers=2) as source, pytest.raises(DataError, match="no_such_pipeline"):
        list(source.facts(["a dog"]))


def test_nothing_is_loaded_before_it_is_needed():
    with local_facts("no_such_pipeline") as source:
        assert source
    with local_facts("no_such_pipeline") as source, pytest.raises(DataError, match="no_such_pipeline"):
        list(source.facts(["a dog"]))


def test_a_killed_process_is_one_clear_error():
    def kill_and_parse():
        with local_facts("en_caption", workers=2) as source:
            list(source.facts(["a dog"]))
            for pid in source.pool.executor._processes:
                os.kill(pid, signal.SIGKILL)
            list(source.facts(CAPTIONS))

    with pytest.raises(DataError, match="ended unexpectedly"):
        kill_and_parse()


def test_a_place_that_can_t_be_a_store_is_one_clear_error(tmp_path):
    with pytest.raises(StoreError), local_facts("en_caption", cache=str(tmp_path)):
        pass


def test_what_was_parsed_before_an_interruption_is_kept(tmp_path, monkeypatch):
    """Ctrl-C and SIGTERM end a run by an exception; so does a caption that cannot be parsed."""
    monkeypatch.setattr(local, "_TASK", 60)
    cache = str(tmp_path / "parses.db")

    def interrupted(pipeline, texts):
        for text, parse in zip(texts, local.encoded_parses(pipeline, texts), strict=True):
            if text == CAPTIONS[5]:
                raise KeyboardInterrupt
            yield parse

    with local_facts("en_caption", cache=cache) as source, pytest.raises(KeyboardInterrupt):
        list(source.encoded(CAPTIONS, interrupted, source.signature))
    with closing(sqlite3.connect(cache)) as connection:
        assert connection.execute("SELECT count(*) FROM parses").fetchone()[0] == 5
