"""Packing of constants into panels by a native kernel: bit by bit the panels that NumPy makes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from levels import machine_params

from lite_cpu import panel_preparation
from lite_cpu.kernels.tiles import gemm_tile, pack_panels
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.panel_preparation import prepare_panels

#: The library of each machine, so that kernels are compiled once.
library_of = cache(KernelLibrary)

LEVELS = pytest.mark.parametrize("machine", machine_params())


@LEVELS
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((1, 16, 48), (0, 1, 2)),
        ((1, 48, 5), (0, 2, 1)),
        ((3, 17, 64), (0, 1, 2)),
        ((3, 80, 33), (0, 2, 1)),
        ((32, 2, 7), (1, 0, 2)),  # neither dimension is contiguous
        ((1, 9, 33), (0, 1, 2)),  # the last vector is padded
        ((2, 0, 16), (0, 1, 2)),
    ],
)
def test_panels_are_those_of_numpy(
    machine: Machine, shape: tuple[int, ...], order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panel_preparation, "_FEWEST_ELEMENTS", 1)
    matrices = np.random.default_rng(0).standard_normal(shape).astype(np.float32).transpose(order)
    expected = pack_panels(matrices, machine.lanes(), gemm_tile(machine)[1])
    found = prepare_panels(library_of(machine), matrices)
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()
