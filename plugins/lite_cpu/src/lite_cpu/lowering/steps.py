"""The steps of a program before memory is planned, and their emitter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from lite_compiler.tensors import dense_strides
from lite_compiler.tracing.numbers import at_most
from lite_core.ir import DType
from lite_cpu.kernels.base import Kernel
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.tensors import ARENA, Storage, Tensor

__all__ = ["PlannedStep", "StepEmitter"]

#: A step that accesses at least so many bytes for each operation takes the time of these accesses.
_BYTES_OF_AN_OPERATION = 4


@dataclass(slots=True)
class PlannedStep:
    """A call of a kernel before memory is planned.

    ``overwrites`` are positions in ``tensors`` of operands whose memory the first tensor, the result, may reuse: the
    kernel reads each of their elements before it writes the element at the same address, and never again. A step that
    ``streams`` accesses each element about once, and ``flops`` are all its operations. For ``jump`` see
    :class:`lite_cpu.runtime.Step`.
    """

    kernel: Kernel
    tensors: list[Tensor]
    params: list[int]
    tasks: int
    grain: int
    flops: int
    label: str
    nodes: tuple[str, ...]
    scratch_bytes: int = 0
    overwrites: tuple[int, ...] = ()
    streams: bool = False
    jump: int = 0

    @property
    def bytes(self) -> int:
        """The size of all tensors in bytes, counting elements repeated by broadcasting once."""
        return sum([tensor.distinct_bytes for tensor in self.tensors])

    def grain_for(self, threads: int, l2_bytes: int) -> int:
        """Return the work items that a thread takes at a time: all, if that ends the step sooner.

        A step that hardly computes anything takes the time of its memory accesses. While its tensors fit into the
        second-level caches, one thread is faster than several that pass cache lines to and fro: scaling the channels of
        14x14x240 after their mean takes 2.5 instead of 7.4 microseconds with two threads (Zen 4).

        Args:
            threads: the number of threads.
            l2_bytes: size of one core's second-level cache.
        """
        own_bytes = self.bytes if self.streams and threads > 1 else 0
        return _grain(self.tasks, self.grain, self.flops, own_bytes, threads, l2_bytes)


def _grain(tasks: int, grain: int, flops: int, bytes: int, threads: int, l2_bytes: int) -> int:
    """Return what :meth:`PlannedStep.grain_for` does; ``bytes`` is 0 if a step does more than access its tensors."""
    whole = at_most(threads * bytes, 2 * l2_bytes, tasks, grain)
    whole = at_most(_BYTES_OF_AN_OPERATION * flops, bytes, whole, grain)
    return at_most(1, bytes, whole, grain)


@dataclass
class StepEmitter:
    """An emitter of steps, which also allocates the tensors between them.

    Attributes:
        library: the library that compiles and loads the kernels.
        steps: the steps emitted so far.
    """

    library: KernelLibrary
    steps: list[PlannedStep] = field(default_factory=list, kw_only=True)
    #: Names of the nodes that are being lowered.
    _names: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def machine(self) -> Machine:
        """The processor that kernels are compiled for."""
        return self.library.machine

    def allocate(self, shape: Sequence[int], dtype: DType, order: Sequence[int] | None = None) -> Tensor:
        """Return a dense tensor in the arena; ``order`` lists its dimensions from outermost to innermost."""
        shape = tuple(shape)
        storage = Storage(prod(shape) * dtype.itemsize, ARENA)
        return Tensor(storage, dtype, shape, dense_strides(shape, order))

    def step(
        self,
        kernel: Kernel,
        tensors: Sequence[Tensor],
        params: Sequence[int],
        tasks: int,
        grain: int = 1,
        *,
        flops: int = 0,
        scratch_bytes: int = 0,
        label: str = "",
        overwrites: Sequence[int] = (),
        streams: bool = False,
    ) -> None:
        """Emit a call of a kernel on work items 0 to ``tasks``; for the arguments see :class:`PlannedStep`."""
        if tasks:
            label = label or kernel.symbol
            self.steps.append(
                PlannedStep(
                    kernel,
                    list(tensors),
                    list(params),
                    tasks,
                    grain,
                    flops,
                    label,
                    self._names,
                    scratch_bytes,
                    tuple(overwrites),
                    streams,
                )
            )
