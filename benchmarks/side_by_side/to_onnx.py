"""Convert a Paddle program to ONNX with paddle2onnx, for one input shape.

    python to_onnx.py MODEL PARAMS SHAPE TARGET

``SHAPE`` is the input's shape as JSON, for example ``[1, 3, 224, 224]``: it replaces the symbolic dimensions,
because engines that know the shape when they load a model optimize more.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# The oldest opset with HardSwish is 14; 16 is the newest that paddle2onnx 1.3 writes for all the models.
OPSET = 16


def convert(model: Path, params: Path, shape: list[int], target: Path) -> None:
    """Write the ONNX copy of a Paddle program with one input."""
    import onnx
    import paddle2onnx

    unfinished = target.with_suffix(".unfinished.onnx")
    paddle2onnx.export(str(model), str(params), str(unfinished), opset_version=OPSET, verbose=False)
    converted = onnx.load(unfinished)
    (graph_input,) = converted.graph.input
    dimensions = graph_input.type.tensor_type.shape.dim
    if len(dimensions) != len(shape):
        raise ValueError(f"{model}: its input has {len(dimensions)} dimensions, the shape {shape} has {len(shape)}")
    for dimension, size in zip(dimensions, shape):
        dimension.Clear()
        dimension.dim_value = size
    onnx.save(converted, unfinished)
    os.replace(unfinished, target)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), Path(sys.argv[4]))
