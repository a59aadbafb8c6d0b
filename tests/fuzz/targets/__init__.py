"""The targets of fuzzing: everything that reads bytes or texts that Lite did not make itself.

Each target is in a module of its own family, which is imported when the target is chosen.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

__all__ = ["INSTRUMENTED", "PLANTED", "TARGETS", "FuzzTarget", "find_target"]

#: The module and the class of each target.
TARGETS = {
    "onnx": "onnx_models:OnnxModel",
    "paddle_legacy": "paddle_models:LegacyModel",
    "paddle_pir": "paddle_models:PirModel",
    "paddle_lite": "paddle_models:PaddleLiteModel",
    "lite_file": "lite_files:LiteFile",
    "graph_json": "lite_files:GraphDocument",
    "saved_program": "saved_programs:SavedProgram",
    "kernel_cache": "caches:KernelEntry",
    "other_caches": "caches:OtherEntries",
    "configuration": "caches:Configuration",
    "input_files": "command_inputs:InputFile",
    "arguments": "command_inputs:Arguments",
    "measurements": "measurements:Measurement",
}

#: A target with one fault of each kind, to test the attack itself; it is attacked only by name.
PLANTED = {"planted": "planted:PlantedFaults"}

#: The packages whose branches guide the choice of inputs, beside the core.
INSTRUMENTED = {
    **dict.fromkeys(TARGETS, ("lite_core",)),
    "onnx": ("lite_core", "lite_onnx"),
    "paddle_legacy": ("lite_core", "lite_paddle"),
    "paddle_pir": ("lite_core", "lite_paddle"),
    "paddle_lite": ("lite_core", "lite_paddle"),
    "saved_program": ("lite_core", "lite_cpu"),
    "kernel_cache": ("lite_core", "lite_cpu"),
    "other_caches": ("lite_core", "lite_opencl", "lite_x86"),
    "input_files": ("lite_core", "lite_tools", "numpy.lib"),
    "arguments": ("lite_core", "lite_tools", "lite_paddle", "click"),
    "measurements": ("lite_core", "lite_tools"),
    "planted": ("fuzz.targets.planted",),
}


class FuzzTarget(ABC):
    """Something that reads inputs. ``__init__`` imports what it attacks, so that the imports can be instrumented.

    Attributes:
        allowed: the exceptions that an execution may end with.
        most_bytes: memory that an execution may add, whatever the size of the input. The passes may fold constants
            into 64 MiB.
    """

    most_bytes = 160 << 20
    allowed: tuple[type[Exception], ...]

    @abstractmethod
    def seeds(self) -> Iterable[bytes]:
        """Return small valid inputs, made by Lite's own code or the real exporters."""

    @abstractmethod
    def run(self, data: bytes, folder: Path) -> None:
        """Read an input as users of Lite do. Never executes code in it."""

    @abstractmethod
    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Return an input with one change."""

    def smaller(self, data: bytes) -> Iterable[bytes]:
        """Yield inputs that lack one part of the structure, to shrink a finding; nothing by default."""
        return ()


def find_target(name: str) -> FuzzTarget:
    """Return a target, with everything imported that it needs."""
    module, _, class_name = {**TARGETS, **PLANTED}[name].partition(":")
    target: FuzzTarget = getattr(import_module(f"fuzz.targets.{module}"), class_name)()
    return target
