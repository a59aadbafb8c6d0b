"""Store the weights of an ONNX model's matrix products in 8 or 4 bits, as MatMulNBits of the domain com.microsoft.

    python to_narrow_weights.py SOURCE BITS TARGET

The weights have a scale for each block of 32 along the depth, and are rounded to nearest. The operator lets engines
round the other factor to 8 bits (``accuracy_level`` 4), as models for processors are usually exported.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BLOCK = 32
_DOMAIN = "com.microsoft"


def narrowed(weights: Array, bits: int) -> tuple[Array, Array]:
    """Return weights [depth, columns] as packed bytes [columns, blocks, bytes], and the scales [columns, blocks]."""
    columns = weights.T.reshape(weights.shape[1], -1, _BLOCK).astype(np.float64)
    middle = 1 << bits - 1
    scales = np.abs(columns).max(axis=2) / (middle - 1)
    numbers = np.rint(columns / np.where(scales > 0, scales, 1.0)[:, :, None]) + middle
    numbers = numbers.astype(np.uint8)
    packed = numbers if bits == 8 else numbers[:, :, ::2] | numbers[:, :, 1::2] << 4
    return packed, scales.astype(np.float32)


def convert(source: Path, bits: int, target: Path) -> None:
    """Write a copy of a model whose products with constant weights read ``bits`` bits."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(source)
    graph = model.graph
    arrays = {tensor.name: tensor for tensor in graph.initializer}
    nodes = []
    for node in graph.node:
        found = arrays.get(node.input[1]) if node.op_type == "MatMul" else None
        if found is None or len(found.dims) != 2 or found.dims[0] % _BLOCK:
            nodes.append(node)
            continue
        packed, scales = narrowed(numpy_helper.to_array(found), bits)
        names = [f"{found.name}_{bits}_bits", f"{found.name}_scales"]
        if names[0] not in arrays:
            tensors = [numpy_helper.from_array(array, name) for array, name in zip((packed, scales), names)]
            graph.initializer.extend(tensors)
            arrays.update(zip(names, tensors))
        sizes = {"K": found.dims[0], "N": found.dims[1], "bits": bits, "block_size": _BLOCK, "accuracy_level": 4}
        nodes.append(
            helper.make_node("MatMulNBits", [node.input[0], *names], node.output, node.name, domain=_DOMAIN, **sizes)
        )
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    if all(opset.domain != _DOMAIN for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    unfinished = target.with_suffix(".unfinished.onnx")
    onnx.save(model, unfinished)
    os.replace(unfinished, target)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
