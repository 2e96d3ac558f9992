"""The port that answers Prometheus: a few connections at a time, and none of them for long."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_MOST = 16  # connections; others are closed at once
_LONGEST_S = 10.0  # of a connection, however slowly it asks


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, address: Any, handler: Any) -> None:
        self._room = threading.BoundedSemaphore(_MOST)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there is room."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started: the caller closes the connection
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, for a while at most."""
        end = threading.Timer(_LONGEST_S, _shut, [request])
        end.daemon = True
        try:
            end.start()
            super().process_request_thread(request, client_address)
        except RuntimeError:  # no thread can be started that would end it
            self.shutdown_request(request)
        finally:
            end.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def serve_metrics(host: str, port: int, registry: CollectorRegistry) -> WSGIServer:
    """Answer Prometheus from a thread of its own until the server is shut down; an ``OSError``: the port is taken."""
    kind = _Server6 if ":" in host else _Server
    server = make_server(host, port, make_wsgi_app(registry), server_class=kind, handler_class=_Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
