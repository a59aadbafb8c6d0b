"""Random inputs that fit a graph, for checks, benchmarks and comparisons."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from lite_core.errors import GraphError, InputError
from lite_core.ir import DType, Graph, SymbolicDim, Value, evaluate_shape
from lite_core.ops.infer import specialize

__all__ = ["candidate_inputs", "random_inputs"]

Array = np.ndarray[Any, Any]

logger = logging.getLogger("lite.random_inputs")

_LEADING_SIZES = (2, 1)
# Medium sizes first: large enough for a few strides and windows, small enough for the references.
_OTHER_SIZES = (32, 64, 8, 2, 1, 3, 16, 48, 128, 224, 256, 320, 416, 512, 640)
# Integers are indices, lengths or sizes; these half-open ranges suit small and large tables.
_INTEGER_RANGES = ((0, 4), (0, 2), (1, 2), (0, 1))
#: Some are numbers, which models may convert; many are none.
_TEXTS = np.array(["0", "1", "a", "lite", "1.5", ""], object)


def random_inputs(
    graph: Graph, seed: int = 0, *, shapes: Mapping[str, Sequence[int]] | None = None
) -> dict[str, Array]:
    """Return one array for each graph input, by name, in the order of the inputs.

    A symbol has the same size wherever it occurs: 2 if it only occurs as first dimension (a batch), otherwise the
    first of a list of common sizes that shape inference accepts. Floating-point inputs are standard normal, integers
    are small and not negative, booleans are random.

    Args:
        graph: the graph.
        seed: equal seeds result in equal arrays.
        shapes: fixed shapes, by input name.

    Raises:
        InputError: no sizes fit the graph; the message has the choices tried and the last reason.
    """
    return next(candidate_inputs(graph, seed, shapes=shapes))


def candidate_inputs(
    graph: Graph, seed: int = 0, *, shapes: Mapping[str, Sequence[int]] | None = None
) -> Iterator[dict[str, Array]]:
    """Yield inputs that shape inference accepts, most likely ones first; see :func:`random_inputs`.

    Inference does not detect every reason why a graph rejects an input: a caller that fails to run the graph should try
    the next candidate.

    Raises:
        InputError: there is no candidate; raised by the first iteration.
    """
    fixed = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    _check_shapes(graph, fixed)
    ranges = _INTEGER_RANGES if any(v.dtype.is_integer for v in graph.inputs) else _INTEGER_RANGES[:1]
    found, tried, reason = False, 0, ""
    for bindings, integers in product(list(_bindings(graph, fixed)), ranges):
        tried += 1
        generator = np.random.default_rng(seed)
        sizes = {v.name: fixed[v.name] if v.name in fixed else evaluate_shape(v.shape, bindings) for v in graph.inputs}
        arrays = {v.name: _random_array(v, sizes[v.name], generator, integers) for v in graph.inputs}
        values = {v.name: arrays[v.name] for v in graph.inputs if v.dtype.is_integer}
        try:
            specialize(graph, sizes, values)
        except GraphError as error:
            reason = str(error)
            logger.debug("input shapes %s do not fit: %s", sizes, error)
            continue
        found = True
        yield arrays
    if not found:
        declared = ", ".join(f"{v.name}: {v.type}" for v in graph.inputs)
        raise InputError(
            f"graph {graph.name!r}: none of {tried} choices of sizes for the inputs ({declared}) fits; the "
            f"last was rejected because: {reason}; give the shapes of the inputs"
        )


def _check_shapes(graph: Graph, fixed: Mapping[str, Sequence[int]]) -> None:
    names = [v.name for v in graph.inputs]
    for name in fixed:
        if name not in names:
            raise InputError(f"graph {graph.name!r} has no input {name!r}; it has: {', '.join(names)}")
    for value in graph.inputs:
        shape = fixed.get(value.name)
        if shape is None and value.type.shape is None:
            raise InputError(f"unknown rank of input {value.name!r} ({value.type}): give its shape")
        if shape is not None and not value.type.accepts(tuple(shape)):
            raise InputError(f"input {value.name!r} is {value.type}, the given shape is {list(shape)}")


def _bindings(graph: Graph, fixed: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Yield sizes for the symbols of inputs whose shapes are not fixed."""
    known: dict[str, int] = {}
    leading: dict[str, None] = {}
    other: dict[str, None] = {}
    for value in graph.inputs:
        for axis, dim in enumerate(value.type.shape or ()):
            if not isinstance(dim, SymbolicDim):
                continue
            if value.name in fixed:
                if dim.name is not None:
                    known[dim.name] = fixed[value.name][axis]
            else:
                names = sorted(dim.symbols)
                (leading if axis == 0 and dim.name else other).update(dict.fromkeys(names))
    free_leading = [n for n in leading if n not in known and n not in other]
    free_other = [n for n in other if n not in known]
    for size in _OTHER_SIZES if free_other else _OTHER_SIZES[:1]:
        for lead in _LEADING_SIZES if free_leading else _LEADING_SIZES[:1]:
            yield {**known, **dict.fromkeys(free_other, size), **dict.fromkeys(free_leading, lead)}


def _random_array(
    value: Value, shape: tuple[int, ...], generator: np.random.Generator, integers: tuple[int, int]
) -> Array:
    dtype = value.dtype
    if dtype.is_floating:
        return np.asarray(generator.standard_normal(shape)).astype(dtype.numpy)
    if dtype.is_integer:
        return np.asarray(generator.integers(*integers, size=shape)).astype(dtype.numpy)
    if dtype is DType.STRING:
        return _TEXTS[generator.integers(0, len(_TEXTS), size=shape)]
    return np.asarray(generator.integers(0, 2, size=shape)).astype(bool)
