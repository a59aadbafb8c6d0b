"""Which versions of operator sets can be read: those whose meaning is known."""

from __future__ import annotations

from pathlib import Path

import onnx.defs

from lite_core import ops
from lite_core.errors import ModelFormatError
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["check_version", "opsets_of"]

#: ONNX's first; :mod:`lite_onnx.lowering.operators.ai_onnx.versions` brings operators up from there.
_OLDEST = 1
#: Up to here it was read what changed since Lite's opset: element types and attributes were added, which a node of
#: Lite's refuses where it has not got them, and new operators. What both have means the same.
_NEWEST_READ = 28


def opsets_of(model: onnx.ModelProto, path: Path) -> dict[str, int]:
    """The version of each operator set that a model says it is written for, by domain.

    Raises:
        ModelFormatError: there is no such version.
    """
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    if opsets.setdefault("", _OLDEST) < _OLDEST:
        raise ModelFormatError(
            f"model {str(path)!r} is damaged: it is written for opset {opsets['']}, and ONNX's first is "
            f"{_OLDEST}; export it again"
        )
    return opsets


def check_version(node: SourceNode) -> None:
    """Make sure that an operator of ONNX means in its version what Lite takes it for.

    Raises:
        Unlowerable: it changed, or nobody here knows.
    """
    if node.domain or node.version <= _NEWEST_READ:
        return
    newest = ops.OPSET_VERSION
    if node.version > onnx.defs.onnx_opset_version():
        raise Unlowerable(
            f"it is written for opset {node.version}, which is newer than Lite ({newest}) and the package onnx "
            f"({onnx.defs.onnx_opset_version()}), so that nothing says whether it means the same",
            f"pip install --upgrade onnx lite-onnx, or export the model with opset_version={newest}",
        )
    if not onnx.defs.has(node.op, node.domain):
        return
    since: int = onnx.defs.get_schema(node.op, node.version, node.domain).since_version
    if since > _NEWEST_READ and ops.find(node.op, node.domain) is not None:
        raise Unlowerable(
            f"its meaning changed at opset {since}, and Lite has it as it was at opset {newest}",
            f"pip install --upgrade lite-onnx, or export the model with opset_version={newest}",
        )
