"""The state of a server that its answers depend on: whether it is ready, and whether it is ending."""

from __future__ import annotations

__all__ = ["Lifetime"]


class Lifetime:
    """The state of a server.

    Attributes:
        is_ready: whether it wants requests: from the end of its start to the signal to shut down.
        is_ending: whether it accepts no more connections: HTTP answers end theirs.
    """

    def __init__(self) -> None:
        self.is_ready = False
        self.is_ending = False
