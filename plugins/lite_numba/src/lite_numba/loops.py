"""A kernel's loop, as the backend calls it: its arguments, and its machine code for each combination of their types."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.forking import new_lock
from lite_core.ir import Array, DType, Node, TensorType, Value

__all__ = ["Loop"]

logger = logging.getLogger("lite.numba")


class Loop:
    """The function of a :class:`lite_core.kernel_backend.Kernel`: it arranges arguments and runs compiled code.

    Args:
        function: the loop. Its parameters are the operator's inputs, in order, its attributes and ``out``, by name; or
            what ``prepare`` returns, in order.
        prepare: a Python function that receives what a kernel receives. It returns a tuple, the loop's arguments, or
            yields several, for each of which the loop runs.
        options: those of :func:`lite_numba.compiling.dispatcher`.
    """

    def __init__(self, function: FunctionType, prepare: Callable[..., Any] | None, **options: bool) -> None:
        self.function = function
        self.__name__, self.__qualname__, self.__module__ = (
            function.__name__,
            function.__qualname__,
            function.__module__,
        )
        #: The parameters that the backend sees.
        self.__signature__ = inspect.signature(prepare or function)
        self._prepare = prepare
        self._options = options
        self._names = list(inspect.signature(function).parameters)
        self._code: dict[Any, Callable[..., Any]] = {}
        self._dispatcher: Any = None
        self._lock = new_lock()

    def __str__(self) -> str:
        code = self.function.__code__
        return f"kernel {self.__name__} ({code.co_filename}:{code.co_firstlineno})"

    def __call__(self, *inputs: Array | None, **keywords: Any) -> Any:
        widened = [None if a is None else _read_only(_widened(a)) for a in inputs]
        if "out" not in keywords:
            half = next((a.dtype for a in inputs if a is not None and _is_half(a)), None)
            return _narrowed(self._run(widened, keywords), half)
        out = keywords["out"]
        arrays = out if isinstance(out, tuple) else (out,)
        wide = tuple(np.empty(a.shape, np.float32) if a is not None and _is_half(a) else a for a in arrays)
        self._run(widened, {**keywords, "out": wide if isinstance(out, tuple) else wide[0]})
        for array, computed in zip(arrays, wide):
            if array is not computed:
                array[...] = _narrowed(computed, array.dtype)
        return None

    def _run(self, inputs: Sequence[Array | None], keywords: Mapping[str, Any]) -> Any:
        result = None
        for arguments in self._calls(inputs, keywords):
            key = tuple(map(_kind, arguments))
            result = (self._code.get(key) or self._compiled(key, arguments))(*arguments)
        return result

    def compile_for(self, node: Node, constants: Mapping[Value, Array]) -> None:
        """Compile the loop for a node's types, so that nothing is compiled while it runs.

        Types are those of the arguments that arrays of zeros lead to. If a rank is unknown, or ``prepare`` cannot work
        with zeros, the loop is compiled in its first run.

        Raises:
            ExecutionError: Numba cannot compile the loop for these types.
        """
        definition = ops.get(node)
        if any(v is not None and v.type.shape is None for v in (*node.inputs, *node.outputs)):
            return
        inputs = [None if v is None else _read_only(_example(v.type, constants.get(v))) for v in node.inputs]
        inputs += [None] * (definition.fixed_inputs - len(inputs))
        keywords = definition.attributes_of(node)
        if "out" in self.__signature__.parameters:
            out = [None if v is None else _example(v.type) for v in node.outputs]
            several = len(definition.outputs) > 1 or definition.outputs[0].variadic
            if several and not definition.outputs[-1].variadic:
                out += [None] * (len(definition.outputs) - len(out))
            keywords["out"] = tuple(out) if several else out[0]
        try:
            calls = list(self._calls(inputs, keywords))
        except Exception as error:
            logger.info("%s is compiled in its first run: zeros do not tell its types (%s)", self, error)
            return
        for arguments in calls:
            key = tuple(map(_kind, arguments))
            if key not in self._code:
                self._compiled(key, arguments)

    def _calls(self, inputs: Sequence[Array | None], keywords: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of each run of the loop."""
        if self._prepare is None:
            named = (keywords[name] for name in self._names if name in keywords)
            yield tuple(map(_argument, (*inputs, *named)))
            return
        prepared = self._prepare(*inputs, **keywords)
        for arguments in (prepared,) if isinstance(prepared, tuple) else prepared:
            yield tuple(map(_argument, arguments))

    def _compiled(self, key: Any, arguments: Sequence[Any]) -> Callable[..., Any]:
        from lite_numba.compiling import compiled, dispatcher  # which import Numba

        with self._lock:
            if key not in self._code:
                if self._dispatcher is None:
                    self._dispatcher = dispatcher(self.function, **self._options)
                self._code[key] = compiled(self._dispatcher, arguments, str(self))
            return self._code[key]


# **** arguments ****


def _argument(value: Any) -> Any:
    """Return an argument as compiled code takes it: an array that is contiguous, a number, a text, None, or a tuple."""
    if isinstance(value, np.ndarray):
        return value if value.flags.c_contiguous else _contiguous(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, DType):
        return value.value
    return tuple(map(_argument, value)) if isinstance(value, (tuple, list)) else value


def _contiguous(array: Array) -> Array:
    if array.flags.writeable:
        raise ValueError(f"an array that the loop writes must be contiguous, one of shape {list(array.shape)} is not")
    return _read_only(np.asarray(array, order="C"))


def _kind(argument: Any) -> Any:
    """Return a key for the type of an argument. The value of a text is part of its type."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.writeable
    if isinstance(argument, tuple):
        return tuple(map(_kind, argument))
    return argument if isinstance(argument, str) else type(argument)


def _read_only(array: Array) -> Array:
    if not array.flags.writeable:
        return array
    view: Array = array.view()
    view.flags.writeable = False
    return view


def _example(type: TensorType, constant: Array | None = None) -> Array:
    """Return an array of a tensor's rank and element type; zeros take no memory until they are accessed."""
    if constant is not None:
        return _widened(constant)
    shape = [dim if isinstance(dim, int) else 1 for dim in type.shape or ()]
    return np.zeros(shape, np.float32 if type.dtype.is_half else type.dtype.numpy)


# **** 16-bit floats, which Numba cannot compute with ****


def _is_half(array: Array) -> bool:
    return array.dtype.itemsize == 2 and array.dtype.kind in "fV"


def _widened(array: Array) -> Array:
    return array.astype(np.float32) if _is_half(array) else array


def _narrowed(result: Any, half: np.dtype[Any] | None) -> Any:
    if half is None:
        return result
    if isinstance(result, tuple):
        return tuple(_narrowed(part, half) for part in result)
    with np.errstate(all="ignore"):  # numbers above the largest one become infinity
        return result.astype(half) if isinstance(result, np.ndarray) and result.dtype == np.float32 else result
