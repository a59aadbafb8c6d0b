"""The recurrent part of an LSTM with 8-bit weights, whose state is rounded to 8 bits in every step.

Each state is quantized by its own range; the product is then one of integers, in vector registers, without rounding.
Weights of a quarter of the size stay in a nearer cache: each step reads all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.base import Products
from lite_cpu.kernels.depth_loops import add_in_chains, totals_of_chains
from lite_cpu.kernels.integer_dots import INT16_PAIRS, DotForm, emit_dots, is_x86
from lite_cpu.kernels.recurrent import Lstm, Step
from lite_cpu.machine import Machine

__all__ = ["QuantizedLstm", "dot_form"]

F32, I32 = DType.FLOAT32, DType.INT32

#: Independent sums that hide the latency of a dot product.
_INDEPENDENT = 8
_GATES = 4


def dot_form(machine: Machine, *, fits_bytes: bool) -> DotForm:
    """Return the fastest form of dot product for weights, the differences from their zero points, that fit bytes."""
    if not machine.dot_product or not fits_bytes:
        return INT16_PAIRS
    return DotForm(DType.UINT8 if is_x86(machine) else DType.INT8, DType.INT8)


class _Quantized(NamedTuple):
    """A state in 8 bits.

    Attributes:
        codes: the integers, as the groups of a dot product.
        scale: what a unit of the integers stands for, in all lanes.
        zero: the integer that stands for 0, in all lanes.
    """

    codes: Pointer
    scale: Val
    zero: Val


@dataclass(frozen=True)
class QuantizedLstm(Lstm):
    """LSTM with 8-bit weights; its gates are in the order input, output, forget, cell.

    Projected inputs are [gates, hidden] for each step, direction and sequence. Further tensors: the ``scales`` of the
    columns, and the ``sums`` of the weights of each column, int32.

    Attributes:
        form: the dot product of states and weights.
        whole: True if the number of hidden units is a multiple of a vector's.
    """

    form: DotForm
    whole: bool

    more_tensors = ("scales", "sums")

    @property
    def computes(self) -> Products:
        return Products("8-bit integers")

    @property
    def products_of_lane(self) -> int:
        return self.form.group

    @property
    def dtypes(self) -> Mapping[str, DType]:
        return {"lengths": I32, "weights": self.form.right, "sums": I32}

    def scratch_bytes(self, machine: Machine, hidden: int) -> int:
        """Return the size of two states, a cell, an unused part and the rounded state for each row."""
        lanes = machine.lanes()
        return 5 * 4 * self.rows * -(-hidden // lanes) * lanes

    def emit_pass(
        self,
        k: Emitter,
        at: Step,
        number: int,
        weights: Pointer,
        rounded: Sequence[Pointer],
        padded: Val,
        units: tuple[Number, Number],
    ) -> None:
        """Emit one step; the memory ``rounded`` receives the integers."""
        lanes, group, hidden = k.machine.lanes(), self.form.group, at.hidden
        states = [self._quantize(k, s, r.cast(self.form.left), hidden, padded) for s, r in zip(at.state, rounded)]
        scales, columns = at.more
        steps = (hidden + (group - 1)) / group
        with k.loop(*units, lanes) as unit:
            here = weights[unit * steps * (_GATES * group)]
            sums = self._dots(k, [state.codes for state in states], here, steps)
            for row, state in enumerate(states):
                values = []
                for g in range(_GATES):
                    place = unit * _GATES + g * lanes
                    total = sums[row][g] - state.zero * columns[place].load(lanes)
                    scale = state.scale * scales[place].load(lanes)
                    values.append(k.fma(total.to(F32), scale, at.bias[place].load(lanes)))
                self.finish(k, at, number, row, unit, values)

    def projected(self, k: Emitter, at: Step, row: int, unit: Val, gate: int) -> Val:
        return self._units(k, at.projected[row][at.hidden * gate], unit, at.hidden)

    def _units(self, k: Emitter, start: Pointer, unit: Val, hidden: Val) -> Val:
        """Load a vector of units; 0 behind the last one."""
        lanes = k.machine.lanes()
        return k.load_first(start[unit], None if self.whole else k.minimum(hidden - unit, lanes), lanes)

    def _quantize(self, k: Emitter, state: Pointer, codes: Pointer, hidden: Val, padded: Val) -> _Quantized:
        """Emit the quantization of a state like DynamicQuantizeLinear: by its range, which includes 0."""
        lanes = k.machine.lanes()
        none = k.constant(0.0, F32, lanes)
        low, high, special = k.variable(none), k.variable(none), k.variable(none)

        with k.loop(0, padded, lanes) as unit:
            x = self._units(k, state, unit, hidden)
            low.set(k.minimum(low.get(), x))
            high.set(k.maximum(high.get(), x))
            special.set(special.get() + (x - x))  # NaN if an element is NaN or infinite
        most = k.max_lanes(high.get())
        least = -k.max_lanes(-low.get())
        width = (most - least) / 255.0
        unit_scale = width.eq(0.0).select(1.0, width)
        zero = k.call("llvm.roundeven", -least / unit_scale)
        is_special = k.sum_lanes(special.get()).is_nan()
        divisor = is_special.select(1.0, unit_scale).splat(lanes)
        # NOTE: the conversion to an integer is undefined for NaN.
        whole = is_special.select(0.0, zero)
        first = 128 if self.form.left is DType.INT8 else 0
        lowest, highest = (k.constant(float(n - first), F32, lanes) for n in (0, 255))
        start = (whole - float(first)).splat(lanes)
        with k.loop(0, padded, lanes) as unit:
            x = is_special.splat(lanes).select(none, self._units(k, state, unit, hidden))
            code = k.call("llvm.roundeven", x / divisor) + start
            code = k.minimum(k.maximum(code, lowest), highest)
            codes[unit].store(code.to(I32).to(self.form.left))
        scale = is_special.select(k.constant(float("nan"), F32), unit_scale)
        return _Quantized(codes.cast(I32), scale.splat(lanes), (whole - float(first)).to(I32).splat(lanes))

    def _dots(self, k: Emitter, codes: Sequence[Pointer], panel: Pointer, steps: Val) -> list[list[Val]]:
        """Return, for each row and gate, the integer products of the state and the weights of a vector of units."""
        lanes, group = k.machine.lanes(), self.form.group
        chains = max(1, _INDEPENDENT // (self.rows * _GATES))
        none = k.constant(0, I32, lanes)
        sums = [[[k.variable(none) for _ in range(_GATES)] for _ in range(self.rows)] for _ in range(chains)]

        def add(step: Val, chain: int) -> None:
            start = step * (_GATES * lanes * group)
            weights = [panel[start + g * lanes * group].load(lanes * group) for g in range(_GATES)]
            for row in range(self.rows):
                x = codes[row][step].load().splat(lanes)
                for g in range(_GATES):
                    total = sums[chain][row][g]
                    total.set(emit_dots(k, self.form, total.get(), x, weights[g]))

        add_in_chains(k, steps, chains, add)
        return totals_of_chains(sums)
