"""The backend ``opencl``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lite_core.backend import (
    Backend,
    Device,
    Executable,
    Memory,
    No,
    Options,
    Partition,
    ProvidesMemory,
    ReportsFindings,
    RestoresState,
    Stale,
    StatesCompatibility,
    Unavailable,
    Yes,
)
from lite_core.errors import BackendUnavailableError
from lite_core.forking import new_lock
from lite_core.ir import DType, Graph, Node
from lite_core.stack import DescribesStack
from lite_opencl.device.devices import FoundDevice, describe, find_devices
from lite_opencl.device.process import lost_drivers

if TYPE_CHECKING:
    from lite_opencl.compiled.executable import OpenClExecutable
    from lite_opencl.device.runtime import DeviceRuntime

__all__ = ["OpenClBackend"]


class OpenClBackend(Backend, ProvidesMemory, StatesCompatibility, RestoresState, ReportsFindings, DescribesStack):
    """A backend for OpenCL devices; ``opencl`` is the best device, ``opencl:1`` the next."""

    name = "opencl"

    def __init__(self) -> None:
        self._lock = new_lock()
        self._found: list[FoundDevice] | Unavailable | None = None

    def probe(self) -> Sequence[Device] | Unavailable:
        """Return every device, the best first. Drivers are searched until devices are found, then never again."""
        found = self._devices()
        if isinstance(found, Unavailable):
            return found
        return [describe(device, self.name, index) for index, device in enumerate(found)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        from lite_opencl.lowering.registry import refusal

        values = [v for v in (*node.used(), *node.outputs) if v is not None]
        if any(v.dtype is DType.FLOAT64 for v in values) and not self._device(device).double:
            return No(f"{device.name} has no float64")
        narrow = next((v.dtype for v in values if v.dtype.is_narrow), None)
        if narrow is not None:
            return No(f"it has no kernels for {narrow}")
        reason = refusal(node)
        return Yes() if reason is None else No(reason)

    def memory(self, device: Device) -> Memory:
        return self._runtime(device).memory

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        from lite_compiler.staging import StagedExecutable, can_compile_whole
        from lite_opencl.lowering.compile import compile_graph
        from lite_opencl.lowering.registry import data_dependent_nodes

        runtime = self._runtime(device)

        def compile_static(graph: Graph) -> OpenClExecutable:
            return compile_graph(graph, options, runtime)

        if can_compile_whole(part.graph, data_dependent_nodes):
            return compile_static(part.graph)
        return StagedExecutable(part.graph, runtime.memory, compile_static, data_dependent_nodes)

    def compatibility(self, device: Device, options: Options) -> str:
        """Return the identity that saved programs depend on: device, driver and this package's code."""
        from lite_opencl.programs.sources import sources_version

        return f"{self._device(device).identity} | lite-opencl {sources_version()} | {options.precision}"

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        """Return an executable from its saved state, without lowering, packing or building from source."""
        from lite_opencl.compiled.executable import OpenClExecutable
        from lite_opencl.compiled.saved import restore
        from lite_opencl.lowering.half import computed_types, unsupported_precision

        runtime = self._runtime(device)
        restored = restore(pieces, part.graph, runtime, options)
        if isinstance(restored, Stale):
            return restored
        notes = [f"programs: {len(restored.programs)} from the model's file"]
        notes += unsupported_precision(options, runtime.found)
        return OpenClExecutable(restored, runtime, notes, computed_types(part.graph, options, runtime.found))

    def stack(self, device: Device) -> Mapping[str, str]:
        """Return the platform, which for PoCL names its LLVM, the device's version, its driver, and pyopencl."""
        from importlib import metadata  # not at the top: it takes 15 ms, and every start imports this module

        found = self._device(device)
        return {
            "platform": found.platform,
            "device": found.version,
            "driver": found.driver,
            "pyopencl": metadata.version("pyopencl"),
        }

    def report(self) -> Sequence[str]:
        """Return lines for ``lite doctor``: every device with its features, and the cached programs."""
        from lite_opencl.device.runtime import started_runtimes
        from lite_opencl.programs.binary_cache import BinaryCache, cache_folder
        from lite_opencl.tuning.table import TuningTable

        devices = self.probe()
        if isinstance(devices, Unavailable):
            return []
        return [
            *(f"{d.label}: {d.name}: " + "; ".join(f"{k} {v}" for k, v in d.details.items()) for d in devices),
            f"compiled programs: {BinaryCache(cache_folder()).describe()}",
            *(f"{d.label}, measured: {TuningTable(self._device(d), cache_folder()).describe()}" for d in devices),
            *(f"this process, {r.memory.space}: {r.programs.statistics}" for r in started_runtimes()),
        ]

    def kernel_counts(self) -> tuple[int, int, float]:
        """Return how many programs this process found and built, and the seconds spent building."""
        if "lite_opencl.device.runtime" not in sys.modules:  # nothing was built: do not load pyopencl
            return 0, 0, 0.0
        from lite_opencl.device.runtime import started_runtimes

        counts = [runtime.programs.statistics for runtime in started_runtimes()]
        return sum(c.hits for c in counts), sum(c.misses for c in counts), sum(c.build_seconds for c in counts)

    def _devices(self) -> list[FoundDevice] | Unavailable:
        if (lost := lost_drivers()) is not None:
            return lost
        with self._lock:
            if self._found is None or isinstance(self._found, Unavailable):
                self._found = find_devices()
            return self._found

    def _device(self, device: Device) -> FoundDevice:
        found = self._devices()
        if isinstance(found, Unavailable):
            raise BackendUnavailableError(f"backend 'opencl' is not available: {found.reason}. {found.remedy}")
        return found[device.index]

    def _runtime(self, device: Device) -> DeviceRuntime:
        from lite_opencl.device.runtime import runtime_of

        return runtime_of(self._device(device), device.label)
