"""Col2Im: overlapping blocks summed into an image."""

from __future__ import annotations

from math import prod

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.movement import integers
from lite_opencl.lowering.registry import lowers
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import types_of

__all__ = ["col2im"]

_LOCAL = (64, 1, 1)


def _refuse(node: Node) -> str | None:
    output = node.outputs[0]
    rank = None if output is None else output.type.rank
    return "it has more than two spatial dimensions" if rank is None or rank > 4 else None


@lowers("Col2Im", refuse=_refuse, needs_numbers=True)
def col2im(lowering: Lowering, group: Group) -> None:
    """Lower Col2Im: each pixel sums the blocks that contain it. A line is an image of height 1."""
    image, block = (integers(lowering, group.input(i)) for i in (1, 2))
    attributes, rank = group.attributes, len(image)
    strides, dilations = (list(attributes[name] or (1,) * rank) for name in ("strides", "dilations"))
    pads = list(attributes["pads"] or (0,) * (2 * rank))
    counts = [
        (n + pads[a] + pads[rank + a] - d * (k - 1) - 1) // s + 1
        for a, (n, k, s, d) in enumerate(zip(image, block, strides, dilations))
    ]
    lead = 2 - rank

    def pair(numbers: list[int], default: int = 1) -> list[int]:
        return [default] * lead + numbers

    source, result = lowering.dense(lowering.tensor(group.input(0))), lowering.target(group.output)
    pairs = {"BLOCK": pair(block), "STRIDE": pair(strides), "DILATION": pair(dilations)}
    defines = [(f"{name}_{axis}", n) for name, two in pairs.items() for axis, n in zip("HW", two)]
    if source.dtype is DType.BOOL:
        defines.append(("LOGICAL", 1))
    kernel = KernelSource("col2im", "col2im", _LOCAL, tuple(defines), types_of(X=source, Y=result))
    planes = prod(result.shape[:2])
    numbers = map(np.int32, (planes, *pair(image), *pair(counts), *pair(pads[:rank], 0)))
    lowering.step(kernel, [result, source, *numbers], (prod(image), planes), flops=result.size * prod(block))
