"""What CPU backends share: everything but which processor it is."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lite_core.backend import Device, Executable, Family, No, Options, Partition, Stale, Unavailable, Yes
from lite_core.ir import DType, Graph, Node
from lite_core.memory import HostMemory
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import Machine

if TYPE_CHECKING:
    from lite_cpu.executable import CpuExecutable
    from lite_cpu.lowering.structure import Structure

__all__ = ["CpuBackend"]


class CpuBackend(ABC):
    """A backend that runs partitions with the kernels of lite-cpu. A subclass describes the processor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._shared: _Shared | None = None

    @abstractmethod
    def machine(self) -> Machine:
        """The processor as the kernels see it."""

    @abstractmethod
    def probe(self) -> Sequence[Device] | Unavailable:
        """The devices of this machine."""

    def external_sgemm(self) -> ExternalSgemm | None:
        """A matrix product of another library that is faster for large ones; asked when the first one is compiled."""
        return None

    def supports(self, node: Node, device: Device) -> Yes | No:
        from lite_cpu.lowering.registry import refusal

        values = [v for v in (*node.used(), *node.outputs) if v is not None]
        narrow = next((v.dtype for v in values if v.dtype.is_narrow), None)
        if narrow is not None:
            return No(f"it has no kernels for {narrow}")
        if not self.machine().half and any(v.dtype is DType.FLOAT16 for v in values):
            return No("the processor has no instruction that converts float16")
        reason = refusal(node)
        return Yes() if reason is None else No(reason)

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        from lite_compiler.staging import StagedExecutable, is_static

        def compile_static(graph: Graph) -> CpuExecutable:
            return shared.compile(graph, options)

        shared = self._share()
        if is_static(part.graph):
            return shared.compile(part.graph, options, part.family)
        return StagedExecutable(part.graph, HostMemory(), compile_static)

    def compatibility(self, device: Device, options: Options) -> str:
        """What must be the same for saved programs to be used: the machine, this package's code, and the precision."""
        from lite_cpu.saved.frame import compatibility

        return compatibility(self._share().library.identity, options)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> CpuExecutable | Stale:
        """An executable from what one saved: nothing is lowered, packed or compiled."""
        return self._share().restore(pieces, part.graph, options, self.compatibility(device, options))

    def _share(self) -> _Shared:
        with self._lock:
            if self._shared is None:
                self._shared = _Shared(self.machine(), self.external_sgemm)
            return self._shared


class _Shared:
    """What partitions of a process share: compiled kernels, packed weights and, in a family, the structure."""

    def __init__(self, machine: Machine, external_sgemm: Callable[[], ExternalSgemm | None]) -> None:
        from lite_cpu.lowering.weights import WeightCache
        from lite_cpu.machine_code.library import KernelLibrary

        self.library = KernelLibrary(machine)
        self.weights = WeightCache()
        self._structures: weakref.WeakKeyDictionary[Family, Structure] = weakref.WeakKeyDictionary()
        self._external_sgemm = external_sgemm

    def compile(self, graph: Graph, options: Options, family: Family | None = None) -> CpuExecutable:
        from lite_cpu.executable import CpuExecutable
        from lite_cpu.lowering.compile import compile_graph
        from lite_cpu.lowering.structure import Structure
        from lite_cpu.runtime import usable_threads

        structure = None if family is None else self._structures.setdefault(family, Structure())
        compiled = compile_graph(graph, options, self.library, self.weights, self._external_sgemm, structure)
        return CpuExecutable(compiled, usable_threads(options.threads), self.library.peak_flops)

    def restore(
        self, pieces: Sequence[memoryview], graph: Graph, options: Options, compatibility: str
    ) -> CpuExecutable | Stale:
        from lite_cpu.executable import CpuExecutable
        from lite_cpu.runtime import usable_threads
        from lite_cpu.saved.restoring import restore_program

        restored = restore_program(
            pieces, graph, options.threads, compatibility, self.library, self.weights, self._external_sgemm
        )
        if isinstance(restored, Stale):
            return restored
        return CpuExecutable(restored, usable_threads(options.threads), self.library.peak_flops)
