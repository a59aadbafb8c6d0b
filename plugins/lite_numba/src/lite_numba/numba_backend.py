"""A backend made of plain Python loops, which Numba compiles.

Example::

    backend = NumbaBackend("acme")

    @backend.kernel("Relu", dtypes=["float32"])
    def relu(x, out):
        for i in range(x.size):
            out.flat[i] = np.maximum(x.flat[i], 0)
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from lite_core.backend import Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Node
from lite_core.kernel_backend import Condition, KernelBackend, Probe
from lite_core.log import tracked
from lite_core.ops import OpDef
from lite_numba.loops import Loop

__all__ = ["NumbaBackend"]

_REFUSED = frozenset(d for d in DType if d.is_narrow or d is DType.STRING)


class NumbaBackend(KernelBackend):
    """A backend made of kernels; each is a plain Python loop for one operator, compiled by Numba.

    Args:
        name: the backend's name.
        device: the result of ``probe``, as for :class:`KernelBackend`. If Numba is missing, or does not work with the
            installed NumPy, ``probe`` returns Unavailable in any case.
    """

    def __init__(self, name: str, device: Device | Probe | None = None) -> None:
        super().__init__(name, device)

    def kernel(
        self,
        op: str | OpDef,
        *,
        dtypes: Iterable[str | DType] = (),
        domain: str = "",
        when: Condition | None = None,
        prepare: Callable[..., Any] | None = None,
        check_bounds: bool = False,
        sums_in_any_order: bool = False,
        compiled: bool = True,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers a plain Python loop as a kernel, and returns it unchanged.

        The loop receives one array per input (None for an omitted one), the attributes, including defaults, and
        ``out``, the array to write, as :meth:`KernelBackend.kernel` describes. It is compiled for a node's element
        types and ranks before the node runs; Python functions that it calls are compiled with it. It sees

        - arrays: contiguous, inputs read-only; float16 and bfloat16 as float32, rounded when they are stored;
        - attributes: integers as int64, floats as float32 (float64 if one of the arrays is float64), lists as tuples,
          texts as literals, for each of which the loop is compiled separately.

        A loop without ``out`` returns its results; only such a loop can compute an operator whose output shape
        depends on data.

        Args:
            op: the operator's name, or the definition of one of your own.
            dtypes: supported element types, as for :meth:`KernelBackend.kernel`; all numbers and bool if empty.
            domain: the operator's domain.
            when: a further condition on the node; it returns Yes, or No with a reason.
            prepare: a Python function that is called in the loop's place with the same arguments, and returns a tuple:
                the loop's arguments in order. It reshapes arrays, so that one compiled loop serves many ranks, and
                resolves attributes. It must not compute with elements of large arrays. If it yields tuples instead, the
                loop runs for each of them.
            check_bounds: raise IndexError for an index outside an array, instead of accessing other memory. Needed if
                indices are elements of an input.
            sums_in_any_order: the terms of a sum may be added in another order, so that vectors compute it; results
                then differ in their last bits between processors.
            compiled: False for a NumPy function without a loop, which is called as it is.

        Raises:
            ValueError: the opset has no such operator, the kernel does not accept its attributes, or it is no function.
        """
        register = super().kernel(op, dtypes=dtypes, domain=domain, when=_of_numbers(when) if compiled else when)
        if not compiled:
            return register

        def register_loop(function: Callable[..., Any]) -> Callable[..., Any]:
            if not isinstance(function, FunctionType):
                raise ValueError(f"backend {self.name!r}: a loop is a Python function, {function!r} is none")
            register(Loop(function, prepare, check_bounds=check_bounds, sums_in_any_order=sums_in_any_order))
            return function

        return register_loop

    def probe(self) -> Sequence[Device] | Unavailable:
        return _missing() or super().probe()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        for node in tracked(part.graph.nodes, "compiling loops"):
            kernel, _ = self.choose(node)
            if kernel is not None and isinstance(kernel.function, Loop):
                try:
                    kernel.function.compile_for(node, part.graph.constants)
                except ExecutionError as error:
                    raise ExecutionError(f"backend {self.name!r}: {node.describe()}: {error}") from error
        return super().compile(part, device, options)


def _of_numbers(when: Condition | None) -> Condition:
    """Return a condition that also refuses element types that no loop can compute with."""

    def accepts(node: Node) -> Yes | No:
        for value in (*node.inputs, *node.outputs):
            if value is not None and value.dtype in _REFUSED:
                return No(f"loops of Numba compute with numbers of 8 bits and more, {value.name!r} is {value.dtype}")
        return when(node) if when else Yes()

    return accepts


@functools.cache
def _missing() -> Unavailable | None:
    """Return the reason why Numba cannot be used; None if it can be. Numba is not imported, which takes a second."""
    if importlib.util.find_spec("numba") is None:
        return Unavailable("the package numba is not installed", 'pip install "numba>=0.62"')
    from importlib import metadata  # every start imports this module, and these take long

    from packaging.requirements import InvalidRequirement, Requirement

    for text in metadata.requires("numba") or ():
        try:
            needed = Requirement(text)
        except InvalidRequirement:
            continue
        if needed.name == "numpy" and needed.marker is None and not needed.specifier.contains(np.__version__, True):
            version = metadata.version("numba")
            return Unavailable(
                f"numba {version} needs numpy{needed.specifier}, installed is {np.__version__}",
                f'pip install --upgrade numba "numpy{needed.specifier}"',
            )
    return None
