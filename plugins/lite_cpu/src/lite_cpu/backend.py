"""Base class of CPU backends: everything except the description of the processor."""

from __future__ import annotations

import logging
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
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
from lite_core.saved_kernels import SavesKernels
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.machine import Machine

if TYPE_CHECKING:
    from lite_compiler.tournaments.table import ChoiceTable
    from lite_cpu.executable import CpuExecutable
    from lite_cpu.lowering.partition_analysis import PartitionAnalysis
    from lite_cpu.lowering.weights import WeightCache
    from lite_cpu.machine_code.library import KernelLibrary
    from lite_cpu.saved.file_kernels import KernelCollector
    from lite_cpu.templates.loop_programs import LoopPrograms
    from lite_cpu.templates.resizing import Resizing

__all__ = ["CpuBackend", "CpuDevice"]

logger = logging.getLogger("lite.cpu")

FindSgemm = Callable[[], ExternalSgemm | None]


@dataclass(frozen=True, slots=True)
class CpuDevice(Device):
    """A device with the machine that its sessions compile for.

    Attributes:
        machine: the machine; None for that of the backend.
        collector: receives the kernels of everything that is compiled for the device.
        of_file: the kernels of a model file, which stand in for the compiler.
    """

    machine: Machine | None = field(default=None, repr=False)
    collector: KernelCollector | None = field(default=None, repr=False, compare=False)
    of_file: _Shared | None = field(default=None, repr=False)


class CpuBackend(Backend, StatesCompatibility, RestoresState, SavesKernels, ABC):
    """A backend that runs partitions with the kernels of lite-cpu. A subclass describes the processor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = new_lock()
        self._shared: dict[Machine, _Shared] = {}

    @abstractmethod
    def machine(self) -> Machine:
        """Return the description of this machine's processor, for which kernels are compiled."""

    def machine_of(self, device: Device) -> Machine:
        """Return the description of a device's processor: of this machine's unless the device has another."""
        return (isinstance(device, CpuDevice) and device.machine) or self.machine()

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

        if missing_compiler() and not _of_file(device):
            return No(missing_compiler())
        from lite_cpu.lowering.registry import refusal

        values = [v for v in (*node.used(), *node.outputs) if v is not None]
        narrow = next((v.dtype for v in values if v.dtype.is_narrow), None)
        # Nibbles are only widened: constants in a product of their own, others as 8-bit integers.
        is_widened = node.qualified_op == "DequantizeLinear" and narrow in (DType.INT4, DType.UINT4)
        if narrow is not None and not is_widened:
            return No(f"it has no kernels for {narrow}")
        if not self.machine_of(device).half and any(v.dtype is DType.FLOAT16 for v in values):
            return No("the processor has no instruction that converts float16")
        reason = refusal(node)
        if reason is not None:
            return No(reason)
        for inner in (inner for body in node.subgraphs for inner in body.nodes):
            answer = self.supports(inner, device)
            if isinstance(answer, No):
                return No(f"{inner.describe()} in its body: {answer.reason}")
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        from lite_compiler.staging import HostExecutable, StagedExecutable, can_compile_whole
        from lite_cpu.bounded import bounded
        from lite_cpu.branches import with_fitting_branches
        from lite_cpu.control_shapes import unfit_nodes
        from lite_cpu.machine_code.objects import KernelCompileError, missing_compiler
        from lite_cpu.open_loop import open_loop

        of_file = _of_file(device)
        if missing_compiler() and not of_file:
            raise KernelCompileError(missing_compiler())

        def compile_static(
            graph: Graph, identity: PartitionIdentity | None = None, *, is_stage: bool = False
        ) -> CpuExecutable:
            return shared.compile(graph, relevant, find_sgemm, identity, collector, is_stage=is_stage)

        collector = device.collector if isinstance(device, CpuDevice) else None
        shared, relevant = of_file or self._share(self.machine_of(device)), self._relevant_options(options)
        find_sgemm: FindSgemm = partial(self.external_sgemm, options)
        if of_file:  # nothing else can be compiled, so there is nothing to choose from
            relevant, find_sgemm = replace(relevant, tune=False), no_external_sgemm
        graph = with_fitting_branches(part.graph)
        if can_compile_whole(graph, unfit_nodes) or bounded(graph) or open_loop(graph):
            return compile_static(graph, part.identity if graph is part.graph else None)

        def compile_data_dependent(graph: Graph) -> Executable:
            if bounded(graph) or open_loop(graph):
                return compile_stage(graph)
            if not graph.nodes[0].subgraphs:
                return HostExecutable(graph)
            # NOTE: the kernels in a model's file are those of bodies that are compiled for each of their sizes.
            growing = None if of_file or collector else shared.growing_loop(graph, relevant, find_sgemm, part.identity)
            return growing or control_executable(graph, compile_body)

        def compile_body(graph: Graph) -> Executable:
            if can_compile_whole(graph, unfit_nodes):
                return compile_stage(graph)
            return StagedExecutable(graph, HostMemory(), compile_stage, unfit_nodes, compile_data_dependent)

        from lite_cpu.bodies import control_executable
        from lite_cpu.saved.file_kernels import MissingKernelError

        def compile_stage(graph: Graph) -> Executable:
            try:
                return compile_static(graph, is_stage=True)
            except MissingKernelError as error:
                if not (is_made and of_file):
                    raise
                logger.warning("%s: nodes whose sizes depend on data run on host: %s", part.name, error)
                return HostExecutable(graph)

        is_made = False
        executable = StagedExecutable(graph, HostMemory(), compile_stage, unfit_nodes, compile_data_dependent)
        is_made = True  # from now on, the nodes can no longer move to another backend
        return executable

    def compiler_line(self) -> str:
        """Return the line for `lite doctor` about this environment's compiler."""
        from lite_cpu.machine_code.llvm import missing_compiler

        return f"compiles here: {f'no: {missing_compiler()}; prepared files run' if missing_compiler() else 'yes'}"

    def kernel_counts(self) -> tuple[int, int, float]:
        """Return how many kernels this process found in the cache and compiled, and the seconds spent compiling."""
        with self._lock:
            counts = [shared.library.cache.statistics for shared in self._shared.values()]
        return sum(c.hits for c in counts), sum(c.misses for c in counts), sum(c.compile_seconds for c in counts)

    def collecting(self, device: Device) -> CpuDevice:
        """Return the device with a collector of all kernels that are compiled for it."""
        from lite_cpu.saved.file_kernels import KernelCollector

        known = {f.name: getattr(device, f.name) for f in fields(device)}
        return CpuDevice(**{**known, "machine": self.machine_of(device), "collector": KernelCollector()})

    def saved_kernels(self, device: Device) -> Sequence[bytes]:
        """Return the kernels that were compiled for a collecting device, as pieces for :meth:`with_kernels`."""
        collector = device.collector if isinstance(device, CpuDevice) else None
        return [] if collector is None else collector.pieces(self._share(self.machine_of(device)).library)

    def with_kernels(self, pieces: Sequence[memoryview], device: Device) -> Device:
        """Return the device with the kernels of a model file; unchanged if this environment compiles.

        Raises:
            SavedStateError: the pieces are damaged.
        """
        from lite_cpu.machine_code.llvm import missing_compiler

        if not missing_compiler():
            return device
        from lite_cpu.saved.file_kernels import FileLibrary

        library = FileLibrary(pieces)
        # The weights are those of the prepared plans.
        of_file = _Shared(library, self._share().weights, "")
        known = {f.name: getattr(device, f.name) for f in fields(device)}
        return CpuDevice(**{**known, "machine": library.machine, "of_file": of_file})

    def compatibility(self, device: Device, options: Options) -> str:
        """Return a text that must be equal for saved programs to be used: version of the code, options."""
        from lite_cpu.saved.frame import compatibility

        return compatibility(self._relevant_options(options))

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> CpuExecutable | Stale:
        """Restore an executable from its saved pieces, without lowering, packing or compiling."""
        compatible, find_sgemm = self.compatibility(device, options), partial(self.external_sgemm, options)
        graph = part.graph
        if any(node.subgraphs for node in graph.nodes):
            # Imported late: few models have control nodes.
            from lite_cpu.branches import with_fitting_branches

            graph = with_fitting_branches(graph)
        return self._share().restore(pieces, graph, options, compatible, find_sgemm)

    def _relevant_options(self, options: Options) -> Options:
        """Return the session's options without those of the backend's own options that programs do not depend on."""
        return replace(options, own=self.binding_options(options))

    def _share(self, machine: Machine | None = None) -> _Shared:
        from lite_cpu.lowering.weights import WeightCache
        from lite_cpu.machine_code.library import KernelLibrary

        machine = machine or self.machine()
        with self._lock:
            if machine not in self._shared:
                library = KernelLibrary(machine, runs_here=self.runs_here(machine))
                self._shared[machine] = _Shared(library, WeightCache(), self.processor())
            return self._shared[machine]


def _of_file(device: Device) -> _Shared | None:
    """Return the kernels of a model file that stand in for the compiler, if the device has any."""
    return device.of_file if isinstance(device, CpuDevice) else None


class _Shared:
    """Compiled kernels, packed weights and analyses by identity, shared by all partitions for one machine."""

    def __init__(self, library: KernelLibrary, weights: WeightCache, processor: str) -> None:
        self.library = library
        self.weights = weights
        self._processor = processor
        self._lock = new_lock()
        self._choices: ChoiceTable | None = None
        self._analyses: weakref.WeakKeyDictionary[PartitionIdentity, PartitionAnalysis] = weakref.WeakKeyDictionary()
        #: What makes executables for other sizes, by the partitions' identities.
        self._resizing: weakref.WeakKeyDictionary[PartitionIdentity, Resizing] = weakref.WeakKeyDictionary()
        #: The programs of loops whose carried values grow, by the partitions' identities.
        self._loops: weakref.WeakKeyDictionary[PartitionIdentity, list[LoopPrograms]] = weakref.WeakKeyDictionary()
        self._peak_flops = 0.0

    def compile(
        self,
        graph: Graph,
        options: Options,
        find_sgemm: FindSgemm,
        identity: PartitionIdentity | None = None,
        collector: KernelCollector | None = None,
        *,
        is_stage: bool = False,
    ) -> CpuExecutable:
        """Compile a graph. A stage keeps what makes executables for its other sizes, which a session else keeps."""
        from lite_cpu.allocator import return_freed_memory
        from lite_cpu.bounded import BoundedExecutable, bounded
        from lite_cpu.executable import CpuExecutable, ForeignExecutable
        from lite_cpu.lowering.compile import compile_graph
        from lite_cpu.lowering.partition_analysis import PartitionAnalysis
        from lite_cpu.open_loop import OpenLoopExecutable, open_loop
        from lite_cpu.runtime import usable_threads
        from lite_cpu.templates.resizing import BoundedResizing, Resizing

        analysis = PartitionAnalysis() if is_stage else None
        if identity is not None:
            analysis = self._analyses.setdefault(identity, PartitionAnalysis())
        choices = self.choices()
        sized = bounded(graph)
        wide = sized.graph if sized else open_loop(graph) or graph
        compiled = compile_graph(wide, options, self.library, self.weights, find_sgemm, analysis, choices)
        if collector is not None:
            collector.add(compiled.kernels)
        return_freed_memory()
        threads = usable_threads(options.threads)
        if not self.library.runs_here:
            return ForeignExecutable(compiled, threads, graph)
        if wide is not graph and not sized:
            return OpenLoopExecutable(compiled, threads, self.peak_flops, graph)
        executable = (
            BoundedExecutable(compiled, threads, self.peak_flops, sized)
            if sized
            else CpuExecutable(compiled, threads, self.peak_flops)
        )
        if analysis is None or options.tune:
            return executable
        resizing = graph, options, (self.library, self.weights, find_sgemm, analysis, choices), threads, self.peak_flops
        if is_stage:
            made = BoundedResizing(sized, *resizing) if sized else Resizing(*resizing)
            executable.resize = lambda: made.resized
        elif identity is not None and not sized:
            if identity not in self._resizing:
                self._resizing[identity] = Resizing(*resizing)
            executable.resize = weakref.WeakMethod(self._resizing[identity].resized)
        return executable

    def growing_loop(
        self, graph: Graph, options: Options, find_sgemm: FindSgemm, identity: PartitionIdentity | None
    ) -> Executable | None:
        """Return the executable of a Loop whose carried values grow; None for other nodes."""
        from lite_cpu.growing_loop import growing_loop
        from lite_cpu.lowering.partition_analysis import PartitionAnalysis
        from lite_cpu.runtime import usable_threads

        if not self.library.runs_here:
            return None
        arguments = self.library, self.weights, find_sgemm, PartitionAnalysis(), self.choices()
        known = [] if identity is None else self._loops.setdefault(identity, [])
        return growing_loop(graph, replace(options, tune=False), arguments, usable_threads(options.threads), known)

    def restore(
        self,
        pieces: Sequence[memoryview],
        graph: Graph,
        options: Options,
        compatibility: str,
        find_sgemm: FindSgemm,
    ) -> CpuExecutable | Stale:
        from lite_cpu.bounded import BoundedExecutable, bounded
        from lite_cpu.executable import CpuExecutable
        from lite_cpu.open_loop import OpenLoopExecutable, open_loop
        from lite_cpu.runtime import usable_threads
        from lite_cpu.saved.restoring import restore_program

        sized = bounded(graph)
        wide = sized.graph if sized else open_loop(graph) or graph
        restored = restore_program(pieces, wide, options.threads, compatibility, self.weights, find_sgemm)
        if isinstance(restored, Stale):
            return restored
        if options.tune and restored.tuned.device != self.choices().device:
            return Stale("it was saved without measuring on this processor which kernels are fastest")
        if restored.tuned.choices and restored.tuned.device == self.choices().device:
            self.choices().offer(restored.tuned.choices)
        threads = usable_threads(options.threads)
        if sized:
            return BoundedExecutable(restored, threads, self.peak_flops, sized)
        if wide is not graph:
            return OpenLoopExecutable(restored, threads, self.peak_flops, graph)
        return CpuExecutable(restored, threads, self.peak_flops)

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
