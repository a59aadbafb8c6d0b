"""The sequences that the rows of a tensor consist of: what Paddle 1 stores beside a tensor as LoD."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import Value

__all__ = ["Sequences"]


@dataclass(frozen=True, eq=False)
class Sequences:
    """The sequences of a tensor's rows (its elements along axis 0): of equal length, or with offsets.

    Attributes:
        count: the number of sequences of equal length (an int64 vector of one element if it is not known).
        offsets: int64 [N + 1]: sequence ``n`` has the rows ``offsets[n]`` up to ``offsets[n + 1]``; None for sequences
            of equal length.
        outer: the offsets of outer levels, the outermost first. They count sequences of the next level.
    """

    count: int | Value = 1
    offsets: Value | None = None
    outer: tuple[Value, ...] = ()

    @property
    def is_one(self) -> bool:
        """True if all rows are one sequence."""
        return self.offsets is None and isinstance(self.count, int) and self.count == 1

    @property
    def without_last_level(self) -> Sequences | None:
        """The sequences of a tensor with a row for each of these sequences, or None if there is no outer level."""
        return Sequences(offsets=self.outer[-1], outer=self.outer[:-1]) if self.outer else None
