"""Write the shapes of its inputs into an ONNX model.

    python fix_shapes.py MODEL SHAPES TWIN

``SHAPES`` is a JSON object, for example ``{"x": [1, 3, 48, 320]}``: engines that know the shapes when they load a model
optimise more. What the model says about the shapes of its outputs is taken out, because it may not be true any more.
A model with branches stays as it is: those for other shapes would not fit.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def fix_shapes(model: Path, shapes: Mapping[str, Sequence[int]], twin: Path) -> None:
    """Write a copy of a model whose inputs have these shapes."""
    import onnx

    loaded = onnx.load(model)
    has_branches = any(node.op_type == "If" for node in loaded.graph.node)
    for taken in loaded.graph.input:
        if taken.name in shapes and not has_branches:
            sizes = taken.type.tensor_type.shape
            sizes.ClearField("dim")
            for size in shapes[taken.name]:
                sizes.dim.add().dim_value = size
    for given in loaded.graph.output if not has_branches else ():
        given.type.tensor_type.ClearField("shape")
    unfinished = twin.with_suffix(".unfinished.onnx")
    onnx.save(loaded, unfinished)
    os.replace(unfinished, twin)


if __name__ == "__main__":
    fix_shapes(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))
