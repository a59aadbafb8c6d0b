"""Requests that a web page sends from somebody's browser: refused, unless the page's origin is allowed.

A page from anywhere may send requests to a server on the machine of its reader: directly, with a header ``Origin``, or
after its own name was made to point to 127.0.0.1 (DNS rebinding), with that name in the header ``Host``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from lite_serve.protocol.errors import ForbiddenError

__all__ = ["BrowserCheck", "is_loopback"]


def is_loopback(host: str) -> bool:
    """Return True for the names and addresses with which only this machine is reached."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class BrowserCheck:
    """Refuses requests that the page of a stranger may have sent.

    Args:
        host: what the server listens on. On a loopback address, and wherever names are allowed explicitly, the header
            ``Host`` must hold an address, ``localhost`` or one of these names.
        hosts: names that are allowed.
        origins: origins of pages that are allowed.
    """

    def __init__(self, host: str, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._hosts = {name.rstrip(".").lower() for name in hosts}
        self._origins = {origin.rstrip("/").lower() for origin in origins}
        self._checks_hosts = bool(hosts) or is_loopback(host)
        #: Values of the header that were accepted: clients send few.
        self._accepted: set[bytes] = set()

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Check the headers of a request.

        Raises:
            ForbiddenError: it comes from a page that is not allowed, or by a name that is not the server's.
        """
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").rstrip("/").lower() not in self._origins:
            raise ForbiddenError(
                f"requests from the web page {origin.decode('latin-1')[:200]!r} are not allowed; the server's option "
                "--allow-origin permits them"
            )
        host = headers.get(b"host", b"")
        if not self._checks_hosts or host in self._accepted:
            return
        name = _name_of(host.decode("latin-1"))
        if name and name not in self._hosts and not is_loopback(name) and not _is_address(name):
            raise ForbiddenError(
                f"this server is not known as {name[:200]!r}; the server's option --allow-host adds a name"
            )
        if len(self._accepted) < 64:
            self._accepted.add(host)


def _name_of(host: str) -> str:
    """Return the name or address in a header ``Host``, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
