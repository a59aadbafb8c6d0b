"""One file for a GPU and the processor, on a device without OpenCL drivers, with a broken one, and with PoCL."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import MakePython

from lite_tools.conversion import convert

GOLDENS = Path(__file__).parents[1] / "models/goldens/tiny_conv"

RUN = """
import json, sys
import numpy as np
import lite_core as lite
session = lite.load(sys.argv[1], saved="trust")
with np.load(sys.argv[2]) as inputs, np.load(sys.argv[3]) as answers:
    found = session.run(dict(inputs))
    difference = max(float(np.abs(found[name] - answers[name]).max()) for name in answers.files)
print(json.dumps({"devices": session.devices, "log": session.selection_log, "difference": difference}))
"""


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for OpenCL and ARM, in this order."""
    target = tmp_path_factory.mktemp("opencl") / "model.lite"
    convert(GOLDENS / "legacy", target, "opencl,arm", verify=False)
    return target


def arguments(file: Path) -> list[str]:
    return ["-c", RUN, str(file), str(GOLDENS / "inputs.npz"), str(GOLDENS / "legacy/outputs.npz")]


@pytest.mark.parametrize("drivers", ["none", "broken"])
def test_without_a_working_driver_the_processor_runs_it(
    arm: MakePython, file: Path, drivers: str, tmp_path: Path
) -> None:
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    if drivers == "broken":
        (tmp_path / "libbroken.so").write_text("no library")
        (vendors / "broken.icd").write_text(f"{tmp_path / 'libbroken.so'}\n")
    found = json.loads(arm().run(*arguments(file), variables={"QEMU_SET_ENV": f"OCL_ICD_VENDORS={vendors}"}))
    assert found["devices"] == ["arm"]
    assert found["difference"] < 1e-5
    (reason,) = (line for line in found["log"] if line.startswith("opencl: "))
    assert "not available" in reason
    assert str(vendors) in reason


@pytest.mark.full("arm")
def test_with_a_driver_opencl_runs_it(arm: MakePython, file: Path) -> None:
    python = arm()
    environment = python.environment / "bin/python-opencl"
    if not environment.exists():
        pytest.skip("PoCL for ARM is not there: python scripts/arm_environment.py --with opencl")
    done = subprocess.run([environment, *arguments(file)], capture_output=True, text=True, env=python.variables)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["devices"] == ["opencl"]
    assert found["difference"] < 1e-5
