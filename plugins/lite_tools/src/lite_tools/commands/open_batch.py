"""Models with an open batch: commands run them with a batch of 1, and say so."""

from __future__ import annotations

from collections.abc import Mapping

from lite_core.ir import TensorType

__all__ = ["open_batch_shapes"]


def open_batch_shapes(types: Mapping[str, TensorType]) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Return the shapes of inputs whose first dimension alone is open, with 1 for it, and a note about each.

    Args:
        types: the model's inputs.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    notes: list[str] = []
    for name, type_ in types.items():
        dims = type_.shape
        if dims and not isinstance(dims[0], int) and all(isinstance(dim, int) for dim in dims[1:]):
            shapes[name] = (1, *(int(dim) for dim in dims[1:]))  # type: ignore[arg-type]
            text = "x".join(map(str, shapes[name]))
            notes.append(f"input {name} leaves its batch open: 1 is taken; give another with --shape {name}={text}")
    return shapes, notes
