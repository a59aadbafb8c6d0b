"""Without llvmlite saved programs run (see test_saved), and everything else reports the missing package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from backend_script import ASK_AND_COMPILE
from levels import runnable_machines

_REMEDY = "compiling kernels needs llvmlite, which is not installed: pip install 'lite-cpu[compile]'"

_WITHOUT = """
import sys
sys.modules["llvmlite"] = None  # an attempt to find or import it fails
"""


@pytest.mark.skipif(not runnable_machines(), reason="not an x86-64 processor")
def test_backend_reports_the_missing_compiler() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _WITHOUT + ASK_AND_COMPILE], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [_REMEDY, f"KernelCompileError {_REMEDY}"]
