"""The smallest sizes of inputs that a model accepts."""

from __future__ import annotations

from collections.abc import Mapping

from lite_core.errors import GraphError
from lite_core.ir import Graph, SymbolicDim, evaluate_shape
from lite_core.ops.infer import specialize

__all__ = ["smallest_shapes"]

#: Sizes that are tried for all open dimensions together. Networks often need one that strides divide.
_SIZES = (1, 2, 3, 4, 8, 16, 32, 64, 128, 224, 256, 320, 512, 640)


def smallest_shapes(graph: Graph, given: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return a shape for each input, as small as shape inference accepts.

    Args:
        graph: the graph.
        given: shapes that are fixed, by input name.

    Returns:
        ``given`` with the other shapes; ``given`` itself if nothing fits, or the rank of an input is open.
    """
    open_inputs = [value for value in graph.inputs if value.name not in given]
    if any(value.type.shape is None for value in open_inputs):
        return dict(given)
    known = {
        dim.name: size
        for value in graph.inputs
        if value.name in given
        for dim, size in zip(value.type.shape or (), given[value.name])
        if isinstance(dim, SymbolicDim) and dim.name is not None
    }
    symbols = {s for v in open_inputs for d in v.type.shape or () if isinstance(d, SymbolicDim) for s in d.symbols}
    for size in _SIZES:
        sizes = {**dict.fromkeys(symbols, size), **known}
        shapes = {v.name: given.get(v.name) or evaluate_shape(v.shape, sizes) for v in graph.inputs}
        try:
            specialize(graph, shapes)
        except GraphError:
            continue
        return {name: tuple(int(d) for d in shape) for name, shape in shapes.items()}
    return dict(given)
