"""Winograd's weights computed by the native kernel, compared with NumPy for every layout of the filters."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from levels import machine_params, runnable_machines

from lite_cpu.emitter import Emitter
from lite_cpu.kernels.tiles import gemm_tile, pack_panels
from lite_cpu.kernels.toom_cook import filter_matrix
from lite_cpu.kernels.winograd_weights import WinogradWeights
from lite_cpu.lowering.weights import WinogradRecipe
from lite_cpu.machine import ARM_V8, Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import compile_ir
from lite_cpu.runtime import ProgramError
from lite_cpu.winograd_preparation import prepare_winograd

Array = np.ndarray[Any, Any]

LEVELS = pytest.mark.parametrize("machine", machine_params())
TILES = pytest.mark.parametrize("outputs", [2, 4])

#: Columns and channels: one, fewer than a vector, odd, whole panels, and several work items.
SIZES = [(1, 1), (3, 2), (17, 33), (33, 1), (64, 64), (40, 131)]


def constant(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def layouts(columns: int, channels: int) -> dict[str, tuple[Array, Array]]:
    """Return constants, each with a view [columns, channels, 3, 3] of it."""
    plain, transposed = constant(columns, channels, 3, 3), constant(channels, columns, 3, 3)
    wide = constant(columns + 2, channels, 5, 6)
    return {
        "plain": (plain, plain),
        "transposed": (transposed, transposed.swapaxes(0, 1)),
        "reversed": (transposed, transposed.swapaxes(0, 1)[:, :, ::-1, ::-1]),
        "part": (wide, wide[2:, :, ::2, 1::2]),
    }


def recipe_of(machine: Machine, outputs: int, source: Array, view: Array) -> WinogradRecipe:
    offset = (view.ctypes.data - source.ctypes.data) // source.itemsize
    strides = tuple(s // source.itemsize for s in view.strides)
    return WinogradRecipe(
        outputs, machine.lanes(), gemm_tile(machine)[1], (1, *view.shape), (source.size, *strides), offset
    )


@cache
def library_for(machine: Machine) -> KernelLibrary:
    return KernelLibrary(machine)


def prepared(machine: Machine, outputs: int, source: Array, view: Array, threads: int = 1) -> Array:
    kernel = WinogradWeights(outputs)
    address = library_for(machine).addresses([kernel])[kernel]
    return prepare_winograd(address, source, recipe_of(machine, outputs, source, view), threads)


def reference(machine: Machine, outputs: int, filters: Array) -> Array:
    matrix = np.array(filter_matrix(outputs))
    points = np.einsum("pi,qj,ocij->pqco", matrix, matrix, filters.astype(np.float64))
    flat = points.reshape(-1, *points.shape[2:]).astype(np.float32)
    return pack_panels(flat, machine.lanes(), gemm_tile(machine)[1])


@LEVELS
@TILES
@pytest.mark.parametrize(("columns", "channels"), SIZES)
def test_agrees_with_numpy(columns: int, channels: int, outputs: int, machine: Machine) -> None:
    for name, (source, view) in layouts(columns, channels).items():
        found, expected = prepared(machine, outputs, source, view), reference(machine, outputs, view)
        assert found.shape == expected.shape, name
        np.testing.assert_array_max_ulp(found, expected, maxulp=1)


def test_transformed_filter_of_an_impulse_is_the_product_of_two_columns() -> None:
    filters = np.zeros((1, 1, 3, 3), np.float32)
    filters[0, 0, 0, 2] = 1
    for machine in runnable_machines()[-1:]:
        points = prepared(machine, 4, filters, filters)[:, 0].reshape(6, 6)
        # The first row of taps does not contribute at infinity, and the last column does not at zero.
        assert (points[5] == 0).all()
        assert (points[:, 0] == 0).all()
        assert np.linalg.matrix_rank(points) == 1


@LEVELS
@TILES
def test_bits_do_not_depend_on_the_number_of_threads(outputs: int, machine: Machine) -> None:
    filters = constant(70, 150, 3, 3)
    one, two, three = (prepared(machine, outputs, filters, filters, threads).tobytes() for threads in (1, 2, 3))
    assert one == two == three


@pytest.mark.full("cpu")
@TILES
def test_every_level_computes_the_same_bits(outputs: int) -> None:
    filters = constant(32, 19, 3, 3)
    plain = set()
    for machine in runnable_machines():
        panels = prepared(machine, outputs, filters, filters)
        width = machine.lanes() * gemm_tile(machine)[1]
        matrices = panels.reshape(len(panels), -1, 19, width).swapaxes(1, 2)
        plain.add(matrices.tobytes())
    assert len(plain) == 1


@TILES
@pytest.mark.parametrize("outside", [{"offset": 1}, {"offset": -1}, {"strides": (0, 9, 9 * 5, 3, 1)}])
def test_filters_outside_the_constant_are_refused(outside: dict[str, Any], outputs: int) -> None:
    filters = constant(4, 5, 3, 3)
    recipe = recipe_of(ARM_V8, outputs, filters, filters)._replace(**outside)
    with pytest.raises(ProgramError, match="180"):
        prepare_winograd(1, filters, recipe, 1)


@pytest.mark.parametrize(
    "other", [{"shape": (1, 4, 5, 3, 1)}, {"shape": (1, 0, 5, 3, 3)}, {"shape": (4, 5, 3, 3)}, {"lanes": 0}]
)
def test_other_filters_are_refused(other: dict[str, Any]) -> None:
    filters = constant(4, 5, 3, 3)
    recipe = recipe_of(ARM_V8, 4, filters, filters)
    with pytest.raises(ProgramError, match=r"\[1, columns, channels, 3, 3\]"):
        prepare_winograd(1, filters, recipe._replace(**other), 1)
    with pytest.raises(ProgramError, match="float64"):
        prepare_winograd(1, filters.astype(np.float64), recipe, 1)


@TILES
def test_kernel_compiles_for_arm(outputs: int) -> None:
    k = Emitter(ARM_V8)
    kernel = WinogradWeights(outputs)
    kernel.emit(k)
    assert set(compile_ir(k.text(), ARM_V8).entries) == {kernel.symbol}


def test_preparation_imports_nothing_of_the_compiler() -> None:
    program = "import sys, lite_cpu.winograd_preparation; print(*sys.modules, sep='\\n')"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = shown.stdout.split()
    assert "lite_cpu.winograd_preparation" in modules
    compiler = ("llvmlite", "lite_cpu.emitter", "lite_cpu.kernels", "lite_cpu.machine_code.objects")
    assert [m for m in modules if m.startswith(compiler)] == []
