"""A proxy of the environment is for public addresses alone: a server on this machine is asked without it."""

from __future__ import annotations

import pytest

from spicegraph_service.client.address import proxy_options


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("localhost:50051", True),
        ("127.0.0.1:50051", True),
        ("[::1]:50051", True),
        ("10.1.2.3:50051", True),
        ("ipv4:192.168.0.2:50051", True),
        ("dns:///localhost:50051", True),
        ("8.8.8.8:50051", False),
        ("scores.example.org:443", False),
    ],
)
def test_which_addresses_are_asked_without_it(address: str, *, near: bool) -> None:
    assert bool(proxy_options(address)) is near
