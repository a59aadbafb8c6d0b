"""Attributes that said nothing of the result, or nothing that matters in inference."""

from __future__ import annotations

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.taking import take_int
from lite_onnx.lowering.registry import adapts

_IN_PLACE = ("Abs", "Add", "BatchNormalization", "Ceil", "Clip", "Div", "Dropout", "Elu", "Exp", "Floor",
             "HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mul", "Neg", "PRelu",
             "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh")  # fmt: skip


@adapts(*_IN_PLACE, until=5)
@adapts("Reshape", until=4)
def without_consumed_inputs(node: SourceNode, context: Context) -> None:
    """A hint which inputs may be overwritten."""
    node.attributes.pop("consumed_inputs", None)


@adapts("RNN", "GRU", "LSTM", until=6)
def without_output_sequence(node: SourceNode, context: Context) -> None:
    """It said whether the first output is wanted, as its name does."""
    node.attributes.pop("output_sequence", None)


@adapts("GRU", until=2)
def direction_as_it_is_spelled(node: SourceNode, context: Context) -> None:
    """The first version's text has a default of ``foward``."""
    if node.attributes.get("direction") == "foward":
        node.attributes["direction"] = "forward"


@adapts("Dropout", until=6)
def without_test_mode(node: SourceNode, context: Context) -> None:
    """Inference is test mode."""
    node.attributes.pop("is_test", None)


@adapts("Dropout", until=9)
def mask_like_data(node: SourceNode, context: Context) -> list[Item] | None:
    """The mask was of the data's element type."""
    if len(node.outputs) < 2:
        return None
    data = context.value(node, 0)
    output, mask = context.add_node("Dropout", [data], outputs=2)
    return [output, context.add("Cast", [mask], {"to": data.dtype})]


@adapts("Dropout", until=11)
def without_ratio(node: SourceNode, context: Context) -> None:
    """Inference drops nothing, whatever the ratio is."""
    node.attributes.pop("ratio", None)


@adapts("BatchNormalization", until=6)
def outputs_of_test_mode(node: SourceNode, context: Context) -> None:
    """``is_test=1`` filled the first output alone."""
    if take_int(node, "is_test", 0):
        node.outputs = node.outputs[:1]


@adapts("BatchNormalization", until=13)
def training_by_outputs(node: SourceNode, context: Context) -> None:
    """The node was for training where it has more than one output; the last two had no meaning of their own."""
    if len(node.outputs) > 1:
        node.outputs = node.outputs[:3]
        node.attributes["training_mode"] = 1
