"""The windows of a convolution or pool, from a node whose shapes are known."""

from __future__ import annotations

from lite_core import ops
from lite_core.errors import GraphError
from lite_core.ir import Node, Value
from lite_core.ops.spatial import WindowAttributes, WindowAxis, elements_in_windows, window_axes

__all__ = ["WindowAxis", "elements_in_windows", "windows_of"]

#: The position of the weights among the inputs of convolutions.
_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3}
_POOLS = frozenset(("AveragePool", "LpPool", "MaxPool"))
_GLOBAL_POOLS = frozenset(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"))


def windows_of(node: Node) -> tuple[WindowAxis, ...]:
    """Return the windows along each spatial axis of a node: strides, dilations, and pads with ``auto_pad`` resolved.

    Each :class:`WindowAxis` has ``kernel``, ``stride``, ``dilation``, the padding ``begin`` and ``end``, the ``size``
    of the input and the ``count`` of windows, which is the size of the output. A library that counts windows itself
    takes ``fitting_end`` instead of ``end``, which also resolves ``ceil_mode``.

    The windows of a ConvTranspose are those of the convolution that it transposes. They slide over the output: ``size``
    is the size of the output, ``count`` that of the input, and ``begin`` and ``end`` are cropped from the output.
    A global pool has one window over everything.

    Args:
        node: Conv, ConvInteger, QLinearConv, DeformConv, ConvTranspose, AveragePool, MaxPool, LpPool or a global pool,
            whose inputs have static shapes.

    Raises:
        GraphError: the node is of another operator, or a shape is not static; names the node.
    """
    op, attributes = node.qualified_op, ops.attributes_of(node)
    if op not in _WEIGHTS and op not in _POOLS and op not in _GLOBAL_POOLS:
        known = ", ".join(sorted((*_WEIGHTS, *_POOLS, *_GLOBAL_POOLS)))
        raise GraphError(f"{node.describe()}: the operator has no windows; those with windows are {known}")
    sizes = _shape(node, 0)[2:]
    if op in _GLOBAL_POOLS:
        return tuple(WindowAxis(size, 1, 1, 0, 0, size, 1) for size in sizes)
    kernel = attributes["kernel_shape"] if op in _POOLS else _shape(node, _WEIGHTS[op])[2:]
    try:
        if op == "ConvTranspose":
            from lite_core.ops.transposed_convolution import transposed_windows

            return transposed_windows(attributes, kernel, sizes)
        window = WindowAttributes.read(attributes, len(kernel))
        return window_axes(window, kernel, sizes, bool(attributes.get("ceil_mode")))
    except GraphError as error:
        raise GraphError(f"{node.describe()}: {error}") from error


def _shape(node: Node, index: int) -> tuple[int, ...]:
    value: Value | None = node.inputs[index]
    if value is None or not value.type.is_static:
        raise GraphError(
            f"{node.describe()}: input {index} must have a static shape to have windows; ask in compile(), not before"
        )
    return tuple(value.shape)
