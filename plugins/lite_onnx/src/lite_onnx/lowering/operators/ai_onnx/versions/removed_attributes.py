"""Adapters for removed attributes that do not affect the result, or not in inference."""

from __future__ import annotations

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_int
from lite_onnx.lowering.registry import adapts

_IN_PLACE = ("Abs", "Add", "BatchNormalization", "Ceil", "Clip", "Div", "Dropout", "Elu", "Exp", "Floor",
             "HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mul", "Neg", "PRelu",
             "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh")  # fmt: skip


@adapts(*_IN_PLACE, until=5)
@adapts("Reshape", until=4)
def drop_consumed_inputs(node: SourceNode, context: Context) -> None:
    """Drop the hint about inputs that may be overwritten."""
    node.attributes.pop("consumed_inputs", None)


@adapts("RNN", "GRU", "LSTM", until=6)
def drop_output_sequence(node: SourceNode, context: Context) -> None:
    """Drop the flag for the first output, whose name already tells if it is wanted."""
    node.attributes.pop("output_sequence", None)


@adapts("GRU", until=2)
def fix_spelling_of_direction(node: SourceNode, context: Context) -> None:
    """Correct ``foward``, the default in the first version's specification."""
    if node.attributes.get("direction") == "foward":
        node.attributes["direction"] = "forward"


@adapts("Dropout", until=6)
def drop_is_test(node: SourceNode, context: Context) -> None:
    """Drop the flag for test mode: inference always is test mode."""
    node.attributes.pop("is_test", None)


@adapts("Dropout", until=9)
def mask_like_data(node: SourceNode, context: Context) -> list[Item] | None:
    """Cast the mask to the data's element type."""
    if len(node.outputs) < 2:
        return None
    data = context.value(node, 0)
    output, mask = context.add_node("Dropout", [data], outputs=2)
    return [output, context.add("Cast", [mask], {"to": data.dtype})]


@adapts("Dropout", until=11)
def drop_ratio(node: SourceNode, context: Context) -> None:
    """Drop the ratio, which has no effect in inference."""
    node.attributes.pop("ratio", None)


@adapts("BatchNormalization", until=6)
def single_output_in_test_mode(node: SourceNode, context: Context) -> None:
    """Keep only the first output: ``is_test=1`` computed no other."""
    if take_int(node, "is_test", 0):
        node.outputs = node.outputs[:1]


@adapts("BatchNormalization", until=13)
def training_mode_from_outputs(node: SourceNode, context: Context) -> None:
    """Set training mode for nodes with more than one output; drop the last two, which had no defined meaning."""
    if len(node.outputs) > 1:
        node.outputs = node.outputs[:3]
        node.attributes["training_mode"] = 1
