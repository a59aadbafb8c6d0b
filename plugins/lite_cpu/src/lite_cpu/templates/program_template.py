"""A program whose numbers are calculated from the sizes of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tracing.numbers import Traced, TracedArray, Tracer, call, largest, recorded_value
from lite_core.backend import Interval
from lite_core.memory.arena import plan_arena
from lite_cpu.addresses import address_of
from lite_cpu.executable import Tuned
from lite_cpu.kernels.base import Kernel
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.memory import lifetimes_of
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, Step
from lite_cpu.runtime.tables import ProgramTables
from lite_cpu.templates.filling import FilledTables, Filling, TemplateTables
from lite_cpu.templates.native import size_code
from lite_cpu.templates.native_recipe import NativeRecipe

__all__ = ["ProgramTemplate", "SizedProgram"]

#: Most kernels whose addresses a template remembers.
_MOST_KERNELS = 256

#: Programs of a template that Python calculates. Preparing native code takes as long as five of them.
_USES_IN_PYTHON = 2

#: The objects that a recipe makes, and the tables of the program.
_Found = tuple[list[Any], FilledTables]

Shapes = tuple[tuple[int, ...], ...]


class SizedProgram(NamedTuple):
    """A program for certain input sizes, the shapes of its outputs, and the template that it is from."""

    program: Program
    outputs: Shapes
    template: ProgramTemplate


def _itself(kernel: Kernel) -> Kernel:
    return kernel


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
        tensors = [tensor for step in planned for tensor in step.tensors]
        l2_bytes = library.machine.l2_bytes
        parts: list[Sequence[Any]] = [
            [step.tasks for step in planned],
            [step.grain_for(threads, l2_bytes) for step in planned],
            [tensor.byte_offset for tensor in tensors],
            [number for step in planned for number in step.params],
            [life.storages[0].bytes for life in lives],
            [largest(0, *[step.scratch_bytes for step in planned])],
            *[value.shape for value in graph.outputs],
        ]
        given = [number for part in parts for number in part]
        traced = [number for number in given if type(number) is Traced]
        arrays = {t.storage.keep: None for t in tensors if type(t.storage.keep) is TracedArray}
        #: The pointers to arrays that are made from sizes.
        self._arrays = [[i for i, tensor in enumerate(tensors) if tensor.storage.keep is array] for array in arrays]
        # A kernel with a traced size in its code differs from size to size.
        chosen: list[Any] = [step.kernel for step in planned]
        kernels = [kernel if type(kernel) is Traced else call(_itself, kernel) for kernel in chosen]
        self._variable = [i for i, kernel in enumerate(kernels) if type(kernel) is Traced]
        self._addresses: dict[int, tuple[Kernel, int]] = {}
        known = [recorded_value(kernel) for kernel in kernels]
        addresses = library.addresses(known)
        tables = ProgramTables.of([
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
        self._common = TemplateTables(
            np.array([0 if type(number) is Traced else number for number in given], np.int64),
            np.array([i for i, number in enumerate(given) if type(number) is Traced], np.int64),
            [*map(len, parts)],
            tables,
            np.array(starts, np.int64),
            np.array([life_of.get(tensor.storage, -1) for tensor in tensors], np.int64),
            [(life.first, life.last) for life in lives],
        )
        ends = [*accumulate(self._common.lengths)]
        #: Where scratch memory and the shape of each output are among the numbers.
        self._shapes = [slice(begin, end) for begin, end in pairwise(ends[5:])]
        self._scratch = ends[4]
        kept = {t.storage for t in tensors if t.storage.keep is not None and type(t.storage.keep) is not TracedArray}
        self._origin = Program(tables, 0, 0, (library, *kept), library.native)
        self._recipe = tracer.recipe([*arrays, *(kernels[i] for i in self._variable), *traced])
        self._native: tuple[NativeRecipe, Filling] | None = None
        self._uses = 0

    def program(self, sizes: Sequence[int]) -> SizedProgram | None:
        """Return the program for sizes; None if it has other steps than the recorded one. Not thread-safe."""
        self._uses += 1
        if self._native is None and self._uses > _USES_IN_PYTHON and (code := size_code()):
            known = self._recipe.numbers(sizes)
            if known is None:
                return None
            sources = self._recipe.outputs[len(self._arrays) + len(self._variable) :]
            self._native = NativeRecipe(self._recipe, known, code), Filling(self._common, sources, code)
        found = self._calculated(sizes) if self._native is None else self._filled(*self._native, sizes)
        if found is None:
            return None
        objects, (tables, arena_bytes, numbers) = found
        arrays = [np.ascontiguousarray(array) for array in objects[: len(self._arrays)]]
        for array, pointers in zip(arrays, self._arrays):
            tables.pointers[pointers, 1] += address_of(array)
        if self._variable:
            tables.set_kernels(self._variable, self._addresses_of(objects[len(arrays) :]))
        program = self._origin.resized(tables, arena_bytes, numbers.item(self._scratch), arrays)
        return SizedProgram(program, tuple([tuple(numbers[shape].tolist()) for shape in self._shapes]), self)

    def _filled(self, recipe: NativeRecipe, filling: Filling, sizes: Sequence[int]) -> _Found | None:
        """Return the objects that the recipe makes, and the tables, by native code."""
        objects = recipe.follow(sizes)
        tables = None if objects is None else filling.filled(recipe.numbers)
        if objects is None or tables is None:
            return None
        return [objects[i] for i in self._recipe.outputs[: len(self._arrays) + len(self._variable)]], tables

    def _calculated(self, sizes: Sequence[int]) -> _Found | None:
        """Return the same, calculated in Python."""
        results = self._recipe.results(sizes)
        if results is None:
            return None
        common = self._common
        numbers, objects = common.numbers.copy(), len(self._arrays) + len(self._variable)
        numbers[common.positions] = results[objects:]
        tasks, grains, offsets, params, bytes = np.split(numbers, [*accumulate(common.lengths)][:5])[:5]
        plan = plan_arena([Interval(size, *life) for size, life in zip(bytes.tolist(), common.lifetimes)])
        in_arena = np.array([*plan.offsets, 0], np.int64)[common.lives]
        tables = common.tables.resized(tasks, grains, offsets + common.starts + in_arena, params)
        return results[:objects], FilledTables(tables, plan.size, numbers)

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
