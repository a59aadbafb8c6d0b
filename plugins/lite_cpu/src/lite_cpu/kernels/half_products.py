"""Products of float16 by instructions that multiply and add float16: twice as many elements as float32.

Sums of float16 lose digits as they grow, so each has at most :data:`STEPS` products; then it is added to a sum of
float32. Weights are divided by a power of two, the *unit*, such that the magnitudes of the weights in such a sum are
together less than 1 (:func:`~lite_cpu.dot_panels.unit_of_halves`): no sum exceeds the largest magnitude of A, so none
overflows, and the weights keep their digits whatever their size is. The unit multiplies the sums of float16 as they are
added to those of float32.

With ``u = 2^-11``, the products of n steps differ from the exact ones of rounded factors by at most
``STEPS * u / (1 - STEPS * u) * sum |x| |w|``, besides the rounding of float32 sums and of numbers below ``2^-14``; the
errors of a sum are of both signs, so that it usually differs by about ``2^-11`` of its typical size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val, Variable
from lite_cpu.kernels.depth_loops import Fetch, Sums
from lite_cpu.machine import Machine

__all__ = ["STEPS", "HalfSums", "add_halves", "with_lanes_of_halves"]

F16, F32 = DType.FLOAT16, DType.FLOAT32

#: Maximum number of products in a sum of float16. Adding the sums of a tile to those of float32 takes as many
#: instructions as the products of 8 steps.
STEPS = 64

#: The features of the instructions.
_FEATURES = ("+fullfp16", "+avx512fp16")

#: ``multiply(rows, panel, steps, chains, fetches)`` emits the loop over some steps of the depth.
_Multiply = Callable[[Sequence[Pointer], Pointer, Val, Sequence[Sums], Sequence[Fetch]], None]


def with_lanes_of_halves(machine: Machine) -> Machine:
    """Return a machine whose vectors have as many float32 as vectors of this one have float16.

    Kernels of float16 are emitted for it, so that a tile has as many columns of float32 sums as of float16 sums. LLVM
    divides vectors of float32 into two registers.
    """
    return replace(machine, vector_bytes=2 * machine.vector_bytes)


def add_halves(x: Val, weights: Val, total: Val) -> Val:
    """Return ``total + x * weights``, all float16."""
    k = total.k
    if not set(_FEATURES).isdisjoint(k.machine.features):
        return k.fma(x, weights, total)
    return k.fma(x.to(F32), weights.to(F32), total.to(F32)).to(F16)


@dataclass(frozen=True, slots=True)
class HalfSums:
    """The sums of float16 of a register tile.

    Attributes:
        k: the emitter.
        totals: the sums of float32, by rows and vectors.
        chains: independent sums of float16.
        unit: the number that multiplies them.
        count: the number of products that each of them has at most.
    """

    k: Emitter
    totals: Sums
    chains: Sequence[Sums]
    unit: Val
    count: Variable

    @classmethod
    def of(cls, k: Emitter, totals: Sums, chains: int, unit: Val) -> HalfSums:
        """Return sums that are zero."""
        lanes = k.machine.lanes()
        zero = k.constant(0.0, F16, lanes)
        sums = [[[k.variable(zero) for _ in row] for row in totals] for _ in range(chains)]
        return cls(k, totals, sums, unit.splat(lanes), k.variable(k.index(0)))

    def add_run(
        self, multiply: _Multiply, rows: Sequence[Pointer], panel: Pointer, depth: Val, fetches: Sequence[Fetch]
    ) -> None:
        """Emit the products of a contiguous run of the rows; sums with enough products are added to the totals."""
        k = self.k
        width = len(self.totals[0]) * k.machine.lanes()
        longest = k.minimum(depth, STEPS)
        with k.loop(0, depth, STEPS) as first:
            steps = k.minimum(depth - first, STEPS)
            ahead = [replace(fetch, at=k.index(fetch.step) * first + fetch.at) for fetch in fetches]
            multiply([row[first] for row in rows], panel[first * width], steps, self.chains, ahead)
            self.count.set(self.count.get() + steps)
            with k.if_(self.count.get() + longest > STEPS):
                self.finish()

    def finish(self) -> None:
        """Emit the addition of the sums to the totals; the sums are zero again."""
        zero = self.k.constant(0.0, F16, self.k.machine.lanes())
        for sums in self.chains:
            for row, totals in zip(sums, self.totals):
                for part, total in zip(row, totals):
                    total.set(self.k.fma(part.get().to(F32), self.unit, total.get()))
                    part.set(zero)
        self.count.set(self.k.index(0))
