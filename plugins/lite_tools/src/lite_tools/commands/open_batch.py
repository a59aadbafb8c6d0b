"""Shapes of inputs that the user has not given: those that others determine, and a batch of 1 where it is left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_core.ir import SymbolicDim, TensorType, evaluate_shape

__all__ = ["bound_shapes", "notes_on_batches", "open_batch_shapes", "sizes_of_symbols"]

Shapes = Mapping[str, Sequence[int]]


def open_batch_shapes(
    types: Mapping[str, TensorType], option: str = "--shape"
) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Return the shapes of inputs whose first dimension alone is open, with 1 for it, and a note about each.

    Args:
        types: the model's inputs.
        option: the option that gives another shape, for the notes.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    notes: list[str] = []
    for name, type_ in types.items():
        dims = type_.shape
        if dims and not isinstance(dims[0], int) and all(isinstance(dim, int) for dim in dims[1:]):
            shapes[name] = (1, *(int(dim) for dim in dims[1:]))  # type: ignore[arg-type]
            eight = "x".join(map(str, (8, *dims[1:])))
            notes.append(f"input {name} leaves its batch open: 1 is taken; for a batch of 8, {option} {name}={eight}")
    return shapes, notes


def notes_on_batches(
    types: Mapping[str, TensorType], known: Shapes, defaults: Shapes, option: str = "--shape"
) -> list[str]:
    """Return a note about each input whose batch is 1 because nothing says anything else.

    Args:
        types: the model's inputs.
        known: the shapes that are given.
        defaults: the shapes that are taken for inputs that are not given.
        option: the option that gives another shape.
    """
    decided = {*known, *defaults, *bound_shapes(types, known)}
    batch, notes = open_batch_shapes(types, option)
    return [note for name, note in zip(batch, notes) if name not in decided]


def bound_shapes(types: Mapping[str, TensorType], known: Shapes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the other inputs that follow from known ones, because they have the same symbols.

    Args:
        types: the model's inputs: ``a`` and ``b`` may both be ``float32[N, 4]``.
        known: the shapes of some of them: with ``a`` 3x4, ``b`` is 3x4.
    """
    sizes, found = sizes_of_symbols(types, known), {}
    for name, type_ in types.items():
        dims = () if type_.shape is None else type_.shape
        symbols = {symbol for dim in dims if isinstance(dim, SymbolicDim) for symbol in dim.symbols}
        if symbols and symbols <= sizes.keys() and name not in known:
            found[name] = evaluate_shape(dims, sizes)
    return found


def sizes_of_symbols(types: Mapping[str, TensorType], known: Shapes) -> dict[str, int]:
    """Return the sizes of named dimensions, given the shapes of some inputs; of two sizes, the first."""
    sizes: dict[str, int] = {}
    for name, shape in known.items():
        dims = types[name].shape if name in types else None
        for dim, size in zip(dims or (), shape):
            if isinstance(dim, SymbolicDim) and dim.name is not None:
                sizes.setdefault(dim.name, int(size))
    return sizes
