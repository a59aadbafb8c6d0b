"""The emulated ARM Python that the tests in this folder run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PROCESSORS", "EmulatedPython"]

#: ARMv8.0, ARMv8.2 with float16 and dot products, and everything that qemu has.
PROCESSORS = ("cortex-a53", "cortex-a76", "max")


@dataclass(frozen=True)
class EmulatedPython:
    """A Python of the environment that ``scripts/arm_environment.py`` makes.

    Attributes:
        environment: folder of the environment.
        cache: folder for compiled kernels.
        processor: qemu's name of the processor.
        compiles: llvmlite can be imported, and a process of this machine compiles the kernels. Otherwise there is no
            compiler, as on most devices.
    """

    environment: Path
    cache: Path
    processor: str = "cortex-a76"
    compiles: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        found = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LITE_", "QEMU_"))}
        for name in ("LITE_CONFIG_DIR", "LITE_MODEL_CACHE"):
            found.update({name: os.environ[name]} if name in os.environ else {})
        found |= {"QEMU_CPU": self.processor, "LITE_CACHE_DIR": str(self.cache)}
        if self.compiles:
            found["PYTHONPATH"] = str(self.environment / "llvm")
            found["LITE_COMPILE_COMMAND"] = f"{sys.executable} -m lite_cpu.machine_code.compile_server"
        return found

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None, check: bool = True) -> str:
        """Run Python with arguments, and return its standard output.

        Raises:
            AssertionError: it ended with an error, unless ``check`` is False; with its standard error.
        """
        command = [str(self.environment / "bin/python"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=self.variables | dict(variables or {}))
        assert not check or done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-4000:]}"
        return done.stdout
