"""Recurrent layers whose hidden units are divided among threads, for fewer sequences than there are threads.

Each pass of each turn is a step of the program, and the program jumps back from turn to turn. So the threads meet where
a step ends, and no unit reads a state before all units have written theirs. The runtime waits for work and never for
threads (:mod:`lite_cpu.runtime.work_stealing`): any number of threads may take part, and all but one may be late.

A unit is computed by the same code as in :mod:`.recurrent`, in the same order, so its results have the same bits.

Between the steps, the states of each row are in memory as vectors of all hidden units: two that take turns as the
state before and after a turn, then the cell if there is one, and the state times the reset gate if a pass of its own
reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.recurrent import PARAMETERS, LayerTensors, Recurrent, copy_vector, store_zeros
from lite_cpu.machine import Machine

__all__ = ["BeginTurns", "NextTurn", "UnitsOfTurn", "states_of_row"]

F32, I64 = DType.FLOAT32, DType.INT64


def states_of_row(layer: Recurrent) -> int:
    """Return the number of vectors that the states of a row consist of."""
    return 2 + layer.has_cell + (len(layer.passes) > 1)


@dataclass(frozen=True)
class BeginTurns(Kernel):
    """Copy the initial states, and begin with turn 0.

    Pointers: :attr:`tensors`, states, number of the turn (int64). Parameters: those of the layer, the strides of the
    tensors. A work item is one of the layer, a few rows; the whole step is one chunk.
    """

    layer: Recurrent

    @property
    def symbol(self) -> str:
        return f"begin_{self.layer.symbol}"

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors in the order of the pointers."""
        return ("initial_h", "initial_c") if self.layer.has_cell else ("initial_h",)

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            arguments = _Arguments(k, self.layer, self.tensors, pointers, params)
            arguments.turn.store(0)
            with k.loop(begin, end) as number:
                item = arguments.item(number)
                for row, sequence in enumerate(item.sequences):
                    for name, states in zip(self.tensors, (item.even, item.cell)):
                        initial = arguments.tensors.at(name, 0, item.direction, sequence)
                        copy_vector(k, initial, states[row], arguments.hidden)


@dataclass(frozen=True)
class UnitsOfTurn(Kernel):
    """One pass of a turn. A work item is a vector of hidden units of a few rows.

    Pointers: :attr:`tensors`, states, number of the turn (int64). Parameters: those of the layer, the strides of the
    tensors.
    """

    layer: Recurrent
    number: int

    @property
    def symbol(self) -> str:
        return f"{self.layer.symbol}_units"

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors in the order of the pointers."""
        return tuple([name for name in self.layer.tensors if name not in BeginTurns(self.layer).tensors])

    @property
    def computes(self) -> Products | None:
        return self.layer.computes

    def scratch_bytes(self, machine: Machine, hidden: int) -> int:
        """Return the size of a rounded state for each row."""
        lanes = machine.lanes()
        return 4 * self.layer.rows * -(-hidden // lanes) * lanes

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            arguments = _Arguments(k, self.layer, self.tensors, pointers, params)
            blocks, turn = arguments.blocks, arguments.turn.load()
            rounded = [scratch.cast(F32)[arguments.padded * row] for row in range(self.layer.rows)]
            with k.loop(begin / blocks, (end - 1) / blocks + 1) as number:
                first = k.maximum(begin - number * blocks, 0) * lanes
                last = k.minimum(end - number * blocks, blocks) * lanes
                self._emit_item(k, arguments, arguments.item(number), turn, rounded, first, last)

    def _emit_item(
        self, k: Emitter, arguments: _Arguments, item: _Item, turn: Val, rounded: list[Pointer], first: Val, last: Val
    ) -> None:
        """Emit the pass for the units from ``first`` to before ``last`` of an item."""
        layer, tensors, direction = self.layer, arguments.tensors, item.direction
        is_even, is_last_pass = (turn % 2).eq(0), self.number == len(layer.passes) - 1
        old = [k.choose(is_even, even, odd) for even, odd in zip(item.even, item.odd)]
        new = [k.choose(is_even, odd, even) for even, odd in zip(item.even, item.odd)]
        count = k.minimum(last, arguments.hidden) - first
        length = layer.length_of(k, tensors, item.sequences[0], arguments.steps)

        def copy_out(states: Sequence[Pointer], name: str, step: Val | int) -> None:
            for state, sequence in zip(states, item.sequences):
                copy_vector(k, state[first], tensors.at(name, step, direction, sequence)[first], count)

        def compute() -> None:
            step = (direction >= arguments.first_reversed).select(length - 1 - turn, turn)
            at = layer.step_at(tensors, (old, new, item.cell, item.reset), step, direction, item.sequences)
            weights = tensors.at("weights", 0, direction, 0)
            layer.emit_pass(k, at, self.number, weights, rounded, arguments.padded, (first, last))
            if is_last_pass:
                copy_out(new, "y", step)

        def pass_on() -> None:
            if is_last_pass:
                copy_vector(k, old[0][first], new[0][first], count)
                store_zeros(k, tensors.at("y", turn, direction, item.sequences[0])[first], count)

        if layer.lengths:
            k.if_else(turn < length, compute, pass_on)
        else:
            compute()
        if is_last_pass:
            with k.if_((turn + 1).eq(arguments.steps)):
                copy_out(new, "y_h", 0)
                if layer.has_cell:
                    copy_out(item.cell, "y_c", 0)


@dataclass(frozen=True)
class NextTurn(Kernel):
    """Jump if another turn follows. Pointers: flag, number of the turn (int64). Parameters: number of turns."""

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _), k.loop(begin, end):
            turn = pointers.tensor(1, I64)
            following = turn.load() + 1
            turn.store(following)
            pointers.tensor(0, I64).store((following < params[0]).to(I64))


class _Item(NamedTuple):
    """A few sequences of one direction, with the states of each; those that the layer lacks are not used."""

    direction: Val
    sequences: list[Val]
    even: list[Pointer]
    odd: list[Pointer]
    cell: list[Pointer]
    reset: list[Pointer]


class _Arguments:
    """The arguments of a kernel that divides a layer.

    Args:
        k: the emitter.
        layer: the layer.
        names: the names of the tensors that the kernel has.
        pointers: the tensors, then the states and the number of the turn.
        params: the parameters.

    Attributes:
        tensors: the tensors.
        turn: the address of the number of the turn.
        steps, hidden, first_reversed: parameters of the layer.
        blocks: number of vectors of hidden units.
        padded: the hidden units, rounded up to whole vectors.
    """

    def __init__(
        self, k: Emitter, layer: Recurrent, names: tuple[str, ...], pointers: Pointers, params: Params
    ) -> None:
        self._k, self._layer = k, layer
        self.steps, self._sequences, self.hidden, self.first_reversed = (params[i] for i in range(len(PARAMETERS)))
        lanes = k.machine.lanes()
        self.blocks = (self.hidden + (lanes - 1)) / lanes
        self.padded = self.blocks * lanes
        self.tensors = LayerTensors(pointers, params, names, {**layer.dtypes, **dict(layer.narrow)})
        self._states = pointers.tensor(len(names), F32)
        self.turn = pointers.tensor(len(names) + 1, I64)

    def item(self, number: Val) -> _Item:
        """Return work item ``number`` of the layer."""
        rows, count = self._layer.rows, states_of_row(self._layer)
        items = (self._sequences + (rows - 1)) / rows
        states = [
            [self._states[((number * rows + row) * count + min(i, count - 1)) * self.padded] for row in range(rows)]
            for i in (0, 1, 2, count - 1)
        ]
        sequences = self._layer.sequences_of_rows(self._k, number % items * rows, self._sequences)
        return _Item(number / items, sequences, *states)
