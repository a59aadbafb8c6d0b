"""Adapter for Scan of opset 8, over a batch of sequences of different lengths."""

from __future__ import annotations

from onnx import GraphProto

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_int, take_ints
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable


@adapts("Scan", until=8)
def scan_over_batch(node: SourceNode, context: Context) -> list[Item]:
    """Wrap the Scan over a sequence in a Scan over the batch, the first axis of all inputs and outputs.

    Outputs of sequences that are shorter than the longest are padded with zeros; ONNX leaves them undefined.
    """
    lengths = context.optional(node, 0)
    batches = [context.value(node, position) for position in range(1, len(node.inputs))]
    body, count = _body(node), take_int(node, "num_scan_inputs")
    directions = take_ints(node, "directions")
    states = len(batches) - count
    if not 0 <= states < len(batches):
        raise Unlowerable(f"its num_scan_inputs must be 1 to {len(batches)}, but is {count}")
    inner = context.inner("sample")
    builder = inner.builder
    samples = [_of_one_sample(batch, builder) for batch in batches]
    length = None if lengths is None else _of_one_sample(lengths, builder)
    scanned = samples[states:]
    if length is not None:
        length = inner.add("Reshape", [inner.add("Cast", [length], {"to": DType.INT64}), inner.ints(1)])
        scanned = [inner.add("Slice", [value, inner.ints(0), length, inner.ints(0)]) for value in scanned]
    results = inner.add_node(
        "Scan",
        [*samples[:states], *scanned],
        {
            "body": inner.body(body, []),
            "num_scan_inputs": count,
            "scan_input_directions": None if directions is None else tuple(directions),
        },
        outputs=len(body.output),
    )
    if length is not None:
        longest = inner.add("Shape", [samples[states]], {"start": 0, "end": 1})
        missing = inner.add("Sub", [longest, length])
        results[states:] = [_padded(value, missing, inner) for value in results[states:]]
    for result in results:
        builder.output(result)
    inputs = batches if lengths is None else [*batches, lengths]
    attributes = {"body": builder.build(), "num_scan_inputs": len(inputs)}
    return list(context.add_node("Scan", inputs, attributes, outputs=len(body.output)))


def _of_one_sample(batch: Value, builder: GraphBuilder) -> Value:
    """Add an input of the body for one sample of a batch."""
    shape = batch.type.shape
    return builder.input(builder.unique_name("sample"), batch.dtype, None if shape is None else shape[1:])


def _padded(value: Value, missing: Value, context: Context) -> Value:
    """Append ``missing`` zeros to the first axis of a value."""
    begins, others = context.ints(*[0] * context.rank(value)), context.ints(*[0] * (context.rank(value) - 1))
    return context.add("Pad", [value, context.add("Concat", [begins, missing, others], {"axis": 0})])


def _body(node: SourceNode) -> GraphProto:
    body = node.attributes.get("body")
    if not isinstance(body, GraphProto):
        raise Unlowerable("its attribute 'body' is missing")
    return body
