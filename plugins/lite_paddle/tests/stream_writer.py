"""Writer of the oldest Paddle-Lite model files, which no released converter writes: plain streams without tags."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from lite_paddle.paddle_lite.program import Attribute, AttributeKind, Block, Operator, Program, Variable, VariableKind
from lite_paddle.paddle_lite.type_numbers import NUMBERS, STREAM_NUMBERS

_NUMBERS = {number: here for here, number in STREAM_NUMBERS.items()}
_ORDER = (
    ("INT", "i"), ("FLOAT", "f"), ("STRING", "s"), ("INTS", "i*"), ("FLOATS", "f*"), ("STRINGS", "s*"),
    ("BOOLEAN", "?"), ("BOOLEANS", "?*"), ("BLOCK", "i"), ("LONG", "q"), ("BLOCKS", "i*"), ("LONGS", "q*"),
)  # fmt: skip


def write_topology(program: Program) -> bytes:
    """Return the stream with blocks, variables and operators."""
    return _listed(_block, program.blocks) + struct.pack("<q", program.version)


def write_parameters(program: Program) -> bytes:
    """Return the stream with the parameters."""
    return _listed(lambda item: _parameter(*item), program.parameters.items())


def write_file(program: Program, opt_version: bytes = b"v2.6.1") -> bytes:
    """Return a ``.nb`` file of the container version 0."""
    topology = write_topology(program)
    return struct.pack("<H16sQ", 0, opt_version, len(topology)) + topology + write_parameters(program)


def _listed(write: Callable[[Any], bytes], items: Iterable[Any]) -> bytes:
    parts = [write(item) for item in items]
    return struct.pack("<Q", len(parts)) + b"".join(parts)


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _block(block: Block) -> bytes:
    content = struct.pack("<ii", block.index, block.parent)
    content += _listed(_variable, block.variables) + _listed(_operator, block.operators)
    return content + struct.pack("<i", block.forward_index)


def _variable(variable: Variable) -> bytes:
    kinds = (VariableKind.SELECTED_ROWS, VariableKind.LOD_TENSOR, VariableKind.LOD_TENSOR_ARRAY)
    tensors = [_tensor(variable if variable.kind is kind else None) for kind in kinds]
    levels = [struct.pack("<i", variable.lod_level if variable.kind is kind else 0) for kind in kinds]
    content = _text(variable.name) + struct.pack("<i", _NUMBERS[int(variable.kind)])
    content += tensors[0] + tensors[1] + levels[1] + tensors[2] + levels[2]
    return content + bytes(8 + 8) + struct.pack("<?", variable.persistable)


def _tensor(variable: Variable | None) -> bytes:
    if variable is None or variable.element_type is None:
        return bytes(4 + 8)
    number = _NUMBERS[NUMBERS[variable.element_type]]
    return struct.pack("<i", number) + _listed(lambda size: struct.pack("<q", size), variable.shape or ())


def _operator(operator: Operator) -> bytes:
    content = _text(operator.type)
    for slots in (operator.inputs, operator.outputs):
        content += _listed(lambda item: _text(item[0]) + _listed(_text, item[1]), slots.items())
    return content + _listed(lambda item: _attribute(*item), operator.attributes.items()) + b"\0"


def _attribute(name: str, attribute: Attribute) -> bytes:
    content = _text(name) + struct.pack("<i", attribute.kind)
    for kind, code in _ORDER:
        value = attribute.value if attribute.kind is AttributeKind[kind] else None
        if code.endswith("*"):
            content += _listed(lambda item, code=code: _value(code[0], item), value or ())  # type: ignore[misc]
        else:
            content += _value(code, value)
    return content


def _value(code: str, value: Any) -> bytes:
    return _text(value or "") if code == "s" else struct.pack(f"<{code}", value or 0)


def _parameter(name: str, array: Any) -> bytes:
    content = _text(name) + bytes(4 + 8 + 8 + 4) + struct.pack("<i", _NUMBERS[NUMBERS[array.dtype.name]])
    content += _listed(lambda size: struct.pack("<q", size), array.shape)
    return content + struct.pack("<Q", array.nbytes) + array.tobytes()
