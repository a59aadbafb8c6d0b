"""The addresses that the servers listen on."""

from __future__ import annotations

import socket
import ssl
import sys

from lite_core.errors import InputError, LiteError
from lite_serve.server.settings import TlsFiles

__all__ = ["PortError", "bound_socket", "check_free", "check_tls", "resolved", "with_port"]


class PortError(LiteError):
    """A port that the server cannot listen on.

    Args:
        message: what is wrong.
        option: the option that chooses the port.
    """

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


def resolved(host: str) -> str:
    """Return the address of a name, one of IPv4 if it has any.

    Raises:
        InputError: the name has none.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InputError(f"the host {host!r} has no address on this machine: {error}") from None
    return str(sorted(found, key=lambda each: each[0] != socket.AF_INET)[0][4][0])


def with_port(address: str, port: int) -> str:
    """Return an address with a port: ``127.0.0.1:8000``, ``[::1]:8000``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def bound_socket(address: str, port: int, option: str) -> socket.socket:
    """Return a socket that has a port, and does not listen yet.

    Args:
        address: the address.
        port: the port; 0 for one that is free.
        option: the option that chooses the port, for the error.

    Raises:
        PortError: the port is taken, or not for this user.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # those of ended connections are free
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that reads nothing; connections inherit it
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise PortError(f"the server cannot listen on {with_port(address, port)}: {error}", option) from None
    bound.setblocking(False)
    return bound


def check_free(address: str, port: int, option: str) -> None:
    """Check that a port is free, which somebody else will listen on.

    Raises:
        PortError: it is taken, or not for this user.
    """
    bound = bound_socket(address, port, option)
    try:
        if port and sys.platform != "win32":  # with SO_REUSEADDR, only listening tells
            bound.listen(1)
    except OSError as error:
        raise PortError(f"the server cannot listen on {with_port(address, port)}: {error}", option) from None
    finally:
        bound.close()


def check_tls(tls: TlsFiles) -> None:
    """Check the files of TLS.

    Raises:
        InputError: one cannot be read, or certificate and key do not belong together.
    """
    for option, file in (("--tls-cert", tls.certificate), ("--tls-key", tls.key), ("--tls-client-ca", tls.client_ca)):
        try:
            if file is not None:
                file.read_bytes()
        except OSError as error:
            raise InputError(f"the file of {option} cannot be read: {error}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise InputError(
            f"--tls-cert {str(tls.certificate)!r} and --tls-key {str(tls.key)!r} are no certificate with its key, in "
            f"PEM format and without a password: {error}"
        ) from None
    try:
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
    except (ssl.SSLError, OSError) as error:
        raise InputError(f"--tls-client-ca {str(tls.client_ca)!r} has no certificate in PEM format: {error}") from None
