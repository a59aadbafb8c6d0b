"""Kernels for ARM against the reference: products of floats and of int8, depthwise, recurrent layers."""

from __future__ import annotations

from pathlib import Path

import kernel_cases
import numpy as np
import pytest
from conftest import MakePython
from emulated import PROCESSORS
from kernel_cases import Array, Case, cases, narrow_cases, pair_cases, weight_cases

#: The largest relative error of one operator on float32: sums of at most 300 products.
TOLERANCE = 4e-6
#: The same with weights of 11 and of 8 significant bits, see lite_cpu's narrow_weights.
NARROW_TOLERANCE = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
#: Sums of up to 64 products in float16 are off by about 2^-10 of their typical size, few by over four times as much;
#: here it is a share of the largest result.
SUMS_OF_FLOAT16 = 6 * 2.0**-11


def results_of(python: MakePython, processor: str, folder: Path, group: str) -> list[Array]:
    """Run a group of cases in an emulated process."""
    path = folder / f"{processor}.npz"
    python(processor, compiles=True).run(kernel_cases.__file__, str(path), group)
    with np.load(path) as found:
        return [found[f"arr_{number}"] for number in range(len(found.files))]


def assert_near(case: Case, found: Array, tolerance: float) -> None:
    expected = kernel_cases.run(case, "host")
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max(), err_msg=case.name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=case.name)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_agree_with_the_reference(arm: MakePython, processor: str, tmp_path: Path) -> None:
    for case, found in zip(cases(), results_of(arm, processor, tmp_path, "all"), strict=True):
        assert_near(case, found, TOLERANCE)


@pytest.mark.parametrize("precision", NARROW_TOLERANCE)
def test_weights_of_16_bits(arm: MakePython, precision: str, tmp_path: Path) -> None:
    for case, found in zip(narrow_cases(), results_of(arm, "cortex-a53", tmp_path, precision), strict=True):
        assert_near(case, found, NARROW_TOLERANCE[precision])


@pytest.mark.parametrize("processor", PROCESSORS)
def test_weights_of_4_and_8_bits(arm: MakePython, processor: str, tmp_path: Path) -> None:
    for case, found in zip(weight_cases(), results_of(arm, processor, tmp_path, "weights"), strict=True):
        assert_near(case, found, TOLERANCE)


def test_products_of_bfloat16(arm: MakePython, tmp_path: Path) -> None:
    for case, found in zip(pair_cases(), results_of(arm, "max", tmp_path, "pairs"), strict=True):
        assert_near(case, found, TOLERANCE)


@pytest.mark.parametrize("processor", ["cortex-a76", "max"])
def test_products_of_float16(arm: MakePython, processor: str, tmp_path: Path) -> None:
    for case, found in zip(pair_cases(), results_of(arm, processor, tmp_path, "halves"), strict=True):
        assert_near(case, found, SUMS_OF_FLOAT16)


def test_rows_have_the_same_bits_in_every_tile(arm: MakePython, tmp_path: Path) -> None:
    *fewer, most = results_of(arm, "cortex-a53", tmp_path, "rows")
    assert len(most) == 7
    for found in fewer:
        np.testing.assert_array_equal(found, most[: len(found)])
