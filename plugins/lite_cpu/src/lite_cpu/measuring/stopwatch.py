"""Timing of alternatives in turns, so that other work on the machine slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np

__all__ = ["Seconds", "seconds_in_turns"]

_Key = TypeVar("_Key", bound=Hashable)

#: The part of the turns that counts as undisturbed, in per cent. The single shortest turn may be an error of the clock.
_PERCENTILE = 12


class Seconds(float):
    """The time of an undisturbed turn in seconds.

    Attributes:
        shortest: the time of the shortest turn.
        spread: the relative difference between the even and the odd turns: differences below it are noise.
    """

    shortest: float
    spread: float

    def __new__(cls, turns: list[float]) -> Seconds:
        """Return the time of which a share of the turns took no longer."""
        self = super().__new__(cls, np.percentile(turns, _PERCENTILE))
        self.shortest = min(turns)
        even, odd = (float(np.percentile(part, _PERCENTILE)) for part in (turns[::2], turns[1::2] or turns))
        self.spread = abs(even - odd) / self
        return self


def seconds_in_turns(alternatives: Mapping[_Key, Callable[[], object]], turns: int) -> dict[_Key, Seconds]:
    """Return the time that one call of each alternative takes.

    Args:
        alternatives: functions by their names, called one after another in each turn.
        turns: the number of turns; one more comes first and is not counted, for caches and new memory.
    """
    found: dict[_Key, list[float]] = {name: [] for name in alternatives}
    for turn in range(1 + turns):
        for name, call in alternatives.items():
            start = time.perf_counter()
            call()
            seconds = time.perf_counter() - start
            if turn:
                found[name].append(seconds)
    return {name: Seconds(times) for name, times in found.items()}
