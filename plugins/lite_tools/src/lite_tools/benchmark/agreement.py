"""Agreement of backends: the outputs of every session compared with those of the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_tools.checking.comparison import largest_difference

__all__ = ["Agreement", "check_agreement"]

Array = np.ndarray[Any, Any]


class Agreement(NamedTuple):
    """The largest differences of the sessions' outputs from those of the first session.

    Attributes:
        reference: name of the first session.
        limit: the largest allowed difference, as a share of an output's range.
        differences: by session and output, the largest difference of an element as such a share; infinite if types,
            shapes or elements that are not finite differ.
    """

    reference: str
    limit: float
    differences: Mapping[str, Mapping[str, float]]

    @property
    def ok(self) -> bool:
        """True if no difference exceeds the limit."""
        return not self.exceeding()

    def exceeding(self) -> list[tuple[str, str, float]]:
        """Return the session, the output and the difference wherever the limit is exceeded."""
        pairs = [(name, output, d) for name, found in self.differences.items() for output, d in found.items()]
        return [pair for pair in pairs if not pair[2] <= self.limit]

    def sentences(self) -> list[str]:
        """Return the result for the user; nothing if there is nothing to compare."""
        if not self.differences:
            return []
        if self.ok:
            worst = max((d for found in self.differences.values() for d in found.values()), default=0.0)
            return [
                f"outputs agree: the largest difference from {self.reference} is {worst:.2g} of an output's range; "
                f"allowed is {self.limit:g}"
            ]
        return [
            f"outputs DIFFER: {name} differs from {self.reference} in {output!r} by {difference:.2g} of its range; "
            f"allowed is {self.limit:g}"
            for name, output, difference in self.exceeding()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "reference": self.reference,
            "allowed_share_of_range": self.limit,
            "ok": self.ok,
            "largest_difference_share_of_range": {name: dict(found) for name, found in self.differences.items()},
        }


def check_agreement(outputs: Sequence[tuple[str, Mapping[str, Array]]], limit: float) -> Agreement:
    """Compare outputs.

    Args:
        outputs: the name of each session and its outputs for the same inputs; the first one is the reference.
        limit: the largest allowed difference, as a share of an output's range.
    """
    reference, expected = outputs[0]
    differences = {
        name: {output: _difference(array, found.get(output)) for output, array in expected.items()}
        for name, found in outputs[1:]
    }
    return Agreement(reference, limit, differences)


def _difference(expected: Array, found: Array | None) -> float:
    if found is None or (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return float("inf")
    return largest_difference(expected, found)
