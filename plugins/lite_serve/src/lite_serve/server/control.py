"""Loading and unloading by clients, which an operator has to permit."""

from __future__ import annotations

from lite_serve.protocol.errors import ForbiddenError
from lite_serve.server.settings import ServerSettings

__all__ = ["check_control"]


def check_control(settings: ServerSettings) -> None:
    """Check that clients may load and unload models.

    Raises:
        ForbiddenError: they may not.
    """
    if not settings.repository_control:
        raise ForbiddenError("loading and unloading is switched off; the server's option --control permits it")
