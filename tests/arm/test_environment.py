"""The environment of the tests under emulation: an ARM Python with Lite, on the processor that is asked for."""

from __future__ import annotations

import json

import pytest
from conftest import MakePython
from emulated import PROCESSORS

SYSTEM = """
import json, platform, subprocess, sys
import numpy as np

def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

print(json.dumps({
    "machine": platform.machine(),
    "machine of a child": output_of(sys.executable, "-c", "import platform; print(platform.machine())"),
    "machine of other programs": output_of("uname", "-m"),
    "cpuinfo": open("/proc/cpuinfo").read(),
    "sum": float(np.arange(8.0) @ np.ones(8)),
}))
"""
COMPILED = """
import numpy as np, sys
import lite_core as lite
from lite_cpu.machine_code import remote
builder = lite.GraphBuilder("one")
builder.output(builder.add("Relu", [builder.input("x", "float32", [5])]))
session = lite.load(builder.build(), backend="arm", fallback="never")
(result,) = session.run({"x": np.array([-2, -1, 0, 1, 2], np.float32)}).values()
print(result.tolist(), len(remote._idle), "llvmlite.binding" in sys.modules)
"""


@pytest.mark.parametrize(("processor", "part"), list(zip(PROCESSORS, ("0xd03", "0xd0b", "0x051"))))
def test_python_and_its_children_run_on_the_emulated_processor(arm: MakePython, processor: str, part: str) -> None:
    found = json.loads(arm(processor).run("-c", SYSTEM))
    assert (found["machine"], found["machine of a child"], found["sum"]) == ("aarch64", "aarch64", 28.0)
    assert found["machine of other programs"] == "x86_64"
    assert f"CPU part\t: {part}" in found["cpuinfo"]


def test_lite_finds_its_packages(arm: MakePython) -> None:
    python = arm()
    backends = python.run("-m", "lite_core", "backends")
    assert "on aarch64" in backends
    assert "lite-x86" not in backends
    assert python.run("-c", "import lite_core, lite_cpu, lite_conformance; print('imported')").split() == ["imported"]


def test_kernels_are_compiled_by_a_process_of_this_machine(arm: MakePython) -> None:
    assert arm("cortex-a53", compiles=True).run("-c", COMPILED).split("] ") == ["[0.0, 0.0, 0.0, 1.0, 2.0", "1 False\n"]


def test_without_a_compiler_the_package_is_named(arm: MakePython) -> None:
    assert "pip install 'lite-cpu[compile]'" in arm().run("-m", "lite_core", "doctor")
