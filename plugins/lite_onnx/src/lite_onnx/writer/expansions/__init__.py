"""Expansions: Lite's own operators expressed by ONNX's operators."""

from __future__ import annotations

from functools import cache

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node, Value
from lite_onnx.submodules import import_submodules
from lite_onnx.writer.expansions.formula import Expansion, Formula, expansions
from lite_onnx.writer.problems import Unwritable

__all__ = ["expand"]


def expand(node: Node) -> Graph:
    """Return the graph of ONNX's operators for a node of the domain ``lite``.

    Its inputs are the node's present inputs. It does not depend on the sizes of the node's values.

    Raises:
        Unwritable: the operator has no expansion, or ONNX cannot express the node's attributes or inputs.
    """
    expansion = _every_expansion().get(node.op)
    if expansion is None:
        raise Unwritable(
            "it is an operator of Lite's own that cannot be expressed by ONNX's",
            "write the part of the model before it, with the node's inputs as outputs, and compute the rest with Lite",
        )
    definition = ops.get(node)
    builder = GraphBuilder(node.op)
    formula = Formula(builder)
    inputs: list[Value | None] = []
    for index in range(max(definition.fixed_inputs, len(node.inputs))):
        value = node.inputs[index] if index < len(node.inputs) else None
        declared = definition.parameter(index)
        name = declared.name if declared and not declared.variadic else f"input_{index}"
        inputs.append(value and formula.widened(builder.input(name, value.dtype, value.type.shape)))
    results = expansion(formula, *inputs, **definition.attributes_of(node))
    for result, output in zip(results, node.outputs):
        if output is None or result.dtype == output.dtype:
            builder.output(result)
        else:
            builder.output(builder.add("Cast", [result], {"to": output.dtype}))
    return builder.build()


@cache
def _every_expansion() -> dict[str, Expansion]:
    import_submodules(__name__)
    return expansions
