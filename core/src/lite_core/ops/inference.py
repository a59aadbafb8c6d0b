"""The argument of inference functions, and helpers that many inference functions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_core.errors import GraphError
from lite_core.ir import Dim, DType, Shape, SymbolicDim, TensorType, fresh_dim
from lite_core.ir.dims import broadcast

if TYPE_CHECKING:
    from lite_core.ir import Graph

__all__ = [
    "Inference",
    "broadcast_shapes",
    "fail",
    "infer_broadcast",
    "normalize_axis",
    "propagate_reference",
    "same_as_first",
    "unknown_shape",
]

Array = np.ndarray[Any, Any]

#: The largest rank that NumPy 2 supports.
_MAX_RANK = 64


class Inference:
    """The argument of an inference function: a node's attributes, and the types and known elements of its inputs.

    Attributes:
        types: type of each input, None for an optional input that is left out.
        attributes: the node's attributes, with defaults for those it does not set.
        n_outputs: number of outputs of the node.
        branches_may_not_fit: True if the sizes of the model's inputs are known, so that a branch of If that does not
            fit them is not taken.
    """

    __slots__ = ("_infer_graph", "attributes", "branches_may_not_fit", "n_outputs", "types", "values")

    def __init__(
        self,
        types: Sequence[TensorType | None],
        attributes: Mapping[str, Any],
        n_outputs: int = 1,
        values: Sequence[Array | None] = (),
        infer_graph: Callable[[Graph, Sequence[TensorType], Sequence[Array | None]], list[TensorType]] | None = None,
        branches_may_not_fit: bool = False,
    ) -> None:
        self.types = tuple(types)
        self.attributes = attributes
        self.n_outputs = n_outputs
        self.values = tuple(values)
        self._infer_graph = infer_graph
        self.branches_may_not_fit = branches_may_not_fit

    def has(self, index: int) -> bool:
        """Return True if the optional input is given."""
        return index < len(self.types) and self.types[index] is not None

    def type(self, index: int) -> TensorType:
        found = self.types[index]
        assert found is not None, "asked for the type of an input that is left out"
        return found

    def shape(self, index: int = 0) -> Shape | None:
        """Return the shape of an input, or None if its rank is unknown."""
        return self.type(index).shape

    def dtype(self, index: int = 0) -> DType:
        return self.type(index).dtype

    def value(self, index: int) -> Array | None:
        """Return the elements of an input, or None if they are unknown.

        The result is an array of the input's element type or, if some elements are symbolic dimensions, an
        object array of ``int`` and :class:`SymbolicDim`.
        """
        return self.values[index] if index < len(self.values) else None

    def dims(self, index: int) -> tuple[Dim, ...] | None:
        """Return the elements of an integer vector (a shape, axes, sizes), or None if they are unknown."""
        value = self.value(index)
        if value is None:
            return None
        return tuple(v if isinstance(v, (SymbolicDim, int)) else int(v) for v in value.reshape(-1).tolist())

    def ints(self, index: int) -> tuple[int, ...] | None:
        """Return the elements like :meth:`dims`, but None unless all of them are numbers."""
        dims = self.dims(index)
        if dims is None or any(isinstance(d, SymbolicDim) for d in dims):
            return None
        return dims  # type: ignore[return-value]

    def infer_graph(
        self, graph: Graph, inputs: Sequence[TensorType], values: Sequence[Array | None] = ()
    ) -> list[TensorType]:
        """Infer the output types of a sub-graph for the given types (and known elements) of its inputs."""
        if self._infer_graph is None:
            raise GraphError("a node with sub-graphs can be inferred only as part of a graph")
        return self._infer_graph(graph, inputs, values)


def fail(message: str) -> GraphError:
    """Return the error that an inference function raises; the caller adds the node's description."""
    return GraphError(message)


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """Return an axis as a non-negative number. Raises GraphError outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise GraphError(f"{what} {axis} is out of range for a tensor of rank {rank}")
    return axis % rank


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """Broadcast shapes with symbols by NumPy's rules; None if any rank is unknown.

    Raises:
        GraphError: the shapes do not broadcast.
    """
    result: tuple[Dim, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        if not result:
            result = tuple(shape)
        if not shape or shape == result:
            continue
        rank = max(len(result), len(shape))
        a = (1,) * (rank - len(result)) + result
        b = (1,) * (rank - len(shape)) + tuple(shape)
        try:
            result = tuple(broadcast(m, n) for m, n in zip(a, b))
        except ValueError as error:
            listed = " and ".join("[" + ", ".join(map(str, s or ())) + "]" for s in shapes)
            raise GraphError(f"shapes {listed} do not broadcast: {error}") from None
    return result


def same_as_first(inference: Inference) -> list[Shape | None]:
    """Infer the shape of the first input for every output."""
    return [inference.shape(0)] * inference.n_outputs


def infer_broadcast(inference: Inference) -> list[Shape | None]:
    """Infer the shape of all inputs broadcast together."""
    return [broadcast_shapes(*(t.shape for t in inference.types if t is not None))]


def unknown_shape(rank: int, prefix: str = "unknown") -> Shape:
    """Return a shape of known rank whose sizes depend on data.

    Raises:
        GraphError: the rank is higher than NumPy supports.
    """
    if rank > _MAX_RANK:
        raise fail(f"a tensor has at most {_MAX_RANK} dimensions, this one would have {rank}")
    return tuple(fresh_dim(prefix) for _ in range(rank))


def propagate_reference(reference: Callable[..., Any]) -> Callable[[Inference], Array | None]:
    """Return a function for shape arithmetic that calls the reference, which must be correct on object arrays."""

    def propagate(inference: Inference) -> Array | None:
        values = [inference.value(i) for i in range(len(inference.types))]
        if any(v is None and t is not None for v, t in zip(values, inference.types)):
            return None
        result = reference(*values, **inference.attributes)
        return np.asarray(result[0] if isinstance(result, (tuple, list)) else result)

    return propagate
