"""Detection of ONNX models by their first bytes, without the package onnx."""

from __future__ import annotations

from pathlib import Path

__all__ = ["sniff"]

#: Fields of ``ModelProto``, by number and wire type.
_FIELDS = {
    (1, 0): "ir_version",
    (2, 2): "producer_name",
    (3, 2): "producer_version",
    (4, 2): "domain",
    (5, 0): "model_version",
    (6, 2): "doc_string",
    (7, 2): "graph",
    (8, 2): "opset_import",
    (14, 2): "metadata_props",
    (20, 2): "training_info",
    (25, 2): "functions",
    (26, 2): "configuration",
}
_MAX_BYTES = 4096
#: IR versions are small numbers: this limit tells ONNX from other protocol buffers.
_MAX_IR_VERSION = 1000


def sniff(path: Path) -> bool:
    """Return True if a file, or a file in a folder, begins like a ``ModelProto``.

    It must contain only fields of ``ModelProto``, a small IR version, and a graph or opsets. Serializers may write
    fields in any order. If the graph comes first, or the file ends too early, the file's suffix decides.
    """
    if path.is_dir():
        return any(sniff(file) for file in path.glob("*.onnx") if file.is_file())
    try:
        with path.open("rb") as file:
            start = file.read(_MAX_BYTES)
            size = file.seek(0, 2)
    except OSError:
        return False
    is_named = path.suffix == ".onnx"
    seen: set[str] = set()
    offset = 0
    while offset < len(start):
        tag, offset = _varint(start, offset)
        name = _FIELDS.get((tag >> 3, tag & 7))
        number, offset = _varint(start, offset)
        if name is None or offset < 0 or (name == "ir_version" and not 0 < number < _MAX_IR_VERSION):
            return is_named and "ir_version" in seen  # the reader reports what is damaged
        seen.add(name)
        if tag & 7 == 2:
            offset += number
            if offset > size:
                return is_named and "ir_version" in seen
    is_model = "ir_version" in seen and bool(seen & {"graph", "opset_import"})
    return is_model or (bool(seen) and is_named)


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return the number that begins at an offset, and the offset after it; -1 if there is no number."""
    value = 0
    for shift in range(0, 70, 7):
        if not 0 <= offset < len(data):
            return 0, -1
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    return 0, -1
