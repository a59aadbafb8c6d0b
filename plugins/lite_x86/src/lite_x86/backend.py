"""The backend ``x86``: the kernels of lite-cpu, compiled for this processor."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lite_core.backend import Device, HasLevels, Options, ReportsFindings, TakesOptions, Unavailable
from lite_core.errors import BackendUnavailableError
from lite_core.forking import new_lock
from lite_core.plugins.options import check_known
from lite_core.stack import DescribesStack
from lite_cpu.backend import CpuBackend
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import Machine
from lite_x86 import detect, mkl, speed
from lite_x86.options import KNOWN_OPTIONS, MklSetting, mkl_setting

if TYPE_CHECKING:
    from lite_x86.mkl_choice import Choice

__all__ = ["X86Backend"]

_NOT_X86 = "use a backend for this processor; `lite backends` shows what is installed"
_LLVM = "pip install 'lite-cpu[compile]'"
_TOO_OLD = "the backend `host` runs on every processor"


class X86Backend(CpuBackend, HasLevels, ReportsFindings, TakesOptions, DescribesStack):
    """Backend for x86-64 processors of level v2 or above."""

    def __init__(self) -> None:
        super().__init__("x86")
        self._choosing = new_lock()
        self._choices: dict[MklSetting, Choice] = {}

    def machine(self) -> Machine:
        """Return the description of the processor that kernels are compiled for.

        Raises:
            BackendUnavailableError: there is no device; see :meth:`probe`.
        """
        missing = self._missing()
        if missing:
            raise BackendUnavailableError(f"backend 'x86' is not available: {missing.reason}. {missing.remedy}")
        return detect.this_machine()

    def machine_of(self, device: Device) -> Machine:
        """Return the machine of the device's level."""
        return detect.machine_of_level(device.level) if device.level else self.machine()

    def runs_here(self, machine: Machine) -> bool:
        return detect.features_of(machine) <= detect.this_processor().features

    def device_of_level(self, level: str) -> Device:
        """Return a device with exactly the features of a level, such as ``x86-64-v3`` or ``x86-64-v4+vnni``.

        Raises:
            InputError: there is no such level; the message lists all.
        """
        machine = detect.machine_of_level(level)
        return Device(self.name, name=level, score=10.0, features=detect.features_of(machine), level=machine.name)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_known(self.name, options, KNOWN_OPTIONS)

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

        Its speed is estimated, because measuring it would slow down every start; see :mod:`lite_x86.speed`.
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
        }
        return [
            Device(
                self.name,
                name=processor.model,
                score=10.0,
                details=details,
                flops=speed.peak_flops(machine, processor.clock_hertz, cores),
                bandwidth=speed.bandwidth(cores),
                launch_seconds=speed.LAUNCH_SECONDS,
                features=detect.features_of(machine),
                level=machine.name,
            )
        ]

    def stack(self, device: Device) -> Mapping[str, str]:
        """Return the versions of llvmlite, its LLVM, and MKL if it may be called."""
        from llvmlite import __version__, binding

        found = {"llvmlite": __version__, "LLVM": ".".join(map(str, binding.llvm_version_info))}
        mkl_found = _search_for(mkl_setting({}, os.environ)).mkl
        return found if mkl_found is None else {**found, "MKL": mkl_found.version}

    def report(self) -> Sequence[str]:
        """Return the lines for ``lite doctor``: the processor, the search for MKL, and whether MKL is used."""
        devices = self.probe()
        if isinstance(devices, Unavailable):
            return []
        (device,) = devices
        setting = mkl_setting({}, os.environ)
        reason = self._choice(setting).reason
        return [
            *(f"{key}: {value}" for key, value in device.details.items()),
            *_search_for(setting).lines(),
            *([reason] if reason else []),
        ]

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


def _search_for(setting: MklSetting) -> mkl.Search:
    """Search for MKL, unless the setting is ``never``."""
    return mkl.skipped_search(setting.source) if setting.value == "never" else mkl.search()
