"""GridSample, which samples an image at arbitrary coordinates, and AffineGrid."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node
from lite_core.ops.evaluate import evaluate_op
from lite_opencl.chains import Chain, Operand
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.movement import integers
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.element_types import c_type
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["affine_grid", "grid_sample"]

Array = np.ndarray[Any, Any]

_LOCAL = (64, 1, 1)
_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}


def _refuse(node: Node) -> str | None:
    x, mode = node.inputs[0], ops.attributes_of(node)["mode"]
    if mode == "nearest" or x is None or x.dtype.is_floating:
        return None
    return f"{mode} interpolation of {x.dtype} is truncated, which needs float64; it is implemented for floating types"


@lowers("GridSample", refuse=_refuse)
def grid_sample(lowering: Lowering, group: Group) -> None:
    """Lower GridSample to one kernel for any number of spatial axes."""
    x, grid = (lowering.dense(lowering.tensor(group.input(i))) for i in (0, 1))
    result, attributes = lowering.target(group.output), group.attributes
    images, channels, *spatial = x.shape
    taps = _TAPS[attributes["mode"]]
    types = [c_type(t.dtype) for t in ((x, grid) if taps > 1 else (x,))]
    defines: list[tuple[str, int | str]] = [
        ("RANK", len(spatial)),
        ("TAPS", taps),
        ("CORNERS", taps ** len(spatial)),
        (f"PADDING_{attributes['padding_mode']}", 1),
        ("SUM_TYPE", "double" if any(t.is_double for t in types) else types[0].compute),
    ]
    if attributes["align_corners"]:
        defines.append(("ALIGN_CORNERS", 1))
    kernel = KernelSource("grid_sample", "grid_sample", _LOCAL, tuple(defines), types_of(X=x, G=grid, Y=result))
    points = prod(grid.shape[1:-1])
    sizes = upload_table(lowering, np.array(spatial, np.int32))
    numbers = map(np.int32, (points, channels, images, prod(spatial)))
    flops = 2 * taps ** len(spatial) * result.size
    lowering.step(kernel, [result, x, grid, sizes, *numbers], (points, channels, images), flops=flops)


@lowers("AffineGrid", needs_numbers=True)
def affine_grid(lowering: Lowering, group: Group) -> None:
    """Lower AffineGrid: ``theta`` times coordinates, a sum of broadcast products, one for each column of ``theta``."""
    theta, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    rank = theta.shape[1]
    middle = (1,) * rank
    shape, strides = (theta.shape[0], *middle, rank), (theta.strides[0], *(0,) * rank, theta.strides[1])
    columns = [theta.view(shape, strides, theta.offset + c * theta.strides[2]) for c in range(rank + 1)]
    coordinates = _coordinates(lowering, group, theta.dtype)
    dtype = theta.dtype
    # Value 0 is the first column, value 1 its coordinates; then each other column is followed by its coordinates.
    # The last column is added without a product: its coordinates would be 1.
    steps = [Apply("Mul", (0, 1), dtype)]
    operands: list[Tensor] = [coordinates[0]]
    first = 2 * rank + 1
    for c in range(1, rank):
        operands += [columns[c], coordinates[c]]
        steps += [Apply("Mul", (2 * c, 2 * c + 1), dtype), Apply("Add", (first + 2 * c - 2, first + 2 * c - 1), dtype)]
    operands.append(columns[rank])
    steps.append(Apply("Add", (first + 2 * rank - 2, 2 * rank), dtype))
    chain = Chain(dtype, tuple(Operand(t.dtype, None) for t in operands), tuple(steps))
    lowering.elementwise(chain, columns[0], operands, target)


def _coordinates(lowering: Lowering, group: Group, dtype: DType) -> list[Tensor]:
    """Return the reference's coordinates of each axis, innermost first, which broadcast to [batch, *spatial, 1]."""
    size = integers(lowering, group.input(1))
    rank = len(size) - 2
    unit = np.eye(rank, rank + 1)[np.newaxis]
    (grid,) = evaluate_op(ops.get(group.head), [unit, np.array([1, 1, *size[2:]])], group.attributes)
    precision = np.float32 if dtype.is_half else dtype.numpy
    return [upload_table(lowering, grid[..., c : c + 1].astype(precision)) for c in range(rank)]
