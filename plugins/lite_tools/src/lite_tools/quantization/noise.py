"""Signal-to-noise ratios of results: ``10 log10(sum a^2 / sum (a - b)^2)``, in decibels."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Noise", "decibels"]

Array = np.ndarray[Any, Any]


def decibels(signal: float, noise: float) -> float:
    """Return the ratio of two powers in decibels: infinite without noise, minus infinity without signal."""
    if noise == 0:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal and np.isfinite(noise) else float("-inf")


class Noise:
    """The powers of signals and of their noise, by name, over many samples."""

    def __init__(self) -> None:
        self._powers: dict[str, list[float]] = {}

    def add(self, name: str, expected: Array, found: Array) -> None:
        """Add a result of one sample; only floating-point numbers count, and infinite ones in ``expected`` do not."""
        if expected.dtype.kind != "f":
            return
        a, b = expected.astype(np.float64), found.astype(np.float64)
        finite = np.isfinite(a)
        self.add_powers(name, float(np.square(a[finite]).sum()), float(np.square(a[finite] - b[finite]).sum()))

    def add_powers(self, name: str, signal: float, noise: float) -> None:
        """Add the powers of a result of one sample."""
        powers = self._powers.setdefault(name, [0.0, 0.0])
        powers[0] += signal
        powers[1] += noise

    @property
    def by_name(self) -> dict[str, float]:
        """The ratio of each result, in decibels."""
        return {name: decibels(*powers) for name, powers in self._powers.items()}

    @property
    def worst_db(self) -> float:
        """The smallest ratio; infinite if there are no floating-point results."""
        return min(self.by_name.values(), default=float("inf"))
