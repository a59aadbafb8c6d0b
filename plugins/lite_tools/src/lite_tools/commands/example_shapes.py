"""Examples of shapes for inputs whose sizes a model leaves open, for the command to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_core.errors import GraphError, InputError
from lite_core.ir import Dim, Graph, SymbolicDim, TensorType, evaluate_shape
from lite_core.ops.infer import specialize
from lite_tools.commands.open_batch import sizes_of_symbols

__all__ = ["example_shapes", "shape_text", "shape_words"]

#: Sizes of pictures and of everything else; a model that takes neither gets one of :func:`candidate_inputs`.
_PICTURE, _OTHER = 224, 16


def example_shapes(
    types: Mapping[str, TensorType], known: Mapping[str, Sequence[int]], graph: Graph | None = None
) -> dict[str, tuple[int, ...]]:
    """Return a shape for each input without a known one: a batch of 1, pictures of 224x224, 16 for other sizes.

    Args:
        types: the model's inputs.
        known: the shapes that are known; equal symbols get equal sizes.
        graph: the graph; if shape inference refuses the shapes, others that it accepts are searched.
    """
    sizes = sizes_of_symbols(types, known)
    for name, type_ in types.items():
        dims = () if name in known or type_.shape is None else type_.shape
        for axis, dim in enumerate(dims):
            for symbol in sorted(dim.symbols) if isinstance(dim, SymbolicDim) else ():
                sizes.setdefault(symbol, _size(axis, dims))
    shapes = {
        name: (1,) if type_.shape is None else evaluate_shape(type_.shape, sizes)
        for name, type_ in types.items()
        if name not in known
    }
    return _accepted(graph, known, shapes) if graph is not None else shapes


def shape_text(shape: Sequence[int]) -> str:
    """Return ``1x3x224x224``."""
    return "x".join(map(str, shape))


def shape_words(shapes: Mapping[str, Sequence[int]], option: str = "--shape") -> list[str]:
    """Return the words of a command line that give shapes."""
    return [word for name, shape in shapes.items() for word in (option, f"{name}={shape_text(shape)}")]


def _size(axis: int, dims: Sequence[Dim]) -> int:
    if axis == 0:
        return 1
    if len(dims) != 4:
        return _OTHER
    channels_last = dims[3] in (1, 3) and dims[1] not in (1, 3)
    return _PICTURE if axis in ((1, 2) if channels_last else (2, 3)) else _OTHER


def _accepted(
    graph: Graph, known: Mapping[str, Sequence[int]], shapes: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes, or others if shape inference refuses them and accepts others."""
    from lite_tools.checking import random_inputs  # not at the top: few commands need it

    try:
        specialize(graph, {**shapes, **known})
    except GraphError:
        try:
            arrays = random_inputs(graph, shapes={name: tuple(shape) for name, shape in known.items()})
        except (GraphError, InputError):
            return shapes
        return {name: arrays[name].shape for name in shapes}
    return shapes
