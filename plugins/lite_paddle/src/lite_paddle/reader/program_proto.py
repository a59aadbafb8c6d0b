"""Paddle's ProgramDesc messages for the protobuf runtime, built from a table.

Source of names and numbers: paddle/fluid/framework/framework.proto (Apache-2.0), proto2. Three deliberate
differences keep the wire format: "required" fields are optional (the reader reports a missing one by its name),
enumerations are int32 (an unknown number must not vanish), and the values of string attributes are bytes (they may
hold serialised engines or paths in any encoding).
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from lite_core.errors import ModelFormatError

_PACKAGE = "lite_paddle.program"

# Message: fields as "number name type"; "*" marks repeated ones.
_MESSAGES = """
ProgramDesc: 1 blocks BlockDesc*, 4 version Version, 5 op_version_map OpVersionMap
Version: 1 version int64
OpVersionMap: 1 pair OpVersionPair*
OpVersionPair: 1 op_name string, 2 op_version OpVersion
OpVersion: 1 version int32
BlockDesc: 1 idx int32, 2 parent_idx int32, 3 vars VarDesc*, 4 ops OpDesc*
VarDesc: 1 name string, 2 type VarType, 3 persistable bool, 4 need_check_feed bool, 5 is_parameter bool
VarType: 1 type int32, 2 selected_rows TensorDesc, 3 dense_tensor DenseTensorDesc
VarType: 4 tensor_array DenseTensorDesc
TensorDesc: 1 data_type int32, 2 dims int64*
DenseTensorDesc: 1 tensor TensorDesc, 2 lod_level int32
OpDesc: 1 inputs OpVar*, 2 outputs OpVar*, 3 type string, 4 attrs OpAttr*
OpVar: 1 parameter string, 2 arguments string*
OpAttr: 1 name string, 2 type int32, 3 i int32, 4 f float, 5 s bytes, 6 ints int32*, 7 floats float*
OpAttr: 8 strings bytes*, 10 b bool, 11 bools bool*, 12 block_idx int32, 13 l int64, 14 blocks_idx int32*
OpAttr: 15 longs int64*, 16 float64s double*, 17 var_name string, 18 vars_name string*, 19 float64 double
OpAttr: 20 scalar Scalar, 21 scalars Scalar*
Scalar: 1 type int32, 2 b bool, 3 i int64, 4 r double, 5 c Complex
Complex: 1 r double, 2 i double
"""

# AttrType -> the field of OpAttr that holds the value.
_ATTRIBUTE_FIELDS_TEXT = """
i f s ints floats strings b bools block_idx l blocks_idx longs float64s var_name vars_name float64 scalar
scalars
"""
ATTRIBUTE_FIELDS = _ATTRIBUTE_FIELDS_TEXT.split()


def _build_messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="lite_paddle/program.proto", package=_PACKAGE, syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    messages: dict[str, descriptor_pb2.DescriptorProto] = {}
    for line in _MESSAGES.strip().splitlines():
        name, fields = line.split(": ")
        if name not in messages:
            messages[name] = file.message_type.add(name=name)
        for text in fields.split(", "):
            number, field_name, kind = text.split()
            field = messages[name].field.add(name=field_name, number=int(number), label=kinds.LABEL_OPTIONAL)
            if kind.endswith("*"):
                field.label = kinds.LABEL_REPEATED
            kind = kind.rstrip("*")
            if kind[0].isupper():
                field.type = kinds.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()  # not the default one: Paddle may live in the same process
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in messages
    }


_CLASSES = _build_messages()


def message_class(name: str) -> Any:
    """Return the protobuf class of one message of the table above."""
    return _CLASSES[name]


def parse_message(name: str, data: bytes, what: str) -> Any:
    """Parse one message of the table above.

    Args:
        name: Message name, such as ``"ProgramDesc"``.
        data: Exactly the message's bytes.
        what: Description of the bytes, for the error message.

    Raises:
        ModelFormatError: The bytes are not such a message.
    """
    try:
        return _CLASSES[name].FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ModelFormatError(
            f"{what}: {len(data)} bytes are not a {name} protobuf message ({error}). The file is damaged, "
            "truncated, or not a Paddle model; copy or export it again."
        ) from error
