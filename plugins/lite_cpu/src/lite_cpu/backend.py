"""Base class of CPU backends: everything except the description of the processor."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lite_core.backend import (
    Backend,
    Device,
    Executable,
    No,
    Options,
    Partition,
    PartitionIdentity,
    RestoresState,
    Stale,
    StatesCompatibility,
    Unavailable,
    Yes,
)
from lite_core.forking import new_lock
from lite_core.ir import DType, Graph, Node
from lite_core.memory import HostMemory
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import Machine

if TYPE_CHECKING:
    from lite_compiler.tournaments.table import ChoiceTable
    from lite_cpu.executable import CpuExecutable
    from lite_cpu.lowering.partition_analysis import PartitionAnalysis

__all__ = ["CpuBackend"]

FindSgemm = Callable[[], ExternalSgemm | None]


class CpuBackend(Backend, StatesCompatibility, RestoresState, ABC):
    """A backend that runs partitions with the kernels of lite-cpu. A subclass describes the processor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = new_lock()
        self._shared: dict[Machine, _Shared] = {}

    @abstractmethod
    def machine(self) -> Machine:
        """Return the description of this machine's processor, for which kernels are compiled."""

    def machine_of(self, device: Device) -> Machine:
        """Return the description of a device's processor: of this machine's unless the backend has several levels."""
        return self.machine()

    def runs_here(self, machine: Machine) -> bool:
        """Return True if this processor can run code for a machine."""
        return True

    @abstractmethod
    def probe(self) -> Sequence[Device] | Unavailable:
        """Return the devices of this machine."""

    def processor(self) -> str:
        """Return the name of this machine's processor, by which results of tournaments are kept; empty if unknown."""
        return ""

    def external_sgemm(self, options: Options) -> ExternalSgemm | None:
        """Return another library's function for large matrix products; called when the first of them is compiled."""
        return None

    def binding_options(self, options: Options) -> Mapping[str, str]:
        """Return the options that a saved program depends on, by name, among the backend's own options."""
        return {}

    def supports(self, node: Node, device: Device) -> Yes | No:
        from lite_cpu.machine_code.objects import missing_compiler

        if missing_compiler():
            return No(missing_compiler())
        from lite_cpu.lowering.registry import refusal

        values = [v for v in (*node.used(), *node.outputs) if v is not None]
        narrow = next((v.dtype for v in values if v.dtype.is_narrow), None)
        if narrow is not None:
            return No(f"it has no kernels for {narrow}")
        if not self.machine_of(device).half and any(v.dtype is DType.FLOAT16 for v in values):
            return No("the processor has no instruction that converts float16")
        reason = refusal(node)
        return Yes() if reason is None else No(reason)

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        from lite_compiler.staging import StagedExecutable, can_compile_whole
        from lite_cpu.machine_code.objects import KernelCompileError, missing_compiler

        if missing_compiler():
            raise KernelCompileError(missing_compiler())

        def compile_static(graph: Graph) -> CpuExecutable:
            return shared.compile(graph, relevant, find_sgemm)

        shared, relevant = self._share(self.machine_of(device)), self._relevant_options(options)
        find_sgemm = partial(self.external_sgemm, options)
        if can_compile_whole(part.graph):
            return shared.compile(part.graph, relevant, find_sgemm, part.identity)
        return StagedExecutable(part.graph, HostMemory(), compile_static)

    def compatibility(self, device: Device, options: Options) -> str:
        """Return a text that must be equal for saved programs to be used: version of the code, options."""
        from lite_cpu.saved.frame import compatibility

        return compatibility(self._relevant_options(options))

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> CpuExecutable | Stale:
        """Restore an executable from its saved pieces, without lowering, packing or compiling."""
        compatible, find_sgemm = self.compatibility(device, options), partial(self.external_sgemm, options)
        return self._share().restore(pieces, part.graph, options, compatible, find_sgemm)

    def _relevant_options(self, options: Options) -> Options:
        """Return the session's options without those of the backend's own options that programs do not depend on."""
        return replace(options, own=self.binding_options(options))

    def _share(self, machine: Machine | None = None) -> _Shared:
        machine = machine or self.machine()
        with self._lock:
            if machine not in self._shared:
                self._shared[machine] = _Shared(machine, self.runs_here(machine), self.processor())
            return self._shared[machine]


class _Shared:
    """Compiled kernels, packed weights and analyses by identity, shared by all partitions for one machine."""

    def __init__(self, machine: Machine, runs_here: bool, processor: str) -> None:
        from lite_cpu.lowering.weights import WeightCache
        from lite_cpu.machine_code.library import KernelLibrary

        self.library = KernelLibrary(machine, runs_here=runs_here)
        self.weights = WeightCache()
        self._processor = processor
        self._lock = new_lock()
        self._choices: ChoiceTable | None = None
        self._analyses: weakref.WeakKeyDictionary[PartitionIdentity, PartitionAnalysis] = weakref.WeakKeyDictionary()
        self._peak_flops = 0.0

    def compile(
        self, graph: Graph, options: Options, find_sgemm: FindSgemm, identity: PartitionIdentity | None = None
    ) -> CpuExecutable:
        from lite_cpu.executable import CpuExecutable
        from lite_cpu.lowering.compile import compile_graph
        from lite_cpu.lowering.partition_analysis import PartitionAnalysis
        from lite_cpu.runtime import usable_threads

        analysis = None if identity is None else self._analyses.setdefault(identity, PartitionAnalysis())
        choices = self.choices()
        compiled = compile_graph(graph, options, self.library, self.weights, find_sgemm, analysis, choices)
        return CpuExecutable(compiled, usable_threads(options.threads), self.peak_flops)

    def restore(
        self,
        pieces: Sequence[memoryview],
        graph: Graph,
        options: Options,
        compatibility: str,
        find_sgemm: FindSgemm,
    ) -> CpuExecutable | Stale:
        from lite_cpu.executable import CpuExecutable
        from lite_cpu.runtime import usable_threads
        from lite_cpu.saved.restoring import restore_program

        restored = restore_program(pieces, graph, options.threads, compatibility, self.weights, find_sgemm)
        if isinstance(restored, Stale):
            return restored
        if options.tune and restored.tuned.device != self.choices().device:
            return Stale("it was saved without measuring on this processor which kernels are fastest")
        if restored.tuned.choices and restored.tuned.device == self.choices().device:
            self.choices().offer(restored.tuned.choices)
        return CpuExecutable(restored, usable_threads(options.threads), self.peak_flops)

    def choices(self) -> ChoiceTable:
        """Return the results of tournaments on this processor with this tuning."""
        from lite_cpu.choices import choice_table

        with self._lock:
            if self._choices is None:
                self._choices = choice_table(self._processor, self.library.machine)
            return self._choices

    def peak_flops(self) -> float:
        """Return the floating-point operations per second of one core, measured once; 0 without a compiler."""
        from lite_cpu.machine_code.objects import missing_compiler

        if not self._peak_flops and not missing_compiler():
            from lite_cpu.peak import measure_peak_flops

            self._peak_flops = measure_peak_flops(self.library)
        return self._peak_flops
