"""Channel options that follow from a server's address."""

from __future__ import annotations

import ipaddress


def proxy_options(address: str) -> list[tuple[str, str | int]]:
    """Return the options that keep calls to this machine and private networks off ``http_proxy``."""
    host = address.rpartition("/")[2].removeprefix("ipv4:").removeprefix("ipv6:").rpartition(":")[0].strip("[]")
    try:
        is_near = host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        is_near = False
    return [("grpc.enable_http_proxy", 0)] if is_near else []
