"""The whole of the ONNX project's backend test through ``lite.load``, on host and on x86.

Cases that are left out are listed in ``backend_left_out.txt``: each line is held to be needed, and together they are at
most a twentieth of the cases that inference can ask for.
"""

from __future__ import annotations

import fnmatch
import os
import unittest

import onnx
import pytest

if not onnx.__version__.startswith("1.17."):
    pytest.skip("the test data is in the wheel of onnx 1.17 only", allow_module_level=True)

from onnx_backend_cases import all_names, backend_tests, excluded_tests, left_out

_MOST_LEFT_OUT = 0.05

for _lite_backend in ("host", "x86"):
    globals().update(backend_tests(_lite_backend, __name__))


@pytest.fixture(autouse=True)
def _folder_of_models(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ.setdefault("ONNX_HOME", str(tmp_path_factory.getbasetemp() / "onnx"))


def test_every_line_that_leaves_out_matches_a_case() -> None:
    names = all_names(__name__)
    assert [line.pattern for line in left_out() if not fnmatch.filter(names, line.pattern)] == []


def test_few_cases_of_inference_are_left_out() -> None:
    names = all_names(__name__)

    def matching(is_inference: bool) -> set[str]:
        return {
            n for line in left_out() if line.is_inference is is_inference for n in fnmatch.filter(names, line.pattern)
        }

    inference = len(names) - len(matching(False))
    assert len(names) > 1400
    assert len(matching(True)) <= _MOST_LEFT_OUT * inference, f"{len(matching(True))} of {inference}"


@pytest.mark.parametrize("name", sorted(excluded_tests(__name__)))
def test_what_is_left_out_does_not_pass(name: str) -> None:
    case, test = excluded_tests(__name__)[name]
    result = unittest.TestResult()
    case(test).run(result)
    assert not result.wasSuccessful() or result.skipped, f"{name} passes: take it out of backend_left_out.txt"
