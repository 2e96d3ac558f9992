"""TLS: the server's certificate files, which may change while it runs."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import grpc

from spicegraph_parser.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the server's certificate chain and key; ``client_ca`` demands certificates of clients (mTLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class _Pem(NamedTuple):
    certificate: bytes
    key: bytes
    client_ca: bytes | None


class Certificates:
    """The contents of the files. New connections get the newest that were whole; those that are open keep theirs.

    Raises:
        InputError: a file cannot be read, or the key is not the certificate's.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._pem = _checked(files)
        self._fault = ""
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return what connections over HTTP are made with; it takes new certificates as they come."""
        if self._context is None:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            if self._files.client_ca is not None:
                self._context.verify_mode = ssl.CERT_REQUIRED
            self._load()
        return self._context

    def _load(self) -> None:
        if self._context is not None:
            self._context.load_cert_chain(self._files.certificate, self._files.key)
            if self._files.client_ca is not None:
                self._context.load_verify_locations(self._files.client_ca)

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials that look for new certificates with every connection."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(),
            self._configuration,
            require_client_authentication=self._files.client_ca is not None,
        )

    def reload(self) -> None:
        """Read the files where they have changed. Those that cannot be used are logged, once, and the old ones stay."""
        try:
            if _read(self._files) == self._pem:
                self._fault = ""
                return
            self._pem = _checked(self._files)
            self._load()
        except InputError as error:
            if str(error) != self._fault:
                _log.error("the certificates stay as they were: %s", error)
            self._fault = str(error)
        else:
            self._fault = ""
            _log.info("new certificates")

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(self._pem.key, self._pem.certificate)], root_certificates=self._pem.client_ca
        )


def _read(files: TlsFiles) -> _Pem:
    try:
        client_ca = files.client_ca.read_bytes() if files.client_ca else None
        return _Pem(files.certificate.read_bytes(), files.key.read_bytes(), client_ca)
    except OSError as error:
        raise InputError(f"cannot read the TLS file {error.filename}: {error.strerror}") from error


def _checked(files: TlsFiles) -> _Pem:
    """Read files that fit together: one may have been replaced, and the other not yet."""
    pem = _read(files)
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        names = ", ".join(str(path) for path in (files.certificate, files.key, files.client_ca) if path)
        raise InputError(f"the TLS files cannot be used ({names}): {error}") from error
    if _read(files) != pem:
        raise InputError("the TLS files changed while they were read")
    return pem
