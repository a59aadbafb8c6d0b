"""Checking a session's arguments: inputs, shapes, and arrays for outputs.

Inputs are converted only if that preserves every number. All problems are found before anything runs, and are reported
in one :class:`InputError`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from lite_core.checks import require
from lite_core.errors import GraphError, InputError
from lite_core.in_place import is_cache, is_same_place
from lite_core.ir import Array, SymbolicDim, TensorType, Value
from lite_core.ops.infer import bind_symbols

__all__ = ["check_out", "check_shapes", "overlapping", "ready_arrays", "to_arrays"]


def ready_arrays(wanted: Sequence[tuple[str, np.dtype[Any]]], given: object) -> list[Array] | None:
    """Return the input arrays in order if all can be used unchanged, or None if :func:`to_arrays` must check them.

    The fast path for nearly every call: a dict of arrays of the right element types. Shapes are not checked.

    Args:
        wanted: name and element type of each input.
        given: the caller's argument.
    """
    if type(given) is not dict or len(given) != len(wanted):
        return None
    arrays = []
    for name, dtype in wanted:
        array = given.get(name)
        if type(array) is not np.ndarray or array.dtype is not dtype or dtype.hasobject or not array.flags.aligned:
            return None
        arrays.append(array)
    return arrays


def to_arrays(
    model: str, inputs: Sequence[Value], given: Mapping[str, Any] | None, named: Mapping[str, Any]
) -> dict[str, Array]:
    """Return an array of the right type for every input.

    Args:
        model: the model's name, for messages.
        inputs: the graph's inputs.
        given: name to array, or to anything that NumPy converts to an array.
        named: further inputs given as keywords.

    Raises:
        InputError: lists all inputs that are missing, unknown, given twice, or of a wrong shape or element type.
    """
    require(isinstance(given, (Mapping, type(None))), "inputs", "a mapping of names to arrays, as {'x': array}", given)
    everything = {**(given or {}), **named}
    problems = [f"input {name!r} is given twice, also as a keyword" for name in named if name in (given or {})]
    problems += _name_problems(inputs, everything)
    arrays: dict[str, Array] = {}
    for value in inputs:
        if value.name in everything:
            try:
                arrays[value.name] = _converted(value.name, everything[value.name], value.type)
            except InputError as problem:
                problems.append(str(problem))
    problems = problems or _symbol_problems(inputs, {n: a.shape for n, a in arrays.items()})
    if problems:
        raise InputError(f"model {model!r} cannot run: " + "; ".join(problems))
    return arrays


def check_shapes(
    model: str, inputs: Sequence[Value], shapes: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """Return a shape for every input; shapes of inputs with static types may be omitted.

    Raises:
        InputError: a shape is missing, names an unknown input, or does not fit.
    """
    require(isinstance(shapes, Mapping), "shapes", "a mapping of input names to shapes, such as {'x': (1, 3)}", shapes)
    complete = {v.name: v.type.shape for v in inputs if v.type.is_static}
    complete.update((n, tuple(s) if isinstance(s, Sequence) else s) for n, s in shapes.items())
    problems = _name_problems(inputs, complete)
    for value in inputs:
        shape = complete.get(value.name, ())
        whole = isinstance(shape, tuple) and all(type(d) is int and d >= 0 for d in shape)
        if value.name in complete and not (whole and value.type.accepts(shape)):
            problems.append(f"input {value.name!r} must have shape {_shape_text(value.type)}, given {shape}")
    problems = problems or _symbol_problems(inputs, complete)  # type: ignore[arg-type]
    if problems:
        raise InputError(f"model {model!r} cannot be prepared: " + "; ".join(problems))
    return {v.name: complete[v.name] for v in inputs}  # type: ignore[misc]


def check_out(outputs: Mapping[str, TensorType], out: Mapping[str, Array] | None, in_place: Mapping[str, str]) -> None:
    """Check the arrays given for outputs: contiguous, writable, of the right type, and not overlapping.

    Those that ``in_place`` names may be caches, see :func:`~lite_core.in_place.is_cache`.

    Raises:
        InputError: an array violates one of these.
    """
    require(isinstance(out, (Mapping, type(None))), "out", "a mapping of output names to arrays", out)
    for name, array in (out or {}).items():
        expected = outputs.get(name)
        if expected is None:
            raise InputError(f"out= names {name!r}, the outputs are: {', '.join(outputs)}")
        require(isinstance(array, np.ndarray), f"out[{name!r}]", f"an array of type {expected}", array)
        is_dense = array.flags.c_contiguous or (name in in_place and is_cache(array))
        if array.dtype != expected.dtype.numpy or not expected.accepts(array.shape) or not is_dense:
            raise InputError(
                f"out[{name!r}] must be a contiguous array of type {expected}, is {array.dtype}{list(array.shape)}"
            )
        require(array.flags.writeable, f"out[{name!r}]", "writable", array)
    for (a, first), (b, second) in combinations((out or {}).items(), 2):
        if np.may_share_memory(first, second):
            raise InputError(f"out[{a!r}] and out[{b!r}] share memory: one would overwrite the other")


def overlapping(out: Mapping[str, Array], inputs: Mapping[str, Array], in_place: Mapping[str, str]) -> set[str]:
    """Return the names of the output arrays that share memory with an input: writing them early would change it.

    Outputs in the place of the input that ``in_place`` names for them are left out.
    """

    def conflicts(name: str, array: Array, source: str, given: Array) -> bool:
        updates = in_place.get(name) == source and is_same_place(array, given)
        return not updates and np.may_share_memory(array, given)

    return {n for n, a in out.items() if any(conflicts(n, a, i, x) for i, x in inputs.items())}


def _name_problems(inputs: Iterable[Value], given: Mapping[str, Any]) -> list[str]:
    types = {v.name: v.type for v in inputs}
    problems = [f"input {n!r} is missing, expected {t}" for n, t in types.items() if n not in given]
    known = ", ".join(types) or "none"
    return problems + [f"there is no input {n!r}, the inputs are: {known}" for n in given if n not in types]


def _symbol_problems(inputs: Sequence[Value], shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the conflicts: symbols with two different sizes, and expressions that disagree with the sizes."""
    try:
        bindings = bind_symbols(inputs, shapes)
    except GraphError as problem:
        return [str(problem)]
    problems = []
    for value in inputs:
        for axis, (dim, size) in enumerate(zip(value.type.shape or (), shapes[value.name])):
            if isinstance(dim, SymbolicDim) and dim.symbols <= bindings.keys() and dim.evaluate(bindings) != size:
                known = ", ".join(f"{s} = {bindings[s]}" for s in sorted(dim.symbols))
                problems.append(
                    f"dimension {axis} of input {value.name!r} must be {dim} = {dim.evaluate(bindings)} "
                    f"({known}), is {size}"
                )
    return problems


def _converted(name: str, given: Any, expected: TensorType) -> Array:
    """Convert an argument to an array of the input's type.

    Python lists and numbers are converted to the model's element type if it can hold them. Arrays must already have
    that type; only their byte order is adapted, and integer types are widened.
    """
    # NOTE: accessing np.ma imports it, which takes longer than running many a model. A caller with a masked array has
    # imported it already.
    if "numpy.ma" in sys.modules and isinstance(given, np.ma.MaskedArray):
        raise InputError(f"input {name!r} is a masked array; fill it first: {name}.filled(value)")
    is_array = hasattr(given, "__array__") or hasattr(given, "__dlpack__")
    try:
        device = 1 if type(given) is np.ndarray else getattr(given, "__dlpack_device__", lambda: (1, 0))()[0]
        if device != 1:  # DLPack's number for main memory
            cure = f"{name}.cpu() in torch, numpy.asarray({name}) in jax, {name}.get() in cupy"
            raise InputError(f"input {name!r} is in the memory of a device; copy it to main memory first: {cure}")
        array = np.asarray(given) if hasattr(given, "__array__") or not is_array else np.from_dlpack(given)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"input {name!r} must be {expected}, and no array can be made of it: {error}") from None
    wanted = expected.dtype.numpy
    if wanted.hasobject and all(isinstance(element, str) for element in array.astype(object).flat):
        array = array.astype(object)
    elif array.dtype.kind not in "biufV" or wanted.hasobject:
        raise InputError(f"input {name!r} must be {expected}, holds {array.dtype} elements")
    elif array.dtype.newbyteorder("=") == wanted:
        array = array.astype(wanted, copy=False)
    elif is_array and not (array.dtype.kind in "iu" and wanted.kind in "iu" and np.can_cast(array.dtype, wanted)):
        raise InputError(
            f"input {name!r} must be {expected.dtype}, is {array.dtype}; "
            f"convert it yourself: {name}.astype({expected.dtype.value!r})"
        )
    else:
        array = _exactly_converted(name, array, expected)
    if not expected.accepts(array.shape):
        raise InputError(f"input {name!r} must have shape {_shape_text(expected)}, has {list(array.shape)}")
    return np.require(array, requirements=("ALIGNED",))


def _exactly_converted(name: str, array: Array, expected: TensorType) -> Array:
    """Convert numbers to the input's element type without loss, except for rounding floats to its precision."""
    with np.errstate(all="ignore"):
        converted: Array = array.astype(expected.dtype.numpy)
        if expected.dtype.is_floating:
            finite = np.isfinite(converted.astype(np.float64))
            held = array.dtype.kind != "b" and np.array_equal(finite, np.isfinite(array))
        else:
            held = array.dtype.kind != "f" and np.array_equal(array, converted)
    if not held:
        raise InputError(f"input {name!r} must be {expected.dtype}, which cannot hold what was given ({array.dtype})")
    return converted


def _shape_text(type_: TensorType) -> str:
    return "[" + ", ".join(str(d) for d in type_.shape or ()) + "]"
