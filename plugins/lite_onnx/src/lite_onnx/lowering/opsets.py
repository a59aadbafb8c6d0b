"""The versions of operator sets that can be read, because their meaning is known."""

from __future__ import annotations

from pathlib import Path

import onnx.defs

from lite_core import ops
from lite_core.errors import ModelFormatError
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["check_version", "opsets_of"]

#: ONNX's first opset; :mod:`lite_onnx.lowering.operators.ai_onnx.versions` adapts operators from there.
_OLDEST_OPSET = 1
#: The newest opset whose changes since Lite's opset were reviewed. They are new operators, attributes and element
#: types; a node of Lite rejects attributes and element types that it does not have. The rest means the same.
_NEWEST_REVIEWED = 28


def opsets_of(model: onnx.ModelProto, path: Path) -> dict[str, int]:
    """Return the version of each operator set that a model is written for, by domain.

    Raises:
        ModelFormatError: the version does not exist.
    """
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    if opsets.setdefault("", _OLDEST_OPSET) < _OLDEST_OPSET:
        raise ModelFormatError(
            f"model {str(path)!r} is damaged: it is written for opset {opsets['']}, and ONNX's first is "
            f"{_OLDEST_OPSET}; export it again"
        )
    return opsets


def check_version(node: SourceNode) -> None:
    """Check that an operator of ONNX in its version means the same as Lite's operator.

    Raises:
        Unlowerable: its meaning changed, or is unknown.
    """
    if node.domain or node.version <= _NEWEST_REVIEWED:
        return
    newest = ops.OPSET_VERSION
    if node.version > onnx.defs.onnx_opset_version():
        raise Unlowerable(
            f"it is written for opset {node.version}, which is newer than Lite ({newest}) and the package onnx "
            f"({onnx.defs.onnx_opset_version()}): its meaning may have changed",
            f"pip install --upgrade onnx lite-onnx, or export the model with opset_version={newest}",
        )
    if not onnx.defs.has(node.op, node.domain):
        return
    since: int = onnx.defs.get_schema(node.op, node.version, node.domain).since_version
    if since > _NEWEST_REVIEWED and ops.find(node.op, node.domain) is not None:
        raise Unlowerable(
            f"its meaning changed at opset {since}, and Lite implements that of opset {newest}",
            f"pip install --upgrade lite-onnx, or export the model with opset_version={newest}",
        )
