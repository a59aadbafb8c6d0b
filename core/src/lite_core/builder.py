"""Building graphs: names, constants and inferred types taken care of.

Example::

    b = GraphBuilder("classifier")
    x = b.input("x", "float32", ["batch", 3, 224, 224])
    y = b.add("Conv", [x, b.constant(weights)], {"strides": (2, 2)})
    b.output(b.add("Relu", [y]), "scores")
    graph = b.build()
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.errors import GraphError
from lite_core.ir import Attribute, Dim, DType, Graph, Node, Origin, SymbolicDim, TensorType, Value, fresh_dim
from lite_core.ops.infer import GraphInference, KnownInference

__all__ = ["GraphBuilder"]

Array = np.ndarray[Any, Any]
DimLike = Dim | str | None


class GraphBuilder:
    """Builds a graph node by node; each node is checked and inferred when it is added.

    Names of values that the caller gives are kept as they are; where another value has the name by the
    caller's wish, that is an error. Names made up here, or given by :meth:`rename`, make way for them.

    Args:
        name: the graph's name.
        outer: the builder of the enclosing graph, for the bodies of If and Loop: names are kept
            unique across both and values of the outer graph can be used directly.
    """

    def __init__(self, name: str = "graph", *, outer: GraphBuilder | None = None) -> None:
        self.graph = Graph(name)
        self._outer = outer
        # The value that has each name; None for a name that unique_name() gave out and nothing has yet.
        self._names: dict[str, Value | None] = outer._names if outer else {}
        # Values whose names are nobody's wish, in this graph and those around it.
        self._movable: set[Value] = outer._movable if outer else set()
        self._node_names: set[str] = outer._node_names if outer else set()
        # The last number behind each name that many ask for: counting from 1 every time takes long in large models.
        self._numbers: dict[str, int] = outer._numbers if outer else {}
        self._known = KnownInference()
        self._inference: GraphInference = GraphInference(outer._inference if outer else None, known=self._known)
        # Outputs of nodes that rename() may still give a better name.
        self._unnamed: set[Value] = set()
        self._constant_cache: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        #: Given to every node that is added without an origin of its own.
        self.origin: Origin | None = outer.origin if outer else None

    # **** values ****

    def input(self, name: str, dtype: Any, shape: Iterable[DimLike] | None) -> Value:
        """A graph input.

        Args:
            name: its name.
            dtype: element type, as :meth:`DType.of` takes it.
            shape: for each dimension a size, a symbol's name, or None for one nobody knows; None where
                even the rank is unknown.

        Raises:
            GraphError: the name is taken, or a dimension is none of these.
        """
        dims = None if shape is None else tuple(_dim(d, name) for d in shape)
        self._require_free(name)
        value = Value(name, TensorType(DType.of(dtype), dims))
        self._give_name(value, name)
        self.graph.inputs.append(value)
        self._inference.set_type(value, value.type)
        return value

    def constant(self, array: Any, name: str = "", dtype: Any = None) -> Value:
        """A constant. Small unnamed ones with equal contents are the same value.

        Args:
            array: anything NumPy makes an array of. A read-only array (a memory-mapped file) is taken as
                it is; a writable one is copied, so that the graph does not change with it.
            name: its name; made up otherwise.
            dtype: element type that the elements are converted to.

        Raises:
            GraphError: the name is taken, no array of one of Lite's element types can be made of
                ``array``, or ``dtype`` cannot hold its elements (rounding to a floating type is fine).
        """
        array = _constant_array(array, dtype)
        key = None
        if name:
            self._require_free(name)
        elif array.size <= 64:
            key = (DType.of(array.dtype).value, array.shape, array.tobytes())
            if key in self._constant_cache:
                return self._constant_cache[key]
        value = self.graph.add_constant(name or self._free_name("const"), array)
        self._give_name(value, value.name, movable=not name)
        self._inference.set_type(value, value.type)
        self._inference.set_value(value, array)
        if key is not None:
            self._constant_cache[key] = value
        return value

    def ints(self, *elements: int) -> Value:
        """An int64 vector constant: axes, shapes, pads."""
        return self.constant(np.array(elements, dtype=np.int64))

    def known(self, value: Value) -> Array | None:
        """The elements of a value where inference knows them: constants and what follows from shapes."""
        return self._inference.value_of(value)

    # **** nodes ****

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        domain: str = "",
        name: str = "",
        output: str = "",
        origin: Origin | None = None,
    ) -> Value:
        """Add a node and return its first (usually only) output. See :meth:`add_node`."""
        (first,) = self.add_node(op, inputs, attributes, domain=domain, name=name, outputs=[output], origin=origin)
        return first

    def add_node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        outputs: int | Sequence[str] = 1,
        domain: str = "",
        name: str = "",
        origin: Origin | None = None,
    ) -> list[Value]:
        """Add a node; check it against its operator's signature and infer its outputs.

        Args:
            op: the operator.
            inputs: values, None for an optional input left out (at the end: simply shorter).
            attributes: only what differs from the defaults; lists are taken as tuples.
            outputs: how many outputs, or a name for each (an empty name is made up).
            domain: ``""`` or ``"lite"``.
            name: the node's name, a label that gets a number behind it where another node has it; made
                from the operator's otherwise.
            origin: where the node comes from in the user's model.

        Raises:
            GraphError: the node does not fit its operator's signature, or a name is taken. The graph and
                its names are then as before.
        """
        _check_values(op, inputs)
        names = [""] * outputs if isinstance(outputs, int) else list(outputs)
        given = [n for n in names if n]
        for wanted in given:
            self._require_free(wanted)
            if given.count(wanted) > 1:
                raise GraphError(f"two outputs of one node ({op}) are to have the name {wanted!r}")
        label = self._numbered(name or op.lower(), self._node_names)
        placeholder = TensorType(DType.FLOAT32, None)
        values = [Value(n or (label if i == 0 else f"{label}_{i}"), placeholder) for i, n in enumerate(names)]
        node = Node(
            op,
            inputs,
            values,
            {k: _attribute(a) for k, a in (attributes or {}).items()},
            domain=domain,
            name=label,
            origin=origin or self.origin,
        )
        problems = list(ops.get(node).check(node))
        if problems:
            raise GraphError(f"{node.describe()}: {'; '.join(problems)}")
        for value, type in zip(values, self._inference.infer(node)):
            value.type = type
        # Nothing can fail from here on.
        self._node_names.add(label)
        for value, wanted in zip(values, names):
            if wanted:
                self._give_name(value, wanted)
        for value, wanted in zip(values, names):
            if not wanted:
                self._give_name(value, self._free_name(value.name), movable=True)
                self._unnamed.add(value)
        self.graph.nodes.append(node)
        return values

    def rename(self, value: Value, name: str) -> bool:
        """Give the output of a node a better name than the one made up for it, where the name is free."""
        if value not in self._unnamed or name in self._names:
            return False
        self._unnamed.discard(value)
        self._give_name(value, name, movable=True)
        return True

    def output(self, value: Value, name: str = "") -> None:
        """Make a value a graph output. A name of its own is given through an Identity node where need be.

        Raises:
            GraphError: the name is taken by another value.
        """
        if not isinstance(value, Value):
            raise GraphError(f"an output of graph {self.graph.name!r} must be a Value, is {_shown(value)}")
        if name and value.name != name:
            self._require_free(name)
            if value in self._unnamed:
                self._give_name(value, name)
            else:
                value = self.add("Identity", [value], output=name)
        self._unnamed.discard(value)
        self._movable.discard(value)
        self.graph.outputs.append(value)

    def build(self) -> Graph:
        """The finished graph, verified."""
        if self._outer is None:
            ops.verify(self.graph)
            self._known.attach(self.graph)
        return self.graph

    def is_taken(self, name: str) -> bool:
        """Whether a value has this name by the caller's wish, so that no other can be given it."""
        holder = self._names.get(name)
        return holder is not None and holder not in self._movable

    def unique_name(self, wanted: str) -> str:
        """``wanted``, or with a number behind it where the name is taken; kept free for the caller to give."""
        name = self._free_name(wanted)
        self._names[name] = None
        return name

    def _free_name(self, wanted: str) -> str:
        return self._numbered(wanted, self._names)

    def _numbered(self, wanted: str, taken: Container[str]) -> str:
        """``wanted``, or with a number behind it where that is taken."""
        name, number = wanted, self._numbers.get(wanted, 1)
        while name in taken:
            name, number = f"{wanted}_{number}", number + 1
        if name != wanted:
            self._numbers[wanted] = number - 1
        return name

    def _require_free(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise GraphError(f"the name of a value must be a text, not empty, is {name!r}")
        if self.is_taken(name):
            raise GraphError(
                f"the name {name!r} is already taken in graph {self.graph.name!r}, by {self._names[name]}; "
                "choose another"
            )

    def _give_name(self, value: Value, name: str, *, movable: bool = False) -> None:
        """Name a value; another that has the name without anybody's wish gets a new one."""
        holder = self._names.get(name)
        self._names[name] = value
        if holder is not None and holder is not value:
            holder.name = self._free_name(name)
            self._names[holder.name] = holder
        if self._names.get(value.name) is value and value.name != name:
            del self._names[value.name]
        value.name = name
        (self._movable.add if movable else self._movable.discard)(value)


def _shown(what: Any) -> str:
    return f"{type(what).__name__} {str(what)[:60]!r}"


def _check_values(op: str, inputs: Sequence[Value | None]) -> None:
    if isinstance(inputs, (str, Value)) or not isinstance(inputs, Iterable):
        raise GraphError(f"the inputs of {op} must be a list of values, are {_shown(inputs)}")
    for index, value in enumerate(inputs):
        if value is not None and not isinstance(value, Value):
            raise GraphError(
                f"input {index} of {op} must be a Value or None, is {_shown(value)}; GraphBuilder.constant makes a "
                "value of an array"
            )


def _dim(dim: DimLike, name: str) -> Dim:
    if dim is None:
        return fresh_dim()
    if isinstance(dim, SymbolicDim):
        return dim
    if isinstance(dim, str):
        try:
            return SymbolicDim.named(dim)
        except ValueError as error:
            raise GraphError(f"input {name!r}: {error}") from None
    if isinstance(dim, (int, np.integer)) and not isinstance(dim, bool) and dim >= 0:
        return int(dim)
    raise GraphError(
        f"input {name!r}: a dimension must be a size of at least 0, a symbol's name, or None for one nobody knows; "
        f"is {dim!r}"
    )


def _constant_array(given: Any, dtype: Any) -> Array:
    """A read-only array that nobody else can write."""
    try:
        array = np.asarray(given)
        wanted = DType.of(array.dtype if dtype is None else dtype)
        if array.dtype != wanted.numpy:
            array = _converted(array, wanted)
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"no constant can be made of {_shown(given)}: {error}") from error
    if array.flags.writeable:
        if array is given or array.base is not None:
            array = array.copy()
        array.setflags(write=False)
    return array


def _converted(array: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        converted: Array = array.astype(dtype.numpy)
        if dtype.is_floating:
            kept = bool((np.isfinite(converted) | ~np.isfinite(array)).all())
        else:
            kept = bool((converted == array).all())
    if not kept:
        raise ValueError(f"{dtype} cannot hold all its elements ({array.dtype}); convert them first, as you want it")
    return converted


def _attribute(attribute: Any) -> Attribute:
    if isinstance(attribute, (list, tuple)):
        return tuple(_attribute(a) for a in attribute)  # type: ignore[return-value]
    if isinstance(attribute, np.integer):
        return int(attribute)
    return float(attribute) if isinstance(attribute, np.floating) else attribute
