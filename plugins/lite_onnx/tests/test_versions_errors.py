"""Errors for nodes of old versions, and the axis of DFT, which became an input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto
from versions_models import Array, OldModels, numbers

from lite_core.builder import GraphBuilder
from lite_core.errors import ModelFormatError, UnsupportedOperatorError
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.graphs import GraphLowering
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.operators import adapters
from lite_onnx.lowering.scope import Scope


@pytest.mark.parametrize("version", [6, 7, 9])
def test_training_is_refused(version: int, tmp_path: Path) -> None:
    inputs = [numbers(2, 3, 4), *(abs(numbers(3, seed=seed)) for seed in range(4))]
    with pytest.raises(UnsupportedOperatorError, match=r"BatchNormalization.*\n?.*training"):
        OldModels(tmp_path).lite("BatchNormalization", version, inputs, 5)


@pytest.mark.parametrize(("attributes", "axis"), [({}, 1), ({"axis": 2}, 2)])
def test_axis_of_dft(attributes: dict[str, int], axis: int) -> None:
    builder = GraphBuilder("dft")
    context = Context(builder, Scope({"": 17}), GraphLowering(Path("dft.onnx"), {}))
    node = SourceNode("DFT", "", 17, [builder.input("x", "float32", [1, 4, 4, 1])], ["y"], dict(attributes))
    for adapter in adapters("DFT"):
        adapter.adapt(node, context)
    assert node.inputs[1] is None
    assert context.known(context.value(node, 2)) == axis


@pytest.mark.parametrize(
    ("op", "version", "attributes", "reason"),
    [
        ("Pad", 2, {}, "'pads' is missing"),
        ("Slice", 1, {"starts": [0]}, "'ends' is missing"),
        ("TopK", 1, {}, "'k' is missing"),
        ("TopK", 1, {"k": 1.5}, "'k' must be an integer, is 1.5"),
        ("Slice", 1, {"starts": [0.5], "ends": [1]}, "'starts' must be a list of integers"),
        ("Upsample", 1, {"height_scale": 2.0}, "'width_scale' is missing"),
        ("Upsample", 7, {}, "'scales' is missing"),
        ("ScaledTanh", 1, {"alpha": 1.0}, "'beta' is missing"),
        ("Crop", 1, {"border": [1, 2]}, "border must be four numbers"),
        ("Cast", 1, {"to": "NUMBER"}, "damaged"),
        ("Resize", 11, {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "mode": "linear"}, "nearest"),
        ("Softmax", 7, {"axis": "first"}, "'axis' must be an integer"),
        ("Cast", 1, {"to": 1}, "'to' must be a string, is 1"),
        ("Squeeze", 1, {"axes": 1}, "'axes' must be a list of integers, is 1"),
    ],
)
def test_wrong_attributes_are_errors(
    op: str, version: int, attributes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        OldModels(tmp_path).lite(op, version, [numbers(1, 1, 2, 2)], **attributes)


@pytest.mark.parametrize(
    ("op", "version", "inputs", "outputs", "attributes", "reason"),
    [
        ("Tile", 1, [numbers(2, 3), np.array(2.0), np.array(2.0)], 1, {}, "axis 2 "),
        ("Tile", 1, [numbers(2, 3), np.array(2.0)], 1, {}, "its input 2 is missing"),
        ("BatchNormalization", 7, [numbers(2, 3, 4), *[numbers(3)] * 4], 1, {"spatial": 0}, "the shape of a sample"),
        ("BatchNormalization", 7, [numbers(2, 3, 4), *[numbers(3, 4)] * 4], 5, {"spatial": 0}, "training"),
        (
            "Scan",
            8,
            [None, numbers(1, 2)],
            1,
            {"body": GraphProto(), "num_scan_inputs": 2},
            "num_scan_inputs must be 1 to 1",
        ),
        ("Scan", 8, [None, numbers(1, 2)], 1, {"num_scan_inputs": 1}, "'body' is missing"),
    ],
)
def test_wrong_inputs_are_errors(
    op: str,
    version: int,
    inputs: list[Array | None],
    outputs: int,
    attributes: dict[str, Any],
    reason: str,
    tmp_path: Path,
) -> None:
    constants = (1, 2) if len(inputs) == 3 else ()
    with pytest.raises(UnsupportedOperatorError, match=reason):
        OldModels(tmp_path).lite(op, version, inputs, outputs, constants, **attributes)


def test_opset_0_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="opset 0"):
        OldModels(tmp_path).lite("Relu", 0, [numbers(2)])
