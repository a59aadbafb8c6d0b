"""A target with one fault of each kind, which the attack must find."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path

from fuzz.mutation import mutated_bytes
from fuzz.targets import FuzzTarget

__all__ = ["PlantedFaults"]


class PlantedFaults(FuzzTarget):
    """Fails in the way that the first bytes of an input name; any other input is refused with a ValueError."""

    allowed = (ValueError,)
    most_bytes = 16 << 20

    def seeds(self) -> Iterable[bytes]:
        """Return inputs that are one bit or byte away from a fault."""
        yield from (b".crash, and more bytes", b"Memory", b"hanG", b"deat h")

    def run(self, data: bytes, folder: Path) -> None:
        """Fail, or raise a ValueError."""
        if data.startswith(b"crash"):
            raise TypeError("planted")
        if data.startswith(b"memory"):
            bytearray(b"1" * (64 << 20))
        elif data.startswith(b"hang"):
            while True:
                pass
        elif data.startswith(b"death"):
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("no fault")

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change bytes."""
        return mutated_bytes(data, chance)
