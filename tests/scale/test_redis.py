"""Stores behind URLs: Redis, and a URL that no package knows."""

from __future__ import annotations

import time
from contextlib import closing

import fakeredis
import pytest

from spicegraph_parser.errors import InputError
from spicegraph_scale import redis
from spicegraph_service.store.places import open_store


def test_redis_counts_and_trims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis.redis, "Redis", fakeredis.FakeRedis)
    with closing(open_store("redis://cache")) as store:
        for number in range(3):
            store.put_parses("signature", {f"{number} {i}": b"value" for i in range(10)})
            time.sleep(0.005)  # expiry tells the age
        assert store.count_parses() == 30
        assert store.trim_parses(15) == 15
        assert len(store.get_parses("signature", [f"2 {i}" for i in range(10)])) == 10
        assert store.trim_parses(0) == 15
        assert store.count_parses() == 0


def test_a_url_that_no_package_knows_is_refused() -> None:
    message = r"there is no store for ftp:// \(a file, memory, or a URL of a package: redis://, rediss://, unix://\)"
    with pytest.raises(InputError, match=message):
        open_store("ftp://host/parses")
