"""The recurrent part of LSTM, GRU and RNN; the input has been projected for all steps before.

A work item runs a few sequences of one direction from the first step to the last. Hidden units are processed a vector
at a time: the packed weights hold the gates of the same units next to each other, so all gates of a unit are in
registers when its new state is computed, and only the state is stored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.bfloat16_pairs import PAIR, add_pairs
from lite_cpu.kernels.depth_loops import add_in_chains, by_lane, multiply_add, multiply_by_lane, totals_of_chains
from lite_cpu.machine import Machine
from lite_cpu.scalar_ops import emit_operator

__all__ = [
    "PARAMETERS",
    "Activation",
    "Gru",
    "LayerTensors",
    "Lstm",
    "Recurrent",
    "Rnn",
    "Step",
    "copy_vector",
    "store_zeros",
]

F32 = DType.FLOAT32

#: Number of independent multiply-adds that hides their latency.
_INDEPENDENT = 8

#: Order of the parameters; then follow the (step, direction, sequence) strides of each tensor.
PARAMETERS = ("steps", "sequences", "hidden", "first_reversed")


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation function: ``scale_out * op(scale_in * clip(x)) + offset``, where ``op`` None is the identity."""

    op: str | None
    attributes: tuple[tuple[str, float], ...] = ()
    scale_in: float = 1.0
    scale_out: float = 1.0
    offset: float = 0.0
    clip: float | None = None

    def emit(self, k: Emitter, x: Val) -> Val:
        """Emit the function and return its result."""
        if self.clip is not None:
            # NaN fails both comparisons and stays NaN.
            x = (x > self.clip).select(self.clip, (x < -self.clip).select(-self.clip, x))
        x = x if self.scale_in == 1 else x * self.scale_in
        if self.op is not None:
            x = emit_operator(k, self.op, [x], dict(self.attributes), F32)
        x = x if self.scale_out == 1 else x * self.scale_out
        return x if self.offset == 0 else x + self.offset


@dataclass(frozen=True, slots=True)
class Step:
    """Addresses used by one step of the recurrence, most of them one per sequence (row).

    Attributes:
        state: the hidden state before the step.
        new: the hidden state after the step.
        cell: the cell state of an LSTM.
        reset: scratch memory for the state multiplied by the reset gate of a GRU.
        projected: the projected input, a vector for each gate of a block of units: [blocks, gates, lanes].
        bias: the recurrent bias in the same order.
        peepholes: [blocks, 3, lanes] for input, output and forget gate, or None.
        more: the tensors of :attr:`Recurrent.more_tensors`.
        hidden: number of hidden units.
    """

    state: Sequence[Pointer]
    new: Sequence[Pointer]
    cell: Sequence[Pointer]
    reset: Sequence[Pointer]
    projected: Sequence[Pointer]
    bias: Pointer
    peepholes: Pointer | None
    more: Sequence[Pointer]
    hidden: Val


@dataclass(frozen=True)
class Recurrent(Kernel):
    """Base class of recurrent layers.

    Pointers: see :attr:`tensors`; each has strides for step, direction and sequence.

    A work item is ``rows`` sequences in one direction. Directions from ``first_reversed`` on go from the last step to
    the first.

    Attributes:
        rows: number of sequences that run together.
        activations: functions of the gates and the new state, in the order of the ONNX attribute.
        lengths: each sequence has its own length; requires that ``rows`` is 1.
        narrow: names and element types of the states that are 16-bit floats in memory; all is computed in float32.
        pairs: the product with the state multiplies bfloat16 in pairs, with float32 sums; the number of hidden units is
            even. The states themselves stay float32.
    """

    rows: int
    activations: tuple[Activation, ...]
    lengths: bool
    narrow: tuple[tuple[str, DType], ...] = field(default=(), kw_only=True)
    pairs: bool = field(default=False, kw_only=True)

    @property
    def computes(self) -> Products:
        return Products("bfloat16" if self.pairs else "float32")

    @property
    def products_of_lane(self) -> int:
        """Number of products that one instruction computes for each 32 bits of a vector."""
        return 2 if self.pairs else 1

    @property
    @abstractmethod
    def passes(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the gates that are computed together; a pass is finished before the next one starts."""

    @abstractmethod
    def finish(self, k: Emitter, at: Step, number: int, row: int, unit: Val, sums: Sequence[Val]) -> None:
        """Emit the end of pass ``number``, given the sums of its gates for a vector of units from ``unit`` on."""

    @property
    def gates(self) -> int:
        return sum(map(len, self.passes))

    @property
    def has_cell(self) -> bool:
        return False

    @property
    def has_peepholes(self) -> bool:
        return False

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors in the order of the pointers."""
        names = ["projected", "weights", "bias", "initial_h", "y", "y_h"]
        names += ["initial_c", "y_c"] if self.has_cell else []
        names += ["lengths"] if self.lengths else []
        return (*names, *(["peepholes"] if self.has_peepholes else []), *self.more_tensors)

    @property
    def more_tensors(self) -> tuple[str, ...]:
        """Names of further constants, one vector for each direction, at the end of :attr:`tensors`."""
        return ()

    @property
    def dtypes(self) -> Mapping[str, DType]:
        """Element types of tensors that are not float32, by name."""
        return {"lengths": DType.INT32, "weights": PAIR if self.pairs else F32}

    def scratch_bytes(self, machine: Machine, hidden: int) -> int:
        """Return the size of two states, a cell, a state times a reset gate, and a rounded state for each row."""
        lanes = machine.lanes()
        return (5 if self.pairs else 4) * 4 * self.rows * -(-hidden // lanes) * lanes

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            padded = (p["hidden"] + (lanes - 1)) / lanes * lanes
            memory = scratch.cast(F32)
            state, new, cell, reset, rounded = (
                [memory[padded * (self.rows * i + row)] for row in range(self.rows)] for i in range(5)
            )
            tensors = LayerTensors(pointers, params, self.tensors, {**self.dtypes, **dict(self.narrow)})
            blocks = (p["sequences"] + (self.rows - 1)) / self.rows
            with k.loop(begin, end) as item:
                direction, first = item / blocks, item % blocks * self.rows
                sequences = self.sequences_of_rows(k, first, p["sequences"])
                for row, sequence in enumerate(sequences):
                    copy_vector(k, tensors.at("initial_h", 0, direction, sequence), state[row], p["hidden"])
                    if self.has_cell:
                        copy_vector(k, tensors.at("initial_c", 0, direction, sequence), cell[row], p["hidden"])
                length = self.length_of(k, tensors, sequences[0], p["steps"])
                weights = tensors.at("weights", 0, direction, 0)
                with k.loop(0, length) as turn:
                    step = (direction >= p["first_reversed"]).select(length - 1 - turn, turn)
                    at = self.step_at(tensors, (state, new, cell, reset), step, direction, sequences)
                    for number in range(len(self.passes)):
                        self.emit_pass(k, at, number, weights, rounded, padded, (0, padded))
                    for row, sequence in enumerate(sequences):
                        copy_vector(k, new[row], state[row], padded)
                        copy_vector(k, new[row], tensors.at("y", step, direction, sequence), p["hidden"])
                with k.loop(length, p["steps"]) as step:
                    store_zeros(k, tensors.at("y", step, direction, sequences[0]), p["hidden"])
                for row, sequence in enumerate(sequences):
                    copy_vector(k, state[row], tensors.at("y_h", 0, direction, sequence), p["hidden"])
                    if self.has_cell:
                        copy_vector(k, cell[row], tensors.at("y_c", 0, direction, sequence), p["hidden"])

    def sequences_of_rows(self, k: Emitter, first: Val, sequences: Val) -> list[Val]:
        """Return the sequence of each row of a work item; rows beyond the last sequence repeat it."""
        return [k.minimum(first + row, sequences - 1) for row in range(self.rows)]

    def length_of(self, k: Emitter, tensors: LayerTensors, sequence: Val, steps: Val) -> Val:
        """Return the number of steps of a sequence."""
        if not self.lengths:
            return steps
        length = tensors.at("lengths", 0, 0, sequence).load().to(DType.INT64)
        # Any number may be given: the loop must neither leave the tensors nor run for hours.
        return k.maximum(k.minimum(length, steps), 0)

    def step_at(
        self,
        tensors: LayerTensors,
        states: tuple[Sequence[Pointer], Sequence[Pointer], Sequence[Pointer], Sequence[Pointer]],
        step: Val,
        direction: Val,
        sequences: Sequence[Val],
    ) -> Step:
        """Return the addresses of a step; ``states`` are the first four attributes of :class:`Step`."""
        return Step(
            *states,
            [tensors.at("projected", step, direction, s) for s in sequences],
            tensors.at("bias", 0, direction, 0),
            tensors.at("peepholes", 0, direction, 0) if self.has_peepholes else None,
            [tensors.at(name, 0, direction, 0) for name in self.more_tensors],
            tensors.params[PARAMETERS.index("hidden")],
        )

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
        """Emit one pass of a step for some of the hidden units.

        Args:
            k: the emitter.
            at: the addresses of the step.
            number: the number of the pass.
            weights: the packed weights of all passes.
            rounded: scratch memory for a rounded state of each row.
            padded: the number of hidden units, rounded up to whole vectors.
            units: the first unit and the one after the last, multiples of a vector's.
        """
        lanes = k.machine.lanes()
        hidden = at.hidden / 2 if self.pairs else at.hidden
        gates = self.passes[number]
        source = at.state if number == 0 else at.reset
        if self.pairs:
            for wide, narrow in zip(source, rounded):
                copy_vector(k, wide, narrow.cast(DType.BFLOAT16), padded)
            source = [narrow.cast(PAIR) for narrow in rounded]
        here = weights[hidden * padded * sum(map(len, self.passes[:number]))]
        with k.loop(*units, lanes) as unit:
            panel = here[unit * hidden * len(gates)]
            products = self._products(k, source, panel, hidden, len(gates))
            for row in range(self.rows):
                biases = [at.bias[unit * self.gates + g * lanes].load(lanes) for g in gates]
                sums = [product + bias for product, bias in zip(products[row], biases)]
                self.finish(k, at, number, row, unit, sums)

    def _products(
        self, k: Emitter, source: Sequence[Pointer], panel: Pointer, hidden: Val, gates: int
    ) -> list[list[Val]]:
        """Return, for each row and gate, the product of the state and the weights of a vector of units."""
        lanes = k.machine.lanes()
        chains = max(1, _INDEPENDENT // (self.rows * gates))
        products = add_pairs if self.pairs else multiply_add
        zero = k.constant(0.0, F32, lanes)
        sums = [[[k.variable(zero) for _ in range(gates)] for _ in range(self.rows)] for _ in range(chains)]

        def add(d: Val, chain: int) -> None:
            weights = [panel[(d * gates + g) * lanes].load(lanes) for g in range(gates)]
            for row in range(self.rows):
                x = source[row][d].load().splat(lanes)
                for g in range(gates):
                    total = sums[chain][row][g]
                    total.set(products(x, weights[g], total.get()))

        if k.machine.multiply_by_lane:
            multiply_by_lane(k, source, panel, hidden, sums, (), by_lane(products))
        else:
            add_in_chains(k, hidden, chains, add)
        return totals_of_chains(sums)

    def projected(self, k: Emitter, at: Step, row: int, unit: Val, gate: int) -> Val:
        """Return the projected input of a gate for a vector of units."""
        lanes = k.machine.lanes()
        return at.projected[row][unit * self.gates + gate * lanes].load(lanes)


@dataclass(frozen=True)
class Lstm(Recurrent):
    """LSTM; its gates are in the order input, output, forget, cell."""

    peepholes: bool
    input_forget: bool

    passes = ((0, 1, 2, 3),)
    has_cell = True

    @property
    def has_peepholes(self) -> bool:
        return self.peepholes

    def finish(self, k: Emitter, at: Step, number: int, row: int, unit: Val, sums: Sequence[Val]) -> None:
        lanes = k.machine.lanes()
        gate, candidate, output = self.activations
        i, o, f, g = (s + self.projected(k, at, row, unit, n) for n, s in enumerate(sums))
        old = at.cell[row][unit].load(lanes)

        def peep(x: Val, which: int, cell: Val) -> Val:
            if at.peepholes is None:
                return x
            return k.fma(at.peepholes[unit * 3 + which * lanes].load(lanes), cell, x)

        i = gate.emit(k, peep(i, 0, old))
        f = 1.0 - i if self.input_forget else gate.emit(k, peep(f, 2, old))
        cell = k.fma(f, old, i * candidate.emit(k, g))
        at.cell[row][unit].store(cell)
        at.new[row][unit].store(gate.emit(k, peep(o, 1, cell)) * output.emit(k, cell))


@dataclass(frozen=True)
class Gru(Recurrent):
    """GRU; its gates are in the order update, reset, hidden. With ``linear`` the reset gate acts after the product."""

    linear: bool

    @property
    def passes(self) -> tuple[tuple[int, ...], ...]:
        return ((0, 1, 2),) if self.linear else ((0, 1), (2,))

    def finish(self, k: Emitter, at: Step, number: int, row: int, unit: Val, sums: Sequence[Val]) -> None:
        lanes = k.machine.lanes()
        gate, candidate = self.activations
        old = at.state[row][unit].load(lanes)
        if number == 0:
            update, reset = (gate.emit(k, sums[n] + self.projected(k, at, row, unit, n)) for n in range(2))
            if not self.linear:
                at.new[row][unit].store(update)
                at.reset[row][unit].store(reset * old)
                return
            hidden = reset * sums[2]
        else:
            update, hidden = at.new[row][unit].load(lanes), sums[0]
        new = candidate.emit(k, hidden + self.projected(k, at, row, unit, 2))
        at.new[row][unit].store(k.fma(update, old, (1.0 - update) * new))


@dataclass(frozen=True)
class Rnn(Recurrent):
    """RNN; its only gate is the new state."""

    passes = ((0,),)

    def finish(self, k: Emitter, at: Step, number: int, row: int, unit: Val, sums: Sequence[Val]) -> None:
        value = sums[0] + self.projected(k, at, row, unit, 0)
        at.new[row][unit].store(self.activations[0].emit(k, value))


@dataclass(frozen=True, slots=True)
class LayerTensors:
    """Tensors by name, each with strides for step, direction and sequence; those not in ``dtypes`` are float32."""

    pointers: Pointers
    params: Params
    names: tuple[str, ...]
    dtypes: Mapping[str, DType]

    def at(self, name: str, step: Val | int, direction: Val | int, sequence: Val | int) -> Pointer:
        number, dtype = self.names.index(name), self.dtypes.get(name, F32)
        strides = [self.params[len(PARAMETERS) + 3 * number + i] for i in range(3)]
        return self.pointers.tensor(number, dtype)[strides[0] * step + strides[1] * direction + strides[2] * sequence]


def _each_vector(k: Emitter, count: Val, body: Callable[[Val, Val | None], None]) -> None:
    """Emit ``body(index, valid)`` for whole vectors, where ``valid`` is None, then for the remaining elements."""
    lanes = k.machine.lanes()
    whole = count / lanes * lanes
    with k.loop(0, whole, lanes) as i:
        body(i, None)
    with k.if_(whole < count):
        body(whole, count - whole)


def copy_vector(k: Emitter, source: Pointer, target: Pointer, count: Val) -> None:
    """Emit a copy of ``count`` elements, which are converted if the types differ."""
    lanes = k.machine.lanes()
    _each_vector(k, count, lambda i, valid: k.store_first(target[i], k.load_first(source[i], valid, lanes), valid))


def store_zeros(k: Emitter, target: Pointer, count: Val) -> None:
    """Emit stores of ``count`` zeros."""
    zero = k.constant(0.0, F32, k.machine.lanes())
    _each_vector(k, count, lambda i, valid: k.store_first(target[i], zero, valid))
