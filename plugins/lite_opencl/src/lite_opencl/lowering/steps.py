"""Steps of a partition before memory is planned, and their emitter."""

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

#: An argument of a step. A tensor becomes two arguments of the kernel, buffer and offset of its first element.
Argument = Tensor | ConstantImage | np.generic

#: Kernels count the elements of a tensor in 32 bits.
_MAX_ELEMENTS = 2**31 - 1


@dataclass(slots=True)
class PlannedStep:
    """A call of a kernel before memory is planned.

    Attributes:
        kernel: the kernel to run.
        arguments: in the order of its parameters.
        global_size: work items in each of three dimensions, multiples of the kernel's work group.
        results: positions of the tensors that it writes; it reads all others.
        flops: number of floating-point operations.
        label: its name in profiles.
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
        """Bytes of all tensors; elements that are repeated by broadcasting are counted once."""
        return sum(t.distinct_bytes for t in self.tensors)


@dataclass
class StepEmitter:
    """An emitter of steps, which also allocates the tensors between them.

    Attributes:
        device: the device that runs the steps.
        steps: the steps so far.
    """

    device: FoundDevice
    steps: list[PlannedStep] = field(default_factory=list, kw_only=True)
    #: Names of the nodes that are being lowered.
    _names: tuple[str, ...] = field(default=(), kw_only=True)

    def allocate(self, shape: Sequence[int], dtype: DType) -> Tensor:
        """Return a dense tensor in the arena."""
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
        """Emit a step that runs a kernel.

        Args:
            kernel: the kernel to run.
            arguments: in the order of its parameters.
            items: work items in up to three dimensions; rounded up to work groups, so the kernel must check bounds.
            results: positions in ``arguments`` of the tensors that it writes.
            flops: number of floating-point operations.
            label: its name in profiles; the kernel's name by default.
        """
        if not prod(items):
            return
        counts = [*items, 1, 1][:3]
        x, y, z = (-(-count // size) * size for count, size in zip(counts, kernel.local))
        self.steps.append(
            PlannedStep(kernel, list(arguments), (x, y, z), tuple(results), flops, label or kernel.name, self._names)
        )


def checked_size(shape: Sequence[int], dtype: DType) -> int:
    """Return the number of elements of a tensor.

    Raises:
        ExecutionError: there are more elements than kernels can count.
    """
    size = prod(shape)
    if size > _MAX_ELEMENTS:
        raise ExecutionError(
            f"a tensor {dtype}{list(shape)} has {size} elements; kernels count up to {_MAX_ELEMENTS} of them\n"
            "run smaller inputs, or another backend"
        )
    return size
