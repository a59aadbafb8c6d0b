"""Checks of nodes against ONNX's operator schemas: meaning in an opset, and element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto, defs

from lite_core.ir import DType, Node, Value
from lite_onnx.reader.element_types import onnx_number
from lite_onnx.writer.problems import Unwritable

__all__ = ["NEWEST_OPSET", "OLDEST_OPSET", "check_opset", "parameter", "schema_of", "widened_types"]

#: The opset that defines Lite's operators, which is the newest that can be written, and the oldest.
NEWEST_OPSET = 22
OLDEST_OPSET = 17

Schema = Any

#: Operators whose nodes look the same before this opset but have another meaning.
_CHANGED = {"GroupNormalization": 21, "GridSample": 20, "DFT": 20}
#: String attributes, and the opset that introduced them; schemas do not list them.
_NEW_STRINGS = {
    ("Resize", "half_pixel_symmetric"): 19,
    ("Pad", "wrap"): 19,
    ("ScatterElements", "max"): 18,
    ("ScatterElements", "min"): 18,
    ("ScatterND", "max"): 18,
    ("ScatterND", "min"): 18,
}


def schema_of(node: Node, opset: int) -> Schema:
    """Return ONNX's schema of a node's operator.

    Raises:
        Unwritable: the opset does not have it, or not with these inputs and attributes.
    """
    remedy = f"write the model with opset {NEWEST_OPSET}"
    try:
        schema = defs.get_schema(node.op, opset)
    except defs.SchemaError:
        raise Unwritable(f"opset {opset} has no such operator", remedy if opset < NEWEST_OPSET else "") from None
    if opset < NEWEST_OPSET and not _means_the_same(node, schema, opset):
        raise Unwritable(f"opset {opset} has it in another form", remedy)
    return schema


def check_opset(opset: int) -> None:
    """Check that models of an opset can be written.

    Raises:
        ValueError: they cannot.
    """
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise ValueError(f"opset must be {OLDEST_OPSET} to {NEWEST_OPSET}, but is {opset}")


def _means_the_same(node: Node, old: Schema, opset: int) -> bool:
    """Return True if a node has the same meaning in an older opset, whose schema may lack features it does not use."""
    new = defs.get_schema(node.op, NEWEST_OPSET)
    if old.since_version == new.since_version:
        return True
    if _CHANGED.get(node.op, 0) > opset:
        return False
    if any(_NEW_STRINGS.get((node.op, a), 0) > opset for a in node.attributes.values() if isinstance(a, str)):
        return False
    defaults = all(
        name in node.attributes or attribute.default_value == new.attributes[name].default_value
        for name, attribute in old.attributes.items()
        if name in new.attributes
    )
    names = [[p.name for p in schema.inputs][: len(node.inputs)] for schema in (old, new)]
    return defaults and node.attributes.keys() <= old.attributes.keys() and names[0] == names[1]


def parameter(formals: Sequence[Any], index: int) -> Any:
    """Return the formal parameter at a position; the last one may be variadic."""
    return formals[min(index, len(formals) - 1)]


def widened_types(node: Node, schema: Schema) -> set[str]:
    """Return the type variables that must be widened to float32: the node's half type is not in ONNX's schema.

    The references compute half types in float32: casts before and after the operator are equivalent.

    Raises:
        Unwritable: ONNX's operator does not take the node's element types.
    """
    widened: set[str] = set()
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for index, value in enumerate(values):
            formal = parameter(formals, index)
            if value is None or _type_of(value) in formal.types:
                continue
            can_widen = value.dtype.is_half and _type_name(DType.FLOAT32) in formal.types
            if not can_widen or (values is node.outputs and formal.type_str not in widened):
                raise Unwritable(
                    f"in ONNX, its {formal.name} must be {', '.join(sorted(formal.types))}, but is {_type_of(value)}",
                    "insert casts to one of these types before and after it",
                )
            widened.add(formal.type_str)
    return widened


def _type_of(value: Value) -> str:
    return _type_name(value.dtype)


def _type_name(dtype: DType) -> str:
    return f"tensor({TensorProto.DataType.Name(onnx_number(dtype)).lower()})"
