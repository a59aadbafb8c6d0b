"""A system that refuses executable memory: an error that says so, or `host` runs instead with a note.

Linux refuses it to a process that asks for that (``PR_SET_MDWE``), as hardened services do. The refusal is inherited by
the program that the process then executes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest
from attempts import attempt, in_a_child, tiny_model
from disturbing import convert

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
REFUSE = f"import ctypes, os, sys; ctypes.CDLL(None).prctl({PR_SET_MDWE}, {PR_MDWE_REFUSE_EXEC_GAIN}, 0, 0, 0)"
WRAPPER = (sys.executable, "-c", f"{REFUSE}; os.execv(sys.argv[1], sys.argv[1:])")
ONLY_PROCESSOR = {"LITE_BACKENDS": "x86,host"}


def is_refused() -> dict[str, bool]:
    result = ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
    return {"is_refused": result == 0}


@pytest.fixture(scope="module", autouse=True)
def system() -> None:
    """Skip the tests where the system cannot refuse executable memory."""
    if not sys.platform.startswith("linux") or not in_a_child(is_refused).get("is_refused"):
        pytest.skip("only Linux since 6.3 refuses executable memory to a process that asks for it (PR_SET_MDWE)")


@pytest.mark.full("reliability")
def test_another_backend_runs_instead_with_a_note(tmp_path: Path) -> None:
    result = attempt(tiny_model(), "auto", wrapper=WRAPPER, LITE_CACHE_DIR=str(tmp_path), **ONLY_PROCESSOR)
    assert result.right, result
    assert result.devices == ["host"]
    assert any("x86" in note and "executable memory" in note for note in result.notes), result.notes


@pytest.mark.full("reliability")
def test_a_backend_that_was_named_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    result = attempt(tiny_model(), "x86", wrapper=WRAPPER, LITE_CACHE_DIR=str(tmp_path), **ONLY_PROCESSOR)
    assert result.expected, result
    for part in ("x86", "mprotect", os.strerror(13), "another backend"):
        assert part in result.error


@pytest.mark.full("reliability")
def test_a_prepared_file_runs_on_host_with_a_note(tmp_path: Path) -> None:
    convert(tmp_path, "x86")
    for backend in ("auto", "host"):
        result = attempt(tmp_path / "model.lite", backend, wrapper=WRAPPER, **ONLY_PROCESSOR)
        assert result.right, result
        assert result.devices == ["host"]
        assert backend == "host" or any("executable memory" in note for note in result.notes), result.notes
