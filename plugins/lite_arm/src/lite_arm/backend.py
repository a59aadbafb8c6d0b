"""The backend ``arm``: the kernels of lite-cpu, compiled for 64-bit ARM processors."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from lite_arm import detect, levels, speed, systems
from lite_core.backend import DescribesTarget, Device, HasLevels, ReportsFindings, Unavailable
from lite_core.errors import BackendUnavailableError
from lite_core.processors import useful_threads
from lite_core.stack import DescribesStack
from lite_cpu.backend import CpuBackend, CpuDevice
from lite_cpu.machine import ARM_V8, Machine
from lite_cpu.precisions import precision_details

__all__ = ["ArmBackend"]

_NOT_ARM = "To run on ARM, convert the model here, and run the file there"
_NO_NEON = "the backend `host` runs on every processor"


class ArmBackend(CpuBackend, HasLevels, DescribesTarget, ReportsFindings, DescribesStack):
    """Backend for 64-bit ARM processors with NEON, which all but a few of them have."""

    def __init__(self) -> None:
        super().__init__("arm")

    def machine(self) -> Machine:
        """Return the description of the processor that kernels are compiled for.

        Raises:
            BackendUnavailableError: there is no device; see :meth:`probe`.
        """
        missing = self._missing()
        if missing:
            raise BackendUnavailableError(f"backend 'arm' is not available: {missing.reason}. {missing.remedy}")
        return detect.machine_for(detect.this_processor())

    def runs_here(self, machine: Machine) -> bool:
        return self._missing() is None and levels.features_of(machine) <= detect.this_processor().features

    def processor(self) -> str:
        return "" if self._missing() else detect.this_processor().model

    def device_of_level(self, level: str) -> Device:
        """Return a device of a level, such as ``arm-v8+dotprod``, or of a processor's, such as ``cortex-a76``.

        Raises:
            InputError: there is no such level; the message lists all.
        """
        machine = levels.machine_of_level(level)
        if self._missing() is None and machine.name == self.machine().name:
            machine = self.machine()
        return self._device(level, machine)

    def target(self) -> Device:
        """Return a device that every 64-bit ARM processor has: models converted elsewhere are compiled for it."""
        return self.device_of_level(ARM_V8.name)

    def probe(self) -> Sequence[Device] | Unavailable:
        """Return one device, the processor, with its level, features, cores and caches as details."""
        missing = self._missing()
        if missing:
            return missing
        processor, machine = detect.this_processor(), self.machine()
        cores = useful_threads()
        details = {
            "level": machine.name,
            "features": ", ".join(sorted(processor.features)),
            "cores": f"{cores} fast of {os.cpu_count()}",
            "caches": processor.caches,
            **precision_details(machine),
        }
        if state := systems.experimental(systems.system()):
            details["system"] = state
        flops = speed.peak_flops(processor.clock_hertz, cores)
        return [self._device(processor.model, machine, details, flops, speed.bandwidth(cores))]

    def stack(self, device: Device) -> Mapping[str, str]:
        """Return the versions of llvmlite and its LLVM, if this environment has them."""
        if find_spec("llvmlite") is None:
            return {}
        from llvmlite import __version__, binding

        return {"llvmlite": __version__, "LLVM": ".".join(map(str, binding.llvm_version_info))}

    def report(self) -> Sequence[str]:
        """Return the lines for ``lite doctor``: the processor, and whether this environment compiles."""
        devices = self.probe()
        if isinstance(devices, Unavailable):
            return []
        return [*(f"{key}: {value}" for key, value in devices[0].details.items()), self.compiler_line()]

    def _device(
        self,
        name: str,
        machine: Machine,
        details: Mapping[str, str] | None = None,
        flops: float = 0.0,
        bandwidth: float = 0.0,
    ) -> CpuDevice:
        return CpuDevice(
            self.name,
            name=name,
            score=10.0,
            details=details or {},
            flops=flops,
            bandwidth=bandwidth,
            launch_seconds=speed.LAUNCH_SECONDS,
            features=levels.features_of(machine),
            level=machine.name,
            machine=machine,
        )

    def _missing(self) -> Unavailable | None:
        """Return the reason why there is no device, or None if there is one."""
        if not detect.is_arm_64():
            return Unavailable(f"this is not a 64-bit ARM process but {platform.machine() or 'unknown'}", _NOT_ARM)
        if (untested := systems.untested(systems.system(), os.environ)) is not None:
            return untested
        if "neon" not in detect.this_processor().features:
            return Unavailable("the system does not report NEON (asimd)", _NO_NEON)
        return None
