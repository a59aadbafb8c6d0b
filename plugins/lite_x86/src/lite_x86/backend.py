"""The backend ``x86``: the kernels of lite-cpu, compiled for this processor."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lite_compiler.options import check_known
from lite_core.backend import (
    DescribesTarget,
    Device,
    Executable,
    HasLevels,
    Options,
    Partition,
    ReportsFindings,
    TakesOptions,
    Unavailable,
)
from lite_core.errors import BackendUnavailableError
from lite_core.forking import new_lock
from lite_core.stack import DescribesStack
from lite_cpu.backend import CpuBackend, CpuDevice
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.precisions import precision_details
from lite_cpu.tuning import Tuning, tuning_to_json
from lite_x86 import detect, speed, systems, tunings
from lite_x86.options import KNOWN_OPTIONS, MklSetting, mkl_setting

if TYPE_CHECKING:
    from lite_x86.mkl import Search
    from lite_x86.mkl_choice import Choice

__all__ = ["X86Backend"]

_NOT_X86 = "use a backend for this processor; `lite backends` shows what is installed"
_LLVM = "pip install 'lite-cpu[compile]'"
_TOO_OLD = "the backend `host` runs on every processor"


class X86Backend(CpuBackend, HasLevels, DescribesTarget, ReportsFindings, TakesOptions, DescribesStack):
    """Backend for x86-64 processors of level v2 or above."""

    def __init__(self) -> None:
        super().__init__("x86")
        self._choosing = new_lock()
        self._choices: dict[MklSetting, Choice] = {}

    def machine(self) -> Machine:
        """Return the description of the processor that kernels are compiled for, with the tuning in use.

        Raises:
            BackendUnavailableError: there is no device; see :meth:`probe`.
        """
        missing = self._missing()
        if missing:
            raise BackendUnavailableError(f"backend 'x86' is not available: {missing.reason}. {missing.remedy}")
        machine = detect.this_machine()
        return machine.with_tuning(tunings.in_use(machine))

    def machine_of(self, device: Device) -> Machine:
        """Return the machine of the device's level, with the device's tuning: one measured later changes no choice."""
        if isinstance(device, CpuDevice):
            return super().machine_of(device)
        return detect.machine_of_level(device.level) if device.level else self.machine()

    def runs_here(self, machine: Machine) -> bool:
        return detect.features_of(machine) <= detect.this_processor().features

    def processor(self) -> str:
        return detect.this_processor().model

    def device_of_level(self, level: str) -> Device:
        """Return a device with exactly the features of a level, such as ``x86-64-v3`` or ``x86-64-v4+vnni``.

        Raises:
            InputError: there is no such level; the message lists all.
        """
        machine = detect.machine_of_level(level)
        if not self._missing() and machine == detect.this_machine():
            machine = self.machine()
        features = detect.features_of(machine)
        return CpuDevice(self.name, name=level, score=10.0, features=features, level=machine.name, machine=machine)

    def target(self) -> Device:
        """Return a device of x86-64-v3, AVX2: models are compiled for it where there is no x86 processor."""
        return self.device_of_level(X86_64_V3.name)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_known(self.name, options, KNOWN_OPTIONS)

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        """Compile a partition; with ``tune``, the tuning is measured first if it is missing."""
        if options.tune and isinstance(device, CpuDevice) and device.level == self.machine().name:
            machine = detect.this_machine()
            device = replace(device, machine=machine.with_tuning(tunings.measured(machine)))
        return super().compile(part, device, options)

    def external_sgemm(self, options: Options) -> ExternalSgemm | None:
        """Return MKL's matrix product if MKL is installed and either faster than Lite's kernels or always wanted."""
        return self._choice(mkl_setting(options.own, os.environ)).sgemm

    def binding_options(self, options: Options) -> Mapping[str, str]:
        """Return the option ``mkl`` if it is ``always`` and MKL is installed, else nothing.

        Programs compiled with another setting may not call MKL, so they must not be used with ``always``. The other
        settings bind nothing: a program that calls MKL is rejected if MKL must not be called, and Lite's own kernels
        are correct for every session that does not require MKL.
        """
        setting = mkl_setting(options.own, os.environ)
        is_always_used = setting.value == "always" and self._choice(setting).sgemm is not None
        return {"mkl": setting.value} if is_always_used else {}

    def probe(self) -> Sequence[Device] | Unavailable:
        """Return one device, the processor, with its level, features, cores and caches as details.

        Its speed is the one that was measured with its tuning, or is estimated: see :mod:`lite_x86.speed`. Measuring it
        here would slow down every start.
        """
        missing = self._missing()
        if missing:
            return missing
        processor, machine, cores = detect.this_processor(), self.machine(), detect.usable_cores()
        details = {
            "level": machine.name,
            "features": ", ".join(sorted(processor.features & detect.KNOWN_FEATURES)),
            "cores": f"{cores} usable",
            "caches": processor.caches,
            "tuning": machine.tuning.source,
            **precision_details(machine),
        }
        if state := systems.experimental(systems.system()):
            details["system"] = state
        return [
            CpuDevice(
                self.name,
                name=processor.model,
                score=10.0,
                details=details,
                flops=speed.peak_flops(machine, processor.clock_hertz, cores),
                bandwidth=speed.bandwidth(machine, cores),
                launch_seconds=speed.launch_seconds(machine, cores),
                features=detect.features_of(machine),
                level=machine.name,
                machine=machine,
            )
        ]

    def stack(self, device: Device) -> Mapping[str, str]:
        """Return the versions of llvmlite and its LLVM, if they are installed, and of MKL if it may be called."""
        if find_spec("llvmlite") is None:
            return {}
        from llvmlite import __version__, binding

        found = {"llvmlite": __version__, "LLVM": ".".join(map(str, binding.llvm_version_info))}
        mkl_found = _search_for(mkl_setting({}, os.environ)).mkl
        return found if mkl_found is None else {**found, "MKL": mkl_found.version}

    def report(self) -> Sequence[str]:
        """Return the lines for ``lite doctor``: the processor, its tuning, tournaments, the search for MKL, its use."""
        devices = self.probe()
        if isinstance(devices, Unavailable):
            return []
        (device,) = devices
        setting = mkl_setting({}, os.environ)
        reason = self._choice(setting).reason
        return [
            *(f"{key}: {value}" for key, value in device.details.items()),
            *(f"  {line}" for line in self.machine_of(device).tuning.lines()),
            self.compiler_line(),
            f"measured: {self._share().choices().describe()}",
            *_search_for(setting).lines(),
            *([reason] if reason else []),
        ]

    def tuning(self) -> Mapping[str, Any]:
        """Return the numbers in use that choices between kernels and plans depend on, and their ``source``."""
        return tuning_to_json(self.machine().tuning)

    def tuning_lines(self) -> Sequence[str]:
        """Return descriptions of :meth:`tuning`, one a line."""
        tuning = self.machine().tuning
        return [f"tuning: {tuning.source}", *tuning.lines()]

    def measure_tuning(self, *, again: bool = True) -> None:
        """Measure and store the tuning, in one to two seconds; unless ``again``, only if it is missing."""
        machine = replace(self.machine(), tuning=Tuning())
        (tunings.measure if again else tunings.measured)(machine)

    def forget_tuning(self) -> bool:
        """Remove the stored tuning; return True if there was one."""
        return tunings.forget(detect.this_machine())

    def _choice(self, setting: MklSetting) -> Choice:
        """Return the implementation of large matrix products, chosen once for each setting."""
        with self._choosing:
            if setting not in self._choices:
                from lite_x86.mkl_choice import choose

                self._choices[setting] = choose(setting, _search_for(setting), self._share().library)
            return self._choices[setting]

    def _missing(self) -> Unavailable | None:
        """Return the reason why there is no device, or None if there is one."""
        if not detect.is_x86_64():
            return Unavailable(f"this is not a 64-bit x86 process but {platform.machine() or 'unknown'}", _NOT_X86)
        if (untested := systems.untested(systems.system(), os.environ)) is not None:
            return untested
        features = detect.this_processor().features
        if not features:
            return Unavailable(
                "the system does not report the processor's features, and llvmlite, which detects them, is missing",
                _LLVM,
            )
        missing = detect.missing_features("v2", features)
        if missing:
            return Unavailable(f"the processor lacks {', '.join(missing)} of x86-64-v2", _TOO_OLD)
        return None


def _search_for(setting: MklSetting) -> Search:
    """Search for MKL, unless the setting is ``never``."""
    from lite_x86 import mkl  # not at the top: few sessions need it

    return mkl.skipped_search(setting.source) if setting.value == "never" else mkl.search()
