"""The backend ``x86``: the kernels of lite-cpu on the processor at hand."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lite_core.backend import Device, Options, ReportsFindings, TakesOptions, Unavailable
from lite_core.errors import BackendUnavailableError
from lite_core.plugins.options import check_known
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


class X86Backend(CpuBackend, ReportsFindings, TakesOptions):
    """Runs partitions on the processor, where that is an x86-64 of level v2 or above."""

    def __init__(self) -> None:
        super().__init__("x86")
        self._choosing = threading.Lock()
        self._choices: dict[MklSetting, Choice] = {}

    def machine(self) -> Machine:
        """The processor as the kernels see it.

        Raises:
            BackendUnavailableError: there is no device, see :meth:`probe`.
        """
        missing = self._missing()
        if missing:
            raise BackendUnavailableError(f"backend 'x86' is not available: {missing.reason}. {missing.remedy}")
        return detect.this_machine()

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_known(self.name, options, KNOWN_OPTIONS)

    def external_sgemm(self, options: Options) -> ExternalSgemm | None:
        """MKL's, where it is found, and is measured faster than Lite's own kernels or always wanted."""
        return self._chosen(mkl_setting(options.own, os.environ)).sgemm

    def binding_options(self, options: Options) -> Mapping[str, str]:
        """``mkl``, where MKL computes whatever it can: programs that leave it out were compiled otherwise.

        The other settings need no mention: a program that calls MKL is refused where it is not to be called, and own
        kernels are right for all who do not insist on MKL.
        """
        setting = mkl_setting(options.own, os.environ)
        is_always_used = setting.value == "always" and self._chosen(setting).sgemm is not None
        return {"mkl": setting.value} if is_always_used else {}

    def probe(self) -> Sequence[Device] | Unavailable:
        """One device, the processor; its details are the level, features, cores and caches.

        Its speed is estimated, see :mod:`lite_x86.speed`: measuring would make every start slower.
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
            )
        ]

    def report(self) -> Sequence[str]:
        """Lines for ``lite doctor``: the processor, where MKL was looked for, and what was chosen."""
        devices = self.probe()
        if isinstance(devices, Unavailable):
            return []
        (device,) = devices
        setting = mkl_setting({}, os.environ)
        reason = self._chosen(setting).reason
        return [
            *(f"{key}: {value}" for key, value in device.details.items()),
            *_searched(setting).lines(),
            *([reason] if reason else []),
        ]

    def _chosen(self, setting: MklSetting) -> Choice:
        """What computes large matrix products, chosen once for each setting."""
        with self._choosing:
            if setting not in self._choices:
                from lite_x86.mkl_choice import choose

                self._choices[setting] = choose(setting, _searched(setting), self._share().library)
            return self._choices[setting]

    def _missing(self) -> Unavailable | None:
        """Why there is no device, if so."""
        if not detect.is_x86_64():
            return Unavailable(f"this is not a 64-bit x86 process but {platform.machine() or 'unknown'}", _NOT_X86)
        features = detect.this_processor().features
        if not features:
            return Unavailable(
                "the system does not say what the processor can do, and llvmlite, which does, is missing", _LLVM
            )
        lacking = detect.lacking("v2", features)
        if lacking:
            return Unavailable(f"the processor lacks {', '.join(lacking)} of x86-64-v2", _TOO_OLD)
        return None


def _searched(setting: MklSetting) -> mkl.Search:
    """The search for MKL; none is made for who does not want it."""
    return mkl.not_looked_for(setting.source) if setting.value == "never" else mkl.search()
