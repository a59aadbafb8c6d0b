"""The conformance suite on the backend opencl, by its own command: all green, and a reason for all it does not run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conformance_command import assert_every_letter, assert_green

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.cases.tensors import short_name
from lite_core.backend import Unavailable
from lite_core.ir import DType
from lite_core.plugins import available_backends, default_plugins

#: First letters of the operators of level 2, in parts that take about the same time on PoCL.
PARTS = ["A-B", "C-C", "D-F", "G-K", "L-M", "N-Q", "R-R", "S-Z"]
#: Kernels are compiled for each element type, a quarter of a second each on PoCL, and half an hour for all: cases of
#: other types than these are left to ``lite-conformance --backend opencl``, or to LITE_TEST_ALL_TYPES=1.
TYPES = {"f32", "i64", "bool"}
OTHER_TYPES = {short_name(dtype) for dtype in DType if not dtype.is_narrow} - TYPES
ALL_TYPES = os.environ.get("LITE_TEST_ALL_TYPES") == "1"


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips what needs a device where there is none.

    PoCL compiles a kernel once for any number of work groups and once for the number that is launched. Here, where a
    kernel runs once or twice, only the first is made: a quarter of the time. All other tests have both.
    """
    monkeypatch.setenv("POCL_WORK_GROUP_SPECIALIZATION", "0")
    found = available_backends(default_plugins())["opencl"].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")


def is_chosen(case: str) -> bool:
    """Whether a case is run here: ``Relu[f32,5x7]``, ``graph[partitions-diamond]``, and not ``Relu[u16,5x7]``."""
    family, _, rest = case.partition("[")
    kind = rest.rstrip("]").partition(",")[0]
    return ALL_TYPES or (kind not in OTHER_TYPES and family != "onnx")


def cases_of(first_level: int, last_level: int, letters: str = "A-Z") -> list[str]:
    """The options for the cases of some levels, of operators and such whose names have these first letters."""
    first, last = letters.split("-")
    every = [c.name for c in all_cases(Settings("opencl")) if first_level <= c.level <= last_level]
    chosen = {name.partition(",")[0] for name in every if first <= name[0].upper() <= last and is_chosen(name)}
    level = f"--level=L{first_level}-L{last_level}"
    return [level, *(f"--case={start.rstrip(']')}*" for start in sorted(chosen))]


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 3), (4, 5)])
def test_a_level(first: int, last: int, tmp_path: Path) -> None:
    assert_green("opencl", cases_of(first, last), tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    assert_green("opencl", cases_of(2, 2, part), tmp_path)


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
