"""The connection of a client, as far as a request has to know it."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["EXTENSION", "ClientConnection", "connection_of"]

#: The name of a connection among the extensions of an ASGI scope.
EXTENSION = "lite.connection"


class ClientConnection:
    """The connection of a client.

    Attributes:
        is_lost: whether the client has closed it.
    """

    def __init__(self) -> None:
        self.is_lost = False
        self._task: asyncio.Task[Any] | None = None

    def cancel_if_lost(self, task: asyncio.Task[Any] | None) -> None:
        """Choose the task that is cancelled when the client closes the connection; None for no task."""
        self._task = task

    def lost(self) -> None:
        """Note that the client has closed the connection."""
        self.is_lost = True
        if self._task is not None:
            self._task.cancel()


def connection_of(scope: Any) -> ClientConnection:
    """Return the connection of a request; one that is never lost if the server does not tell."""
    found = scope.get("extensions", {}).get(EXTENSION, {}).get("connection")
    return found if isinstance(found, ClientConnection) else ClientConnection()
