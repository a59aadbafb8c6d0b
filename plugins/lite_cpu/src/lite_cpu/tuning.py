"""Numbers of a processor that choices between equally correct kernels and plans depend on.

They are either known of the family of the processor or measured on it; a backend says which in :attr:`Tuning.source`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

__all__ = ["Tuning", "tuning_of_json", "tuning_to_json"]

#: The most rows of a register tile: with two vectors a row, there are 32 vector registers.
_MOST_ROWS = 14


@dataclass(frozen=True, slots=True)
class Tuning:
    """Numbers that choices depend on; the defaults suit a typical processor.

    Every result is correct with any tuning, and weights are packed alike, so files written with another one stay valid.

    Attributes:
        tile_rows: rows of the register tile of a matrix product; 0 leaves the choice to the number of registers. The
            only number here that changes the code of kernels, so it is part of their keys.
        winograd_weight: the price of reading one weight of a Winograd convolution, in units of the time of one
            floating-point operation at full speed.
        bandwidth: bytes per second that one core reads from main memory with prefetching; 0 if unknown. With ``flops``
            it tells the scheduler which device computes a node sooner.
        flops: floating-point operations per second of one core at full speed.
        launch_seconds: the time that a step of a program adds with one thread, in seconds.
        barrier_seconds: the time that a step takes longer than its share of the work if several threads divide it, in
            seconds.
        threads: number of threads that are of use; 0 if unknown.
        is_measured: the numbers were measured on the processor that they are used on.
        source: the origin of the numbers, for example ``defaults for AMD Zen 4`` or ``measured 2026-01-31``.
    """

    tile_rows: int = 0
    winograd_weight: float = 13.0
    bandwidth: float = 0.0
    flops: float = 100e9
    launch_seconds: float = 2e-8
    barrier_seconds: float = 5e-7
    threads: int = 0
    is_measured: bool = False
    source: str = "general defaults"

    @property
    def code_key(self) -> str:
        """The text that the key of a compiled kernel contains: what the code depends on, empty for the defaults."""
        return f", tiles of {self.tile_rows} rows" if self.tile_rows else ""

    @property
    def parallel_operations(self) -> float:
        """The number of operations from which on a step ends sooner if two threads divide it."""
        return 2 * self.barrier_seconds * self.flops

    def lines(self) -> list[str]:
        """Return descriptions of the numbers, one a line, without the origin."""
        rows = f"{self.tile_rows} rows" if self.tile_rows else "as many rows as registers allow"
        return [
            f"register tile: {rows}",
            f"Winograd weight: costs {self.winograd_weight:.0f} operations",
            f"main memory: a core reads {f'{self.bandwidth / 1e9:.0f} GB/s' if self.bandwidth else 'unknown'}",
            f"peak of a core: {self.flops / 1e9:.0f} GFLOP/s",
            f"step: {1e9 * self.launch_seconds:.0f} ns, divided among threads {1e9 * self.barrier_seconds:.0f} ns more",
            f"threads of use: {self.threads or 'unknown'}",
        ]


def tuning_to_json(tuning: Tuning) -> dict[str, Any]:
    """Return a tuning as JSON values."""
    return asdict(tuning)


def tuning_of_json(values: Any) -> Tuning:
    """Return the tuning that :func:`tuning_to_json` turned into JSON values.

    Raises:
        ValueError: the values are none, or impossible; the message names the first one.
    """
    tuning = Tuning(**_checked(values))
    if not 0 <= tuning.tile_rows <= _MOST_ROWS:
        raise ValueError(f"tile_rows is {tuning.tile_rows}, expected 0 to {_MOST_ROWS}")
    return tuning


def _checked(values: Any) -> dict[str, Any]:
    """Return the values of a tuning: all are there, of the types of its defaults, and no number is negative."""
    if not isinstance(values, dict) or values.keys() != {field.name for field in fields(Tuning)}:
        raise ValueError(f"Tuning is {values!r:.100}, expected one value for each of its fields")
    for name, default in ((field.name, field.default) for field in fields(Tuning)):
        value = values[name]
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            raise ValueError(f"{name} is {value!r:.100}, expected {type(default).__name__}")
        if isinstance(value, int | float) and not (isfinite(value) and value >= 0):
            raise ValueError(f"{name} is {value}, expected a number that is not negative")
    return values
