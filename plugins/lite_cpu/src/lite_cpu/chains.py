"""Chains: element-wise operators computed one after another in registers.

A kernel applies a :class:`Chain` to an element before it stores it: it is the epilogue of a convolution, or the whole
of an element-wise kernel. A chain is static data and part of the key of the compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lite_compiler.chains import Apply
from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.scalar_ops import cost, emit_operator, emit_quantized_and_dequantized

__all__ = ["Chain", "Operand"]


# Chains are tuples, not dataclasses, because every plan creates, hashes and compares them for each of its kernels.


class Operand(NamedTuple):
    """An operand of a chain.

    Attributes:
        dtype: its element type.
        spread: one element serves all lanes of a vector (stride 0 in the innermost dimension).
        constant: the value of every element, which is then part of the code instead of being loaded.
        single: it has one element, which kernels load once for many vectors.
    """

    dtype: DType
    spread: bool = False
    constant: float | None = None
    single: bool = False


class Chain(NamedTuple):
    """A chain of element-wise operators.

    Values are numbered: 0 is ``start``, then come the operands, then the result of each step. The last value is the
    result of the chain; without steps it is the start.
    """

    start: Operand
    operands: tuple[Operand, ...] = ()
    steps: tuple[Apply, ...] = ()

    @property
    def output(self) -> DType:
        return self.steps[-1].output if self.steps else self.start.dtype

    @property
    def cost(self) -> int:
        """Approximate number of floating-point operations per element."""
        return sum(cost(step.op) for step in self.steps)

    def then(self, other: Chain) -> Chain:
        """Append a chain that starts from the result of this one; this chain's operands come first."""
        mine, theirs, done = len(self.operands), len(other.operands), len(self.steps)

        def first(number: int | None) -> int | None:
            return number if number is None or number <= mine else number + theirs

        def second(number: int | None) -> int | None:
            if number is None or number > theirs:
                return None if number is None else number + mine + done
            return mine + number if number else (mine + theirs + done if done else 0)

        steps = [s._replace(inputs=tuple(first(n) for n in s.inputs)) for s in self.steps]
        steps += [s._replace(inputs=tuple(second(n) for n in s.inputs)) for s in other.steps]
        return Chain(self.start, self.operands + other.operands, tuple(steps))

    def emit(self, k: Emitter, start: Val, load: Callable[[int, Operand], Val]) -> Val:
        """Emit the chain and return its result; ``load(i, operand)`` loads operand ``i`` in as many lanes."""
        values = [_widen_half(start)]
        for i, operand in enumerate(self.operands):
            fixed = operand.constant
            value = load(i, operand) if fixed is None else k.constant(fixed, operand.dtype, start.lanes)
            values.append(_widen_half(value))
        for step in self.steps:
            quantized = self._quantized_for(step)
            arguments: Sequence[Val | None] = [None if i is None else values[i] for i in (quantized or step).inputs]
            if quantized is None:
                values.append(emit_operator(k, step.op, arguments, dict(step.attributes), step.output))
            else:
                scale = values[step.inputs[1]]  # type: ignore[index]  # it is not left out
                values.append(emit_quantized_and_dequantized(k, arguments, quantized.output, scale))
        return values[-1]

    def _quantized_for(self, step: Apply) -> Apply | None:
        """Return the QuantizeLinear of this chain whose result ``step`` dequantizes with the same zero point."""
        before = 1 + len(self.operands)
        source = step.inputs[0]
        if step.op != "DequantizeLinear" or source is None or source < before:
            return None
        quantized = self.steps[source - before]
        same_zero = [*quantized.inputs, None, None][2] == [*step.inputs, None][2]
        return quantized if quantized.op == "QuantizeLinear" and same_zero else None


def _widen_half(value: Val) -> Val:
    """Convert 16-bit floats to float32, the type that chains compute them in."""
    return value.to(DType.FLOAT32) if value.dtype.is_half else value
