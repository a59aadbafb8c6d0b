"""The steps of a partition before memory is planned, and what emits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from lite_compiler.tensors import dense_strides
from lite_core.errors import ExecutionError
from lite_core.ir import DType
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.images import ConstantImage
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Storage, Tensor

__all__ = ["Argument", "PlannedStep", "StepEmitter", "checked_size"]

#: What a kernel is given: a tensor becomes its buffer and the offset of its first element, others become one argument.
Argument = Tensor | ConstantImage | np.generic

#: Kernels count elements of a tensor with 32 bits.
_MOST_ELEMENTS = 2**31 - 1


@dataclass(slots=True)
class PlannedStep:
    """A call of a kernel before memory is planned.

    Attributes:
        kernel: what to run.
        arguments: for its parameters, in order.
        global_size: work items in each of three dimensions, multiples of the kernel's work group.
        results: positions of the tensors it writes; all others it reads.
        flops: floating-point operations it does.
        label: what profiles call it.
        nodes: names of the nodes that it computes.
    """

    kernel: KernelSource
    arguments: list[Argument]
    global_size: tuple[int, int, int]
    results: tuple[int, ...]
    flops: int
    label: str
    nodes: tuple[str, ...]

    @property
    def tensors(self) -> list[Tensor]:
        arguments = (a.tensor if isinstance(a, ConstantImage) else a for a in self.arguments)
        return [a for a in arguments if isinstance(a, Tensor)]

    @property
    def bytes(self) -> int:
        """Bytes of all tensors, elements that are repeated by broadcasting counted once."""
        return sum(t.distinct_bytes for t in self.tensors)


@dataclass
class StepEmitter:
    """Emits steps, and makes the tensors between them.

    Attributes:
        device: to run on.
        steps: the steps so far.
    """

    device: FoundDevice
    steps: list[PlannedStep] = field(default_factory=list, kw_only=True)
    #: Names of the nodes that are being lowered.
    _names: tuple[str, ...] = field(default=(), kw_only=True)

    def allocate(self, shape: Sequence[int], dtype: DType) -> Tensor:
        """A dense tensor in the arena."""
        size = checked_size(shape, dtype)
        return Tensor(Storage(size * dtype.itemsize), dtype, tuple(shape), dense_strides(shape))

    def step(
        self,
        kernel: KernelSource,
        arguments: Sequence[Argument],
        items: Sequence[int],
        *,
        results: Sequence[int] = (0,),
        flops: int = 0,
        label: str = "",
    ) -> None:
        """Run a kernel.

        Args:
            kernel: what to run.
            arguments: for its parameters, in order.
            items: work items in up to three dimensions; rounded up to work groups, so the kernel must check.
            results: positions in ``arguments`` of the tensors that it writes.
            flops: floating-point operations it does.
            label: what profiles call it; the kernel's name when left out.
        """
        if not prod(items):
            return
        counts = [*items, 1, 1][:3]
        x, y, z = (-(-count // size) * size for count, size in zip(counts, kernel.local))
        self.steps.append(
            PlannedStep(kernel, list(arguments), (x, y, z), tuple(results), flops, label or kernel.name, self._names)
        )


def checked_size(shape: Sequence[int], dtype: DType) -> int:
    """How many elements a tensor has.

    Raises:
        ExecutionError: more than kernels can count.
    """
    size = prod(shape)
    if size > _MOST_ELEMENTS:
        raise ExecutionError(
            f"a tensor {dtype}{list(shape)} has {size} elements, kernels count up to {_MOST_ELEMENTS} of them\n"
            "run smaller inputs, or another backend"
        )
    return size
