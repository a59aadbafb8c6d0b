"""The steps of a program before memory is planned, and their emitter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from lite_compiler.tensors import dense_strides
from lite_core.ir import DType
from lite_cpu.kernels.base import Kernel
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.tensors import ARENA, Storage, Tensor

__all__ = ["PlannedStep", "StepEmitter"]


@dataclass(slots=True)
class PlannedStep:
    """A call of a kernel before memory is planned.

    ``overwrites`` are positions in ``tensors`` of operands whose memory the first tensor, the result, may reuse: the
    kernel reads each of their elements before it writes the element at the same address, and never again.
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

    @property
    def bytes(self) -> int:
        """The size of all tensors in bytes, counting elements repeated by broadcasting once."""
        return sum([tensor.distinct_bytes for tensor in self.tensors])


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
    ) -> None:
        """Emit a call of a kernel on work items 0 to ``tasks``, at least ``grain`` at a time."""
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
                )
            )
