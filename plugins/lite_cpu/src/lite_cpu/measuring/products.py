"""Measurement of matrix products: the best register tile, and the price of weights that come from main memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_cpu.aligned import aligned_empty
from lite_cpu.kernels.peak import Peak
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.measuring.stopwatch import Seconds, seconds_in_turns
from lite_cpu.runtime import Program, Step
from lite_cpu.tensors import FIRST_ARGUMENT
from lite_cpu.tuning import Tuning

__all__ = ["measure_peak", "measure_tile", "measure_winograd_weight", "tile_candidates"]

Array = np.ndarray[Any, Any]

#: Number of turns of each comparison.
_TURNS = 24
#: So many that the call does not count: a tenth of a millisecond or more.
_PEAK_ITEMS = 60_000


class _Shape(NamedTuple):
    """A product of ``rows`` x ``depth`` and ``depth`` x ``columns``; ``cold``: its weights come from main memory."""

    rows: int
    depth: int
    columns: int
    cold: bool


#: The products that choose a tile: pointwise convolutions of 14 x 14 and 7 x 7 pixels.
_TILE_SHAPES = (_Shape(196, 256, 256, False), _Shape(49, 512, 512, False), _Shape(49, 1024, 1024, True))

#: The products of one point of the transform of a Winograd convolution of few tiles, F(4 x 4) on 7 x 7 and 14 x 14.
_FEW_ROWS = (_Shape(4, 512, 512, True), _Shape(16, 512, 512, True))

#: Rows of the tallest tile: with two vectors a row, 28 of 32 registers are sums.
_TALL = 14

#: Another tile must take at most this share of the time: smaller gains come and go with the day.
_WORTHWHILE = 0.97


def tile_candidates(machine: Machine) -> list[Tuning]:
    """Return the tunings to compare, which differ in the rows of the tile; the machine's own is the first."""
    if machine.vector_registers < 32 or machine.vector_bytes < 64:
        return [machine.tuning]
    # The number that the registers allow is written as 0, so that kernels that are already compiled serve.
    others = (rows for rows in (0, _TALL) if rows != machine.tuning.tile_rows)
    return [machine.tuning, *(replace(machine.tuning, tile_rows=rows) for rows in others)]


def measure_tile(libraries: Sequence[tuple[Tuning, KernelLibrary]], memory: Array) -> Tuning:
    """Return the tuning whose tile is the fastest; the first one unless another one is faster by more than noise.

    Args:
        libraries: the candidates, each with the library that compiles kernels for it.
        memory: memory for weights, larger than the caches, with numbers that are neither zero nor subnormal.
    """
    if len(libraries) < 2:
        return libraries[0][0]
    cache, ratios, noise = WeightCache(), [0.0] * len(libraries), 0.0
    for shape in _TILE_SHAPES:
        calls = {i: _product(library, shape, memory, cache) for i, (_, library) in enumerate(libraries)}
        times = seconds_in_turns(calls, _TURNS)
        noise = max(noise, times[0].spread)
        for i, seconds in times.items():
            ratios[i] += math.log(seconds / times[0]) / len(_TILE_SHAPES)
    best = min(range(len(libraries)), key=ratios.__getitem__)
    return libraries[best if math.exp(ratios[best]) < min(_WORTHWHILE, 1 - noise) else 0][0]


def measure_winograd_weight(library: KernelLibrary, memory: Array) -> float:
    """Return the price of a weight from main memory in units of the time of one operation at full speed.

    A product of few rows with weights that come from memory takes longer than its multiply-adds would: the rest is what
    reading the weights costs, as far as it is not hidden behind the multiply-adds.
    """
    cache = WeightCache()
    calls: dict[_Shape | None, Callable[[], object]] = {s: _product(library, s, memory, cache) for s in _FEW_ROWS}
    times = seconds_in_turns({**calls, None: _peak(library)}, _TURNS)
    second_per_flop = times[None] / _peak_flops(library)
    prices = [times[s] / (s.depth * s.columns) / second_per_flop - 2 * s.rows for s in _FEW_ROWS]
    return max(1.0, sum(prices) / len(prices))


def measure_peak(library: KernelLibrary) -> float:
    """Return the floating-point operations per second of one core at full speed."""
    seconds: Seconds = seconds_in_turns({"peak": _peak(library)}, _TURNS)["peak"]
    return _peak_flops(library) / seconds


def _peak_flops(library: KernelLibrary) -> float:
    return _PEAK_ITEMS * Peak.flops(library.machine.lanes())


def _peak(library: KernelLibrary) -> Callable[[], None]:
    """Return a call that computes multiply-adds on registers only."""
    kernel = Peak()
    numbers = np.full(2 * library.machine.lanes(), 0.5, np.float32)
    step = Step(library.addresses([kernel])[kernel], [(1, 0)], [], _PEAK_ITEMS, _PEAK_ITEMS)
    program = Program([step], 0, 0, owners=[library])

    def run() -> None:
        numbers.fill(0.5)
        program.run([0, numbers.ctypes.data])

    return run


def _product(library: KernelLibrary, shape: _Shape, memory: Array, cache: WeightCache) -> Callable[[], None]:
    """Return a call that computes a product with one thread, as a partition with this node would.

    Its weights are parts of ``memory`` instead of the constant that the node is lowered with: always the first part, or
    another one at each call, until all have been read.
    """
    builder = GraphBuilder("product")
    weights = builder.constant(np.zeros((shape.depth, shape.columns), np.float32))
    x = builder.input("x", "float32", (shape.rows, shape.depth))
    builder.output(builder.add("MatMul", [x, weights]), "y")
    (planned,) = lower_graph(builder.build(), Options(threads=1), library, cache).steps
    pointers = [(t.storage.base, t.storage.offset + t.byte_offset) for t in planned.tensors]
    base_of_weights = FIRST_ARGUMENT + 2
    pointers[1] = (base_of_weights, 0)
    address = library.addresses([planned.kernel])[planned.kernel]
    step = Step(address, pointers, planned.params, planned.tasks, planned.grain, planned.label)
    program = Program([step], 0, planned.scratch_bytes, owners=[library, planned])
    given = np.full((shape.rows, shape.depth), 0.5, np.float32)
    result = np.empty((shape.rows, shape.columns), np.float32)
    scratch = aligned_empty((max(1, program.scratch_bytes(1)),), np.uint8)
    size = planned.tensors[1].storage.bytes
    parts = memory.nbytes // size if shape.cold else 1
    at = [0]

    def run(keep: object = (given, result, scratch)) -> None:
        at[0] = (at[0] + 1) % parts
        weights_at = memory.ctypes.data + at[0] * size
        program.run([scratch.ctypes.data, 0, given.ctypes.data, result.ctypes.data, weights_at])

    return partial(run)
