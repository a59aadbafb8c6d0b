"""Whether a file is an ONNX model, by its first bytes and without the package onnx."""

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
_MOST_BYTES = 4096
#: Enough to tell ONNX from other protocol buffers: IR versions are small numbers.
_MOST_IR_VERSION = 1000


def sniff(path: Path) -> bool:
    """Whether a file, or one in a folder, begins as a ``ModelProto`` does.

    Only its fields, a small IR version, a graph or opsets. Serializers may write fields in any order, so that the graph
    may come first; then the name decides, as it does for a file that ends too early.
    """
    if path.is_dir():
        return any(sniff(file) for file in path.glob("*.onnx") if file.is_file())
    try:
        with path.open("rb") as file:
            start = file.read(_MOST_BYTES)
            size = file.seek(0, 2)
    except OSError:
        return False
    is_named = path.suffix == ".onnx"
    seen: set[str] = set()
    at = 0
    while at < len(start):
        tag, at = _varint(start, at)
        name = _FIELDS.get((tag >> 3, tag & 7))
        number, at = _varint(start, at)
        if name is None or at < 0 or (name == "ir_version" and not 0 < number < _MOST_IR_VERSION):
            return is_named and "ir_version" in seen  # damaged, and the reader can say how
        seen.add(name)
        if tag & 7 == 2:
            at += number
            if at > size:
                return is_named and "ir_version" in seen
    is_model = "ir_version" in seen and bool(seen & {"graph", "opset_import"})
    return is_model or (bool(seen) and is_named)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a place, and the place after it; -1 where there is no number."""
    value = 0
    for shift in range(0, 70, 7):
        if not 0 <= at < len(data):
            return 0, -1
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, -1
