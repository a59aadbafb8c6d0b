"""A program whose numbers are calculated from the sizes of the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tracing.numbers import Traced, TracedArray, Tracer, call, largest, recorded_value
from lite_core.backend import Interval
from lite_core.memory.arena import plan_arena
from lite_cpu.executable import Tuned
from lite_cpu.kernels.base import Kernel
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.memory import lifetimes_of
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, Step
from lite_cpu.runtime.tables import Int64Array, ProgramTables

__all__ = ["ProgramTemplate", "SizedProgram"]

#: Most kernels whose addresses a template remembers.
_MOST_KERNELS = 256

Shapes = tuple[tuple[int, ...], ...]


class SizedProgram(NamedTuple):
    """A program for certain input sizes, the shapes of its outputs, and the template that it is from."""

    program: Program
    outputs: Shapes
    template: ProgramTemplate


def _itself(kernel: Kernel) -> Kernel:
    return kernel


class _Pattern:
    """A table of integers, some of which are traced.

    Args:
        numbers: the integers.
        traced: those that are traced are appended to this list.
    """

    def __init__(self, numbers: Sequence[Any], traced: list[Any]) -> None:
        positions = [i for i, number in enumerate(numbers) if type(number) is Traced]
        self._fixed = np.array([0 if type(number) is Traced else number for number in numbers], np.int64)
        self._positions = np.array(positions, np.intp)
        traced += [numbers[i] for i in positions]

    def filled(self, results: Iterator[Any]) -> Int64Array:
        """Return the table with the next results in the place of the traced numbers."""
        table: Int64Array = self._fixed.copy()
        if len(self._positions):
            table[self._positions] = list(islice(results, len(self._positions)))
        return table


class ProgramTemplate:
    """The program of a partition as it was lowered with traced sizes, for other sizes.

    Args:
        tracer: recorded the lowering; it is still open.
        lowering: the steps.
        library: has the kernels.
        threads: the number of threads that the program is divided for.

    Attributes:
        faults, tuned, in_place: see :class:`~lite_cpu.executable.CompiledProgram`.
    """

    def __init__(self, tracer: Tracer, lowering: Lowering, library: KernelLibrary, threads: int) -> None:
        planned, graph = lowering.steps, lowering.graph
        self.faults = tuple(lowering.faults)
        self.in_place = {graph.outputs.index(new): graph.inputs.index(old) for new, old in lowering.caches.items()}
        self.tuned = Tuned(lowering.chooser.used, notes=tuple(lowering.chooser.describe()))
        self._library = library
        lives = lifetimes_of(planned)
        life_of = {storage: number for number, life in enumerate(lives) for storage in life.storages}
        self._lifetimes = [(life.first, life.last) for life in lives]
        tensors = [tensor for step in planned for tensor in step.tensors]
        l2_bytes = library.machine.l2_bytes
        traced: list[Any] = []
        self._patterns = [
            _Pattern(numbers, traced)
            for numbers in (
                [step.tasks for step in planned],
                [step.grain_for(threads, l2_bytes) for step in planned],
                [tensor.byte_offset for tensor in tensors],
                [number for step in planned for number in step.params],
                [life.storages[0].bytes for life in lives],
                [largest(0, *[step.scratch_bytes for step in planned])],
                *[value.shape for value in graph.outputs],
            )
        ]
        #: For each pointer the number of its storage among those in the arena, or -1.
        self._life_of_pointer = np.array([life_of.get(tensor.storage, -1) for tensor in tensors], np.intp)
        arrays = {t.storage.keep: None for t in tensors if type(t.storage.keep) is TracedArray}
        #: The pointers to arrays that are made from sizes.
        self._arrays = [[i for i, tensor in enumerate(tensors) if tensor.storage.keep is array] for array in arrays]
        # A kernel with a traced size in its code differs from size to size.
        kernels: list[Any] = [call(_itself, step.kernel) for step in planned]
        self._variable = [i for i, kernel in enumerate(kernels) if type(kernel) is Traced]
        self._addresses: dict[int, tuple[Kernel, int]] = {}
        known = [recorded_value(kernel) for kernel in kernels]
        addresses = library.addresses(known)
        self._tables = ProgramTables.of([
            Step(
                addresses[kernel],
                [(tensor.storage.base, 0) for tensor in step.tensors],
                [0] * len(step.params),
                1,
                1,
                recorded_value(step.label),
                step.jump,
            )
            for kernel, step in zip(known, planned)
        ])  # fmt: skip
        starts = [0 if type(t.storage.keep) is TracedArray or t.storage.in_arena else t.storage.offset for t in tensors]
        self._starts = np.array(starts, np.int64)
        kept = {t.storage for t in tensors if t.storage.keep is not None and type(t.storage.keep) is not TracedArray}
        self._owners = (library, *kept)
        self._recipe = tracer.recipe([*arrays, *(kernels[i] for i in self._variable), *traced])

    def program(self, sizes: Sequence[int]) -> SizedProgram | None:
        """Return the program for sizes; None if it has other steps than the recorded one."""
        results = self._recipe.results(sizes)
        if results is None:
            return None
        numbers = iter(results)
        arrays = [np.ascontiguousarray(next(numbers)) for _ in self._arrays]
        kernels = [next(numbers) for _ in self._variable]
        tasks, grains, offsets, params, bytes, scratch, *shapes = [p.filled(numbers) for p in self._patterns]
        plan = plan_arena([Interval(size, *life) for size, life in zip(bytes.tolist(), self._lifetimes)])
        in_arena = np.array([*plan.offsets, 0], np.int64)
        offsets += self._starts + in_arena[self._life_of_pointer]
        for array, pointers in zip(arrays, self._arrays):
            offsets[pointers] += array.ctypes.data
        tables = self._tables.resized(tasks, grains, offsets, params)
        if kernels:
            tables.set_kernels(self._variable, self._addresses_of(kernels))
        program = Program(
            tables, plan.size, int(scratch[0]), owners=[*self._owners, *arrays], code=self._library.native
        )
        return SizedProgram(program, tuple([tuple(shape.tolist()) for shape in shapes]), self)

    def _addresses_of(self, kernels: Sequence[Kernel]) -> list[int]:
        """Return the addresses of kernels; those of new ones are looked up, or compiled."""
        if len(self._addresses) > _MOST_KERNELS:
            self._addresses.clear()
        known = self._addresses
        new = {id(kernel): kernel for kernel in kernels if id(kernel) not in known}
        if new:
            found = self._library.addresses(new.values())
            # NOTE: the kernels are kept, so that no other gets their ids.
            known.update((number, (kernel, found[kernel])) for number, kernel in new.items())
        return [known[id(kernel)][1] for kernel in kernels]
