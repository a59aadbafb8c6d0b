"""Write the shapes of the inputs into an ONNX model.

    python fix_shapes.py MODEL SHAPES TARGET

``SHAPES`` is a JSON object, for example ``{"x": [1, 3, 48, 320]}``: engines that know the shapes when they load a model
optimize more. Of the declared shapes of the outputs only the ranks are kept, because the sizes may have become wrong.
A model with branches is copied unchanged: branches for other shapes would not fit.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def fix_shapes(model: Path, shapes: Mapping[str, Sequence[int]], target: Path) -> None:
    """Write a copy of a model whose inputs have these shapes."""
    import onnx

    loaded = onnx.load(model)
    has_branches = any(node.op_type == "If" for node in loaded.graph.node)
    for graph_input in loaded.graph.input:
        if graph_input.name in shapes and not has_branches:
            sizes = graph_input.type.tensor_type.shape
            sizes.ClearField("dim")
            for size in shapes[graph_input.name]:
                sizes.dim.add().dim_value = size
    for graph_output in loaded.graph.output if not has_branches else ():
        for size in graph_output.type.tensor_type.shape.dim:
            size.Clear()
    unfinished = target.with_suffix(".unfinished.onnx")
    onnx.save(loaded, unfinished)
    os.replace(unfinished, target)


if __name__ == "__main__":
    fix_shapes(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))
