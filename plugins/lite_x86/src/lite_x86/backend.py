"""The backend ``x86``: the kernels of lite-cpu on the processor at hand."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lite_core.backend import Device, Unavailable
from lite_core.errors import BackendUnavailableError
from lite_cpu.backend import CpuBackend
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import Machine
from lite_x86 import detect, mkl, speed

if TYPE_CHECKING:
    from lite_x86.mkl_choice import Choice

__all__ = ["X86Backend"]

_NOT_X86 = "use a backend for this processor; `lite backends` shows what is installed"
_TOO_OLD = "the backend `host` runs on every processor"


class X86Backend(CpuBackend):
    """Runs partitions on the processor, where that is an x86-64 of level v2 or above."""

    def __init__(self) -> None:
        super().__init__("x86")
        self._choosing = threading.Lock()
        self._choice: Choice | None = None

    def machine(self) -> Machine:
        """The processor as the kernels see it.

        Raises:
            BackendUnavailableError: there is no device, see :meth:`probe`.
        """
        missing = self._missing()
        if missing:
            raise BackendUnavailableError(f"backend 'x86' is not available: {missing.reason}. {missing.remedy}")
        return detect.this_machine()

    def external_sgemm(self) -> ExternalSgemm | None:
        """MKL's, where it is found and measured faster than Lite's own kernels, or asked for by ``LITE_MKL=always``."""
        return self._chosen().sgemm

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
        reason = self._chosen().reason
        return [
            *(f"{key}: {value}" for key, value in device.details.items()),
            *mkl.search().lines(),
            *([reason] if reason else []),
        ]

    def _chosen(self) -> Choice:
        """What computes large matrix products, chosen once."""
        with self._choosing:
            if self._choice is None:
                from lite_x86.mkl_choice import choose

                self._choice = choose(mkl.search(), self._share().library, os.environ)
            return self._choice

    def _missing(self) -> Unavailable | None:
        """Why there is no device, if so."""
        if not detect.is_x86_64():
            return Unavailable(f"this is not a 64-bit x86 process but {platform.machine() or 'unknown'}", _NOT_X86)
        lacking = detect.lacking("v2", detect.this_processor().features)
        if lacking:
            return Unavailable(f"the processor lacks {', '.join(lacking)} of x86-64-v2", _TOO_OLD)
        return None
