"""The conformance suite on the backend opencl, by its command: all passes, and every refusal has a reason.

PoCL compiles kernels for each element type, a quarter of a second each, so most of the suite belongs to the full tier.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_command import COMMON_TYPES, assert_every_letter, assert_green, cases_of

from lite_conformance.cases.tensors import short_name
from lite_core.backend import Unavailable
from lite_core.ir import DType
from lite_core.plugins import available_backends, default_plugins

#: Ranges of first letters of the operators of level 2, in parts that take about the same time on PoCL.
PARTS = ["A-A", "B-B", "C-C", "D-D", "E-F", "G-G", "H-K", "L-L", "M-M", "N-O", "P-Q", "R-R", "S-S", "T-Z"]
OTHER_TYPES = {short_name(dtype) for dtype in DType if not dtype.is_narrow and dtype is not DType.STRING} - COMMON_TYPES
#: Operators with different kinds of kernels.
COMMON_OPERATORS = ["Concat", "Conv", "MatMul", "MaxPool", "Softmax"]


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the tests if there is no device.

    PoCL compiles a kernel once for any number of work groups, and once for the number that is launched. Here, where a
    kernel runs once or twice, only the first is compiled, which takes a quarter of the time. All other tests use both.
    """
    monkeypatch.setenv("POCL_WORK_GROUP_SPECIALIZATION", "0")
    found = available_backends(default_plugins())["opencl"].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")


def test_contract(tmp_path: Path) -> None:
    assert_green("opencl", ["--level", "L0-L1"], tmp_path)


def test_common_operators(tmp_path: Path) -> None:
    assert_green("opencl", ["--level", "L2", *(f"--case={op}[f32,*" for op in COMMON_OPERATORS)], tmp_path)


@pytest.mark.full("opencl-suite")
@pytest.mark.parametrize("level", [3, 4, 5])
def test_graphs_models_and_stress(level: int, tmp_path: Path) -> None:
    assert_green("opencl", cases_of("opencl", (level, level), types=COMMON_TYPES), tmp_path)


@pytest.mark.full("opencl-suite")
@pytest.mark.parametrize("part", PARTS)
def test_operators_in_common_types(part: str, tmp_path: Path) -> None:
    assert_green("opencl", cases_of("opencl", (2, 2), part, types=COMMON_TYPES, untyped=False), tmp_path)


@pytest.mark.full("opencl-types-1")
@pytest.mark.parametrize("part", [part for part in PARTS if part < "M"])
def test_first_operators_in_other_types(part: str, tmp_path: Path) -> None:
    assert_green("opencl", cases_of("opencl", (2, 2), part, types=OTHER_TYPES, untyped=False), tmp_path)


@pytest.mark.full("opencl-types-2")
@pytest.mark.parametrize("part", [part for part in PARTS if part >= "M"])
def test_last_operators_in_other_types(part: str, tmp_path: Path) -> None:
    assert_green("opencl", cases_of("opencl", (2, 2), part, types=OTHER_TYPES, untyped=False), tmp_path)


@pytest.mark.full("opencl-types-2")
def test_graphs_in_other_types(tmp_path: Path) -> None:
    assert_green("opencl", cases_of("opencl", (3, 3), types=OTHER_TYPES, untyped=False), tmp_path)


@pytest.mark.full("opencl-types-1")
def test_onnx_node_data(tmp_path: Path) -> None:
    assert_green("opencl", cases_of("opencl", (2, 2), types=()), tmp_path)


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
