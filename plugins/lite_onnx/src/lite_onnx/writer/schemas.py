"""What ONNX's own definitions say of a node: whether an opset has it as it is, and with these element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto, defs

from lite_core.ir import DType, Node, Value
from lite_onnx.reader.element_types import onnx_number
from lite_onnx.writer.problems import Unwritable

__all__ = ["NEWEST_MEANING", "OLDEST", "check_opset", "parameter", "schema_of", "widened_types"]

#: The opset whose meaning Lite's operators have, and the oldest that can be written.
NEWEST_MEANING = 22
OLDEST = 17

Schema = Any

#: Operators whose nodes look the same before this version and mean something else.
_CHANGED = {"GroupNormalization": 21, "GridSample": 20, "DFT": 20}
#: Texts that attributes may have since a version, which schemas do not list.
_NEW_TEXTS = {
    ("Resize", "half_pixel_symmetric"): 19,
    ("Pad", "wrap"): 19,
    ("ScatterElements", "max"): 18,
    ("ScatterElements", "min"): 18,
    ("ScatterND", "max"): 18,
    ("ScatterND", "min"): 18,
}


def schema_of(node: Node, opset: int) -> Schema:
    """ONNX's definition of a node's operator.

    Raises:
        Unwritable: the opset does not have it, or not with these inputs and attributes.
    """
    remedy = f"write the model with opset {NEWEST_MEANING}"
    try:
        schema = defs.get_schema(node.op, opset)
    except defs.SchemaError:
        raise Unwritable(f"opset {opset} has no such operator", remedy if opset < NEWEST_MEANING else "") from None
    if opset < NEWEST_MEANING and not _means_the_same(node, schema, opset):
        raise Unwritable(f"opset {opset} has it in another form", remedy)
    return schema


def check_opset(opset: int) -> None:
    """Whether models of an opset can be written.

    Raises:
        ValueError: they cannot.
    """
    if not OLDEST <= opset <= NEWEST_MEANING:
        raise ValueError(f"opset must be {OLDEST} to {NEWEST_MEANING}, is {opset}")


def _means_the_same(node: Node, old: Schema, opset: int) -> bool:
    """Whether a node of the newest meaning is one of an older definition, which may lack what the node does not use."""
    new = defs.get_schema(node.op, NEWEST_MEANING)
    if old.since_version == new.since_version:
        return True
    if _CHANGED.get(node.op, 0) > opset:
        return False
    if any(_NEW_TEXTS.get((node.op, a), 0) > opset for a in node.attributes.values() if isinstance(a, str)):
        return False
    defaults = all(
        name in node.attributes or attribute.default_value == new.attributes[name].default_value
        for name, attribute in old.attributes.items()
        if name in new.attributes
    )
    names = [[p.name for p in schema.inputs][: len(node.inputs)] for schema in (old, new)]
    return defaults and node.attributes.keys() <= old.attributes.keys() and names[0] == names[1]


def parameter(formals: Sequence[Any], index: int) -> Any:
    """The formal parameter at a position; the last one may stand for many."""
    return formals[min(index, len(formals) - 1)]


def widened_types(node: Node, schema: Schema) -> set[str]:
    """The type variables of an operator that must be float32 where the node has a half type that ONNX's lacks.

    The references compute halves in float32, so a cast before and one after say the same.

    Raises:
        Unwritable: ONNX's operator does not take the node's element types.
    """
    widened: set[str] = set()
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for index, value in enumerate(values):
            formal = parameter(formals, index)
            if value is None or _text(value) in formal.types:
                continue
            can_widen = value.dtype.is_half and _type_text(DType.FLOAT32) in formal.types
            if not can_widen or (values is node.outputs and formal.type_str not in widened):
                raise Unwritable(
                    f"ONNX has it for {', '.join(sorted(formal.types))} as {formal.name}, not {_text(value)}",
                    "cast around it to one of these types",
                )
            widened.add(formal.type_str)
    return widened


def _text(value: Value) -> str:
    return _type_text(value.dtype)


def _type_text(dtype: DType) -> str:
    return f"tensor({TensorProto.DataType.Name(onnx_number(dtype)).lower()})"
