"""All backend tests of the ONNX project, on host and on x86.

Cases that are left out are listed in ``backend_left_out.txt``. Each line must be needed: it matches cases, and they
fail. Of the cases that inference can contain, only a small share may be left out.
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

_MAX_SHARE_LEFT_OUT = 0.05

#: The classes that `make test` runs; the others, and the cases that are left out, belong to the full tier.
_QUICK = {"OnnxBackendNodeModelTest_host"}

for _lite_backend in ("host", "x86"):
    for _name, _class in backend_tests(_lite_backend, __name__).items():
        globals()[_name] = _class if _name in _QUICK else pytest.mark.full("onnx")(_class)


@pytest.fixture(autouse=True)
def _folder_of_models(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ.setdefault("ONNX_HOME", str(tmp_path_factory.getbasetemp() / "onnx"))


def test_every_pattern_of_left_out_cases_matches_a_case() -> None:
    names = all_names(__name__)
    assert [line.pattern for line in left_out() if not fnmatch.filter(names, line.pattern)] == []


def test_few_cases_of_inference_are_left_out() -> None:
    names = all_names(__name__)
    matching: dict[bool, set[str]] = {True: set(), False: set()}
    for line in left_out():
        matching[line.is_inference].update(fnmatch.filter(names, line.pattern))
    share = len(matching[True]) / (len(names) - len(matching[False]))
    assert share <= _MAX_SHARE_LEFT_OUT


@pytest.mark.full("onnx")
@pytest.mark.parametrize("name", sorted(excluded_tests(__name__)))
def test_left_out_cases_fail(name: str) -> None:
    case, test = excluded_tests(__name__)[name]
    result = unittest.TestResult()
    case(test).run(result)
    assert not result.wasSuccessful() or result.skipped, f"{name} passes: take it out of backend_left_out.txt"
