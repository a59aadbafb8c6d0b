"""Building graphs, with automatic names, constants and type inference.

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
from lite_core.ir import Array, Attribute, Dim, DType, Graph, Node, Origin, SymbolicDim, TensorType, Value, fresh_dim
from lite_core.ops.infer import GraphInference, KnownInference

__all__ = ["GraphBuilder"]

DimLike = Dim | str | None


class GraphBuilder:
    """Builder of a graph, node by node; each node is checked and its output types are inferred when it is added.

    Value names that the caller chooses are never changed; choosing one twice is an error. A generated name, or one set
    by :meth:`rename`, is changed if the caller chooses the same name later.

    Args:
        name: the graph's name.
        outer: the builder of the enclosing graph, for the bodies of If and Loop: names are unique across both, and
            values of the outer graph can be used directly.
    """

    def __init__(self, name: str = "graph", *, outer: GraphBuilder | None = None) -> None:
        self.graph = Graph(name)
        self._outer = outer
        # The value with each name; None for a name that unique_name() returned and that is not used yet.
        self._names: dict[str, Value | None] = outer._names if outer else {}
        # Values with generated names, in this graph and those around it; their names may change.
        self._renamable: set[Value] = outer._renamable if outer else set()
        self._node_names: set[str] = outer._node_names if outer else set()
        # The last number appended to each name: counting from 1 every time takes long in large models.
        self._numbers: dict[str, int] = outer._numbers if outer else {}
        self._known = KnownInference()
        self._inference: GraphInference = GraphInference(outer._inference if outer else None, known=self._known)
        # Outputs of nodes that rename() may still give a better name.
        self._unnamed: set[Value] = set()
        self._constant_cache: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        #: Default origin of added nodes.
        self.origin: Origin | None = outer.origin if outer else None

    # **** values ****

    def input(self, name: str, dtype: Any, shape: Iterable[DimLike] | None) -> Value:
        """Add a graph input.

        Args:
            name: its name.
            dtype: element type, in any form that :meth:`DType.of` accepts.
            shape: for each dimension a size, a symbol's name, or None for an unknown size; None if the rank is unknown.

        Raises:
            GraphError: the name is taken, or a dimension is none of these.
        """
        dims = None if shape is None else tuple(_dim(d, name) for d in shape)
        self._require_free(name)
        value = Value(name, TensorType(DType.of(dtype), dims))
        self._set_name(value, name)
        self.graph.inputs.append(value)
        self._inference.set_type(value, value.type)
        return value

    def constant(self, array: Any, name: str = "", dtype: Any = None) -> Value:
        """Add a constant. Small unnamed constants with equal contents are the same value.

        Args:
            array: anything NumPy converts to an array. A read-only array (a memory-mapped file) is used without a
                copy; a writable one is copied, so that later writes do not change the graph.
            name: its name; generated if empty.
            dtype: element type that the elements are converted to.

        Raises:
            GraphError: the name is taken, ``array`` cannot be converted to one of Lite's element types, or ``dtype``
                cannot hold its elements (rounding to a floating type is allowed).
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
        self._set_name(value, value.name, renamable=not name)
        self._inference.set_type(value, value.type)
        self._inference.set_value(value, array)
        if key is not None:
            self._constant_cache[key] = value
        return value

    def ints(self, *elements: int) -> Value:
        """Add an int64 vector constant: axes, shapes, pads."""
        return self.constant(np.array(elements, dtype=np.int64))

    def known(self, value: Value) -> Array | None:
        """Return the elements of a constant or of a value computed from shapes; None if they are unknown."""
        return self._inference.elements_of(value)

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
        """Add a node, check it against its operator's signature and infer the types of its outputs.

        Args:
            op: the operator.
            inputs: values, None for an omitted optional input; trailing ones may be left off.
            attributes: attributes that differ from the defaults; lists are converted to tuples.
            outputs: number of outputs, or a name for each (an empty name is replaced by a generated one).
            domain: ``""`` or ``"lite"``.
            name: the node's name; a number is appended if another node has it. By default the operator's name.
            origin: the operator and name in the model that was read.

        Raises:
            GraphError: the node does not fit its operator's signature, or a name is taken. The graph and its names are
                unchanged.
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
        plain = {k: _attribute(a) for k, a in (attributes or {}).items()}
        node = Node(op, inputs, values, plain, domain=domain, name=label, origin=origin or self.origin)
        problems = list(ops.get(node).check(node))
        if problems:
            raise GraphError(f"{node.describe()}: {'; '.join(problems)}")
        for value, type in zip(values, self._inference.infer(node)):
            value.type = type
        # No error is possible below this line, so that a failed call changes nothing.
        self._node_names.add(label)
        for value, wanted in zip(values, names):
            if wanted:
                self._set_name(value, wanted)
        for value, wanted in zip(values, names):
            if not wanted:
                self._set_name(value, self._free_name(value.name), renamable=True)
                self._unnamed.add(value)
        self.graph.nodes.append(node)
        return values

    def rename(self, value: Value, name: str) -> bool:
        """Replace the generated name of a node's output if the new name is free; return True if it was replaced."""
        if value not in self._unnamed or name in self._names:
            return False
        self._unnamed.discard(value)
        self._set_name(value, name, renamable=True)
        return True

    def output(self, value: Value, name: str = "") -> None:
        """Make a value a graph output. If it already has another name, an Identity node provides the new one.

        Raises:
            GraphError: the name is taken by another value.
        """
        if not isinstance(value, Value):
            raise GraphError(f"an output of graph {self.graph.name!r} must be a Value, is {_shown(value)}")
        if name and value.name != name:
            self._require_free(name)
            if value in self._unnamed:
                self._set_name(value, name)
            else:
                value = self.add("Identity", [value], output=name)
        self._unnamed.discard(value)
        self._renamable.discard(value)
        self.graph.outputs.append(value)

    def build(self) -> Graph:
        """Verify the graph and return it."""
        if self._outer is None:
            ops.verify(self.graph)
            self._known.attach(self.graph)
        return self.graph

    def is_taken(self, name: str) -> bool:
        """Return True if the caller chose this name for a value, so that no other value can have it."""
        holder = self._names.get(name)
        return holder is not None and holder not in self._renamable

    def unique_name(self, wanted: str) -> str:
        """Reserve and return ``wanted``, with a number appended if the name is taken."""
        name = self._free_name(wanted)
        self._names[name] = None
        return name

    def _free_name(self, wanted: str) -> str:
        return self._numbered(wanted, self._names)

    def _numbered(self, wanted: str, taken: Container[str]) -> str:
        """Return ``wanted``, with a number appended if it is taken."""
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

    def _set_name(self, value: Value, name: str, *, renamable: bool = False) -> None:
        """Name a value; another value with this name, which must be a generated one, is renamed."""
        holder = self._names.get(name)
        self._names[name] = value
        if holder is not None and holder is not value:
            holder.name = self._free_name(name)
            self._names[holder.name] = holder
        if self._names.get(value.name) is value and value.name != name:
            del self._names[value.name]
        value.name = name
        (self._renamable.add if renamable else self._renamable.discard)(value)


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:60]!r}"


def _check_values(op: str, inputs: Sequence[Value | None]) -> None:
    if isinstance(inputs, (str, Value)) or not isinstance(inputs, Iterable):
        raise GraphError(f"the inputs of {op} must be a list of values, are {_shown(inputs)}")
    for index, value in enumerate(inputs):
        if value is not None and not isinstance(value, Value):
            raise GraphError(
                f"input {index} of {op} must be a Value or None, is {_shown(value)}; GraphBuilder.constant makes a "
                "value from an array"
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
        f"input {name!r}: a dimension must be a size of at least 0, a symbol's name, or None for an unknown size; "
        f"is {dim!r}"
    )


def _constant_array(given: Any, dtype: Any) -> Array:
    """Convert to a read-only array that is not shared with writable memory."""
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
        kept = np.isfinite(converted) | ~np.isfinite(array) if dtype.is_floating else converted == array
    if not kept.all():
        raise ValueError(f"{dtype} cannot hold all its elements ({array.dtype}); convert them first, as you want it")
    return converted


def _attribute(attribute: Any) -> Attribute:
    if isinstance(attribute, (list, tuple)):
        return tuple(_attribute(a) for a in attribute)  # type: ignore[return-value]
    if isinstance(attribute, np.integer):
        return int(attribute)
    return float(attribute) if isinstance(attribute, np.floating) else attribute
