"""The ONNX project's backend tests as pytest collects them: which are left out is in ``backend_left_out.txt``."""

from __future__ import annotations

import fnmatch
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from onnx.backend.test import BackendTest

from lite_onnx.backend import LiteBackend

__all__ = ["LeftOut", "all_names", "backend_tests", "excluded_tests", "left_out"]


#: Where ONNX's data is float32 with rounding errors of its own, and the runner's tolerance of 1e-7 is below these.
TOLERANCES = {
    # Zeros that came out of a float32 FFT of numbers up to 100 as 2e-7.
    "test_dft_inverse": {"atol": 1e-6},
    "test_dft_inverse_opset19": {"atol": 1e-6},
}


class LeftOut(NamedTuple):
    """Cases that are left out, all with one reason.

    Attributes:
        pattern: of their names.
        reason: why.
        is_inference: whether a trained network may contain what they ask for.
    """

    pattern: str
    reason: str
    is_inference: bool


def left_out() -> list[LeftOut]:
    """The lines of ``backend_left_out.txt``: ``pattern: reason``, after a heading that says of what kind they are."""
    found, is_inference = [], True
    for line in (Path(__file__).parent / "backend_left_out.txt").read_text().splitlines():
        if line.startswith("["):
            is_inference = line == "[inference]"
        elif line and not line.startswith("#"):
            pattern, reason = line.split(": ", 1)
            found.append(LeftOut(pattern, reason, is_inference))
    return found


class _Demanding(LiteBackend):
    """NOTE: ONNX's runner skips models that a backend calls incompatible; here each of them counts."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
        return super().prepare(model, device)  # NOTE: the runner hands its tolerances to the backend, too


def on_device(lite_backend: str) -> type[LiteBackend]:
    """Lite as ONNX's tests see it, on one of its backends; host runs what that cannot."""
    return type(f"Lite_{lite_backend}", (_Demanding,), {"lite_backend": lite_backend})


def backend_tests(lite_backend: str, module: str) -> dict[str, type[unittest.TestCase]]:
    """The classes of tests for one backend, without those that are left out."""
    classes = {}
    for name, case in BackendTest(on_device(lite_backend), module, TOLERANCES).test_cases.items():
        for test in cases_of(case):
            if test.endswith("_cuda") or any(fnmatch.fnmatch(_plain(test), line.pattern) for line in left_out()):
                delattr(case, test)
        classes[f"{name}_{lite_backend}"] = case
    return classes


def cases_of(case: type[unittest.TestCase]) -> Iterator[str]:
    """The names of a class's tests."""
    return (name for name in list(vars(case)) if name.startswith("test_"))


def excluded_tests(module: str) -> dict[str, Any]:
    """Those that are left out, by name: a class that has the test of this name."""
    found = {}
    for case in BackendTest(on_device("host"), module).test_cases.values():
        for test in cases_of(case):
            if test.endswith("_cpu") and any(fnmatch.fnmatch(_plain(test), line.pattern) for line in left_out()):
                found[_plain(test)] = (case, test)
    return found


def all_names(module: str) -> list[str]:
    """The names of all cases, without the device."""
    classes = BackendTest(on_device("host"), module).test_cases.values()
    return [_plain(test) for case in classes for test in cases_of(case) if test.endswith("_cpu")]


def _plain(test: str) -> str:
    return test.removesuffix("_cpu").removesuffix("_cuda")
