"""Conversion of ``AttributeProto`` to Python values and to attributes of Lite's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto

from lite_core.ops.registry import OpDef
from lite_onnx.lowering.node import Attribute, SourceNode
from lite_onnx.lowering.unlowerable import AlreadyReported, Unlowerable
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
    """Read the attributes of a node.

    Args:
        node: a node of a graph or a function.
        outer: the attributes of the enclosing function in this call; empty outside functions.
        read: reads the elements of a tensor.

    Raises:
        Unlowerable: attributes are damaged, or of a kind that Lite does not support.
    """
    found: dict[str, Attribute] = {}
    problems: list[str] = []
    for attribute in node.attribute:
        source: AttributeProto | None = attribute
        if attribute.ref_attr_name:
            source = outer.get(attribute.ref_attr_name)
        if source is None:  # the call omits it, and the function has no default for it
            continue
        kind = source.type or _infer_kind(source)
        reader = _READERS.get(kind)
        if attribute.name in found:
            problems.append(f"its attribute {attribute.name!r} occurs twice")
        elif reader is None:
            kind_name = _kind_name(kind)
            problems.append(f"its attribute {attribute.name!r} is of the kind {kind_name}, which Lite does not read")
        else:
            try:
                found[attribute.name] = reader(source, read)
            except ValueError as error:
                problems.append(f"its attribute {attribute.name!r} cannot be read: {error}")
    if problems:
        raise Unlowerable("; ".join(problems))
    return found


def _kind_name(kind: int) -> str:
    known = _A.AttributeType.values()
    return str(_A.AttributeType.Name(kind)).lower() if kind in known else str(kind)


def _infer_kind(attribute: AttributeProto) -> int:
    """Infer the kind of an attribute from the field that is set: IR version 3 allows to omit the kind."""
    kinds = {"f": _A.FLOAT, "i": _A.INT, "s": _A.STRING, "t": _A.TENSOR, "g": _A.GRAPH}
    present = [kind for field, kind in kinds.items() if attribute.HasField(field)]
    lists = {"floats": _A.FLOATS, "ints": _A.INTS, "strings": _A.STRINGS}
    present += [kind for field, kind in lists.items() if getattr(attribute, field)]
    return int(present[0]) if present else int(_A.INTS)


def attributes_for(definition: OpDef, node: SourceNode, body: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Convert a node's attributes to attributes of an operator of Lite; numbers of element types become ``DType``.

    Args:
        definition: the operator.
        node: the node.
        body: lowers the graph attribute with the given name.

    Raises:
        AlreadyReported: nodes of the graphs cannot be lowered; raised after all graphs are lowered.
    """
    converted: dict[str, Any] = {}
    reported: AlreadyReported | None = None
    for name, attribute in node.attributes.items():
        spec = definition.attributes.get(name)
        if spec is not None and spec.kind == "dtype" and isinstance(attribute, int):
            converted[name] = element_type(attribute)
        elif spec is not None and spec.kind == "graph":
            try:
                converted[name] = body(name, attribute)
            except AlreadyReported as problem:
                reported = problem
        else:
            converted[name] = tuple(attribute) if isinstance(attribute, list) else attribute
    if reported is not None:
        raise reported
    return converted
