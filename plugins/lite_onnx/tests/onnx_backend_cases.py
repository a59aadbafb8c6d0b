"""The ONNX project's backend tests as classes for pytest, without the cases listed in ``backend_left_out.txt``."""

from __future__ import annotations

import fnmatch
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from onnx.backend.test import BackendTest
from onnx_backend_adapter import LiteBackend

__all__ = ["LeftOut", "all_names", "backend_tests", "excluded_tests", "left_out"]


#: Tolerances for cases whose float32 data have rounding errors above the runner's tolerance of 1e-7.
TOLERANCES = {
    # Zeros that a float32 FFT of numbers up to 100 computed as 2e-7.
    "test_dft_inverse": {"atol": 1e-6},
    "test_dft_inverse_opset19": {"atol": 1e-6},
}


class LeftOut(NamedTuple):
    """A pattern of cases that are left out for one reason.

    Attributes:
        pattern: the pattern of their names.
        reason: the reason.
        is_inference: True if the cases test features that inference uses.
    """

    pattern: str
    reason: str
    is_inference: bool


def left_out() -> list[LeftOut]:
    """Parse ``backend_left_out.txt``: lines ``pattern: reason`` below the headings [inference] and [training]."""
    found, is_inference = [], True
    for line in (Path(__file__).parent / "backend_left_out.txt").read_text().splitlines():
        if line.startswith("["):
            is_inference = line == "[inference]"
        elif line and not line.startswith("#"):
            pattern, reason = line.split(": ", 1)
            found.append(LeftOut(pattern, reason, is_inference))
    return found


class _StrictBackend(LiteBackend):
    """A backend that claims to support every model: ONNX's runner skips models that a backend calls incompatible."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
        return super().prepare(model, device)  # NOTE: the runner passes its tolerances in kwargs


def on_device(lite_backend: str) -> type[LiteBackend]:
    """Return Lite as a backend for ONNX's tests on one of Lite's backends; host runs nodes that it refuses."""
    return type(f"Lite_{lite_backend}", (_StrictBackend,), {"lite_backend": lite_backend})


def backend_tests(lite_backend: str, module: str) -> dict[str, type[unittest.TestCase]]:
    """Return the test classes for one backend, without the cases that are left out."""
    classes = {}
    for name, case in BackendTest(on_device(lite_backend), module, TOLERANCES).test_cases.items():
        for test in cases_of(case):
            if test.endswith("_cuda") or any(fnmatch.fnmatch(_plain(test), line.pattern) for line in left_out()):
                delattr(case, test)
        classes[f"{name}_{lite_backend}"] = case
    return classes


def cases_of(case: type[unittest.TestCase]) -> Iterator[str]:
    """Yield the names of a class's tests."""
    return (name for name in list(vars(case)) if name.startswith("test_"))


def excluded_tests(module: str) -> dict[str, Any]:
    """Return the cases that are left out: by name, the class and method of the test."""
    found = {}
    for case in BackendTest(on_device("host"), module).test_cases.values():
        for test in cases_of(case):
            if test.endswith("_cpu") and any(fnmatch.fnmatch(_plain(test), line.pattern) for line in left_out()):
                found[_plain(test)] = (case, test)
    return found


def all_names(module: str) -> list[str]:
    """Return the names of all cases, without the device."""
    classes = BackendTest(on_device("host"), module).test_cases.values()
    return [_plain(test) for case in classes for test in cases_of(case) if test.endswith("_cpu")]


def _plain(test: str) -> str:
    return test.removesuffix("_cpu").removesuffix("_cuda")
