"""``AttributeProto`` as Python's numbers, texts and lists, and as Lite's operators want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto

from lite_core.ops.registry import OpDef
from lite_onnx.lowering.node import Attribute, SourceNode
from lite_onnx.lowering.unlowerable import Reported, Unlowerable
from lite_onnx.reader.element_types import element_type

__all__ = ["attributes_for", "read_attributes"]

Read = Callable[[TensorProto | SparseTensorProto], Any]

_A = AttributeProto
_READERS: dict[int, Callable[[AttributeProto, Read], Any]] = {
    _A.FLOAT: lambda a, read: a.f,
    _A.INT: lambda a, read: a.i,
    _A.STRING: lambda a, read: a.s.decode(),
    _A.TENSOR: lambda a, read: read(a.t),
    _A.SPARSE_TENSOR: lambda a, read: read(a.sparse_tensor),
    _A.GRAPH: lambda a, read: a.g,
    _A.TYPE_PROTO: lambda a, read: a.tp,
    _A.FLOATS: lambda a, read: list(a.floats),
    _A.INTS: lambda a, read: list(a.ints),
    _A.STRINGS: lambda a, read: [s.decode() for s in a.strings],
    _A.GRAPHS: lambda a, read: list(a.graphs),
}


def read_attributes(node: NodeProto, outer: Mapping[str, AttributeProto], read: Read) -> dict[str, Attribute]:
    """The attributes of a node.

    Args:
        node: of a graph or a function.
        outer: what the attributes of the function around it are in this call; none outside of functions.
        read: gives the elements of a tensor.

    Raises:
        Unlowerable: attributes are damaged, or of a kind that Lite has not.
    """
    found: dict[str, Attribute] = {}
    problems: list[str] = []
    for attribute in node.attribute:
        given: AttributeProto | None = attribute
        if attribute.ref_attr_name:
            given = outer.get(attribute.ref_attr_name)
        if given is None:  # the call left it out, and the function has no default for it
            continue
        kind = given.type or _guessed_kind(given)
        reader = _READERS.get(kind)
        if attribute.name in found:
            problems.append(f"its attribute {attribute.name!r} is there twice")
        elif reader is None:
            kind_name = _kind_name(kind)
            problems.append(f"its attribute {attribute.name!r} is of the kind {kind_name}, which Lite does not read")
        else:
            try:
                found[attribute.name] = reader(given, read)
            except ValueError as error:
                problems.append(f"its attribute {attribute.name!r} cannot be read: {error}")
    if problems:
        raise Unlowerable("; ".join(problems))
    return found


def _kind_name(kind: int) -> str:
    known = _A.AttributeType.values()
    return str(_A.AttributeType.Name(kind)).lower() if kind in known else str(kind)


def _guessed_kind(attribute: AttributeProto) -> int:
    """The kind of an attribute that does not say it: IR version 3 let it be found by what is there."""
    kinds = {"f": _A.FLOAT, "i": _A.INT, "s": _A.STRING, "t": _A.TENSOR, "g": _A.GRAPH}
    present = [kind for field, kind in kinds.items() if attribute.HasField(field)]
    lists = {"floats": _A.FLOATS, "ints": _A.INTS, "strings": _A.STRINGS}
    present += [kind for field, kind in lists.items() if getattr(attribute, field)]
    return int(present[0]) if present else int(_A.INTS)


def attributes_for(definition: OpDef, node: SourceNode, body: Callable[[str, Any], Any]) -> dict[str, Any]:
    """The node's attributes as an operator of Lite takes them: numbers of element types become these.

    Args:
        definition: the operator.
        node: the node.
        body: makes a graph of the graph attribute with a name.

    Raises:
        Reported: nodes of the graphs cannot be lowered; all graphs are looked at.
    """
    made: dict[str, Any] = {}
    reported: Reported | None = None
    for name, attribute in node.attributes.items():
        spec = definition.attributes.get(name)
        if spec is not None and spec.kind == "dtype" and isinstance(attribute, int):
            made[name] = element_type(attribute)
        elif spec is not None and spec.kind == "graph":
            try:
                made[name] = body(name, attribute)
            except Reported as problem:
                reported = problem
        else:
            made[name] = tuple(attribute) if isinstance(attribute, list) else attribute
    if reported is not None:
        raise reported
    return made
