"""Names that an exporter gave to several dimensions although their sizes may differ.

A name promises that the sizes are equal, and a session refuses others. Some exporters break the promise, and ONNX
Runtime does not hold them to it. So dimensions are renamed if it is certain that the model's operators need no equal
sizes: then all shapes can be inferred with a different size for each dimension of the name.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable

from lite_core.errors import GraphError
from lite_core.ir import Dim, Graph, SymbolicDim
from lite_core.ops.infer import infer_graph, specialize

__all__ = ["separate_independent_sizes"]

logger = logging.getLogger("lite.onnx")

#: The first of the sizes that are tried. Large odd numbers rarely have the sums and products of sizes in models.
_FIRST_SIZE = 1013
#: The position of an input, and an axis.
_InputAxis = tuple[int, int]


def separate_independent_sizes(graph: Graph) -> None:
    """Rename dimensions of inputs that share a name with another one and may nevertheless have another size.

    The first dimension of a name keeps it. Each change is logged.

    Args:
        graph: edited in place; its types are inferred again if a name changes.
    """
    if any(value.type.shape is None for value in graph.inputs):
        return
    axes = _named_axes(graph)
    names = [name for name, found in axes.items() if len(found) > 1]
    # Most models need all sizes to be equal, as their first operators show: inferring the shapes ends there.
    if names and not _may_differ(graph, names, axes):
        names = [name for name in names if len(names) > 1 and _may_differ(graph, [name], axes)]
    if not names:
        return
    taken = {symbol for value in graph.inputs for symbol in value.type.symbols}
    for name in names:
        for number, (position, axis) in enumerate(axes[name][1:], 2):
            new = f"{name}_{number}"
            while new in taken:
                new += "_"
            taken.add(new)
            value = graph.inputs[position]
            value.type = value.type.with_shape(_replaced(value.type.shape or (), axis, SymbolicDim.named(new)))
            why = "no operator needs the sizes of all dimensions of this name to be equal"
            logger.info("dimension %d of input %r is called %r, not %r: %s", axis, value.name, new, name, why)
    infer_graph(graph)


def _named_axes(graph: Graph) -> dict[str, list[_InputAxis]]:
    """Return where the inputs' shapes contain each name."""
    axes: dict[str, list[_InputAxis]] = defaultdict(list)
    for position, value in enumerate(graph.inputs):
        for axis, dim in enumerate(value.type.shape or ()):
            if isinstance(dim, SymbolicDim) and dim.name is not None:
                axes[dim.name].append((position, axis))
    return axes


def _may_differ(graph: Graph, names: Iterable[str], axes: dict[str, list[_InputAxis]]) -> bool:
    """Return True if every shape can be inferred with a different size for each dimension of these names.

    NOTE: where a shape depends on data, nothing is known about the sizes that meet there, and the names are believed.
    """
    symbols = sorted({symbol for value in graph.inputs for symbol in value.type.symbols})
    sizes = {symbol: _FIRST_SIZE + 2 * number for number, symbol in enumerate(symbols)}
    shapes = {value.name: tuple(value.type.substitute(sizes).shape or ()) for value in graph.inputs}
    others = (pair for name in names for pair in axes[name][1:])
    for number, (position, axis) in enumerate(others, len(symbols)):
        name = graph.inputs[position].name
        shapes[name] = _replaced(shapes[name], axis, _FIRST_SIZE + 2 * number)
    try:
        inference = specialize(graph, shapes)
    except GraphError:
        return False
    return all(inference.type_of(value).is_static for value in graph.defined())


def _replaced(shape: tuple[Dim, ...], axis: int, dim: Dim) -> tuple[Dim, ...]:
    return (*shape[:axis], dim, *shape[axis + 1 :])
