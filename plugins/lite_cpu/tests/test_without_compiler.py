"""Without llvmlite saved programs run (see test_saved), and everything else reports the missing package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from levels import runnable_machines

_REMEDY = "compiling kernels needs llvmlite, which is not installed: pip install 'lite-cpu[compile]'"

_WITHOUT = """
import sys
sys.modules["llvmlite"] = None  # an attempt to find or import it fails
from lite_core import GraphBuilder
from lite_core.backend import Device, No, Options, Partition
from lite_cpu import X86_64_V2
from lite_cpu.backend import CpuBackend

class Level(CpuBackend):
    def machine(self):
        return X86_64_V2
    def probe(self):
        return [Device("level")]

b = GraphBuilder("small")
b.output(b.add("Relu", [b.input("x", "float32", [3])]), "y")
graph, backend, device = b.build(), Level("level"), Device("level")
print(backend.supports(graph.nodes[0], device).reason)
try:
    backend.compile(Partition("part", graph), device, Options())
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(not runnable_machines(), reason="not an x86-64 processor")
def test_backend_reports_the_missing_compiler() -> None:
    shown = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [_REMEDY, f"KernelCompileError {_REMEDY}"]
