"""A loop's machine code: the types that Numba compiles it for, the functions that it calls, and Numba's errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.np.numpy_support import from_dtype

from lite_core.errors import ExecutionError
from lite_numba.code_cache import CodeCache, fingerprint

__all__ = ["compiled", "dispatcher"]


def dispatcher(function: FunctionType, *, check_bounds: bool, sums_in_any_order: bool) -> Any:
    """Return Numba's dispatcher of a loop, whose machine code is kept in Lite's cache.

    Arithmetic is NumPy's: a division by zero gives infinity or NaN, integers wrap around. The code runs without the
    GIL, on the thread that calls it.

    Args:
        function: the loop.
        check_bounds: raise IndexError for an index outside an array, instead of accessing other memory.
        sums_in_any_order: the terms of the loop's sums may be added in another order. Functions that it calls keep
            theirs.
    """
    fastmath = {"reassoc"} if sums_in_any_order else False
    made = numba.njit(
        _calling_compiled(function, {}), nogil=True, error_model="numpy", fastmath=fastmath, boundscheck=check_bounds
    )
    if not numba.config.DISABLE_JIT:
        options = check_bounds, sums_in_any_order, numba.config.OPT, numba.config.BOUNDSCHECK
        made._cache = CodeCache(f"{fingerprint(function)} {options}")
    return made


def compiled(dispatcher: Any, arguments: Sequence[Any], kernel: str) -> Callable[..., Any]:
    """Return machine code for the types of arguments; with ``NUMBA_DISABLE_JIT=1`` the loop itself.

    NOTE: the code does not check its arguments. Arrays must have the element types and ranks of ``arguments``, and be
    contiguous.

    Args:
        dispatcher: the loop's dispatcher.
        arguments: contiguous arrays, numbers, texts, None, or tuples of these.
        kernel: the loop in messages.

    Raises:
        ExecutionError: Numba cannot compile the loop for these types.
    """
    if numba.config.DISABLE_JIT:
        return dispatcher  # type: ignore[no-any-return]
    has_doubles = any(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in arguments)
    signature = tuple(_type(a, types.float64 if has_doubles else types.float32) for a in arguments)
    try:
        return dispatcher.compile(signature)  # type: ignore[no-any-return]
    except NumbaError as error:
        listed = ", ".join(map(str, signature))
        raise ExecutionError(f"{kernel}: Numba cannot compile it for ({listed}):\n{_reason(error)}") from error


def _type(argument: Any, float_type: Any) -> Any:
    """Return Numba's type of an argument; floats have the loop's precision, texts are literals."""
    if isinstance(argument, np.ndarray):
        return types.Array(from_dtype(argument.dtype), argument.ndim, "C", readonly=not argument.flags.writeable)
    if isinstance(argument, tuple):
        return types.BaseTuple.from_types([_type(part, float_type) for part in argument])
    if argument is None:
        return types.none
    if isinstance(argument, str):
        return types.literal(argument)
    if isinstance(argument, (bool, int)):
        return types.boolean if isinstance(argument, bool) else types.int64
    if isinstance(argument, float):
        return float_type
    raise ExecutionError(
        f"a loop takes arrays, numbers, texts, None, and tuples of these, not {type(argument).__name__}: "
        "convert it with prepare="
    )


def _calling_compiled(function: FunctionType, made: dict[FunctionType, Any]) -> FunctionType:
    """Return a copy of a function that calls compiled functions in the place of Python functions it refers to."""

    def replaced(value: Any) -> Any:
        if not isinstance(value, FunctionType) or value is function:
            return value
        if value not in made:
            made[value] = numba.njit(_calling_compiled(value, made), nogil=True, error_model="numpy")
        return made[value]

    used = {name: replaced(function.__globals__[name]) for name in _names(function) & function.__globals__.keys()}
    cells = tuple(CellType(replaced(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = FunctionType(function.__code__, {**function.__globals__, **used}, function.__name__, None, cells)
    copy.__defaults__, copy.__qualname__, copy.__module__ = (
        function.__defaults__,
        function.__qualname__,
        function.__module__,
    )
    return copy


def _names(function: FunctionType) -> set[str]:
    return set(function.__code__.co_names)


def _reason(error: NumbaError) -> str:
    """Return what Numba says, without the lines about its own inside."""
    lines = str(error).strip().splitlines()
    inside = ("Failed in nopython mode pipeline", "During: Pass", "<source elided>")
    return "\n".join(line for line in lines if line.strip() and not line.startswith(inside))
