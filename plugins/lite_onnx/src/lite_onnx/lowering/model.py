"""A whole model as a graph."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError, ModelFormatError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import DType, Graph
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.graphs import GraphLowering, Problem
from lite_onnx.lowering.interface import Given, declare_input
from lite_onnx.lowering.opsets import opsets_of
from lite_onnx.lowering.scope import Scope
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import NotANumber, element_type

__all__ = ["lower"]

logger = logging.getLogger("lite.onnx")

_NOTHING = Given()
#: Tensors that an error names at most.
_MOST_SHOWN = 100


def lower(model: onnx.ModelProto, path: Path, given: Given = _NOTHING) -> Graph:
    """Lower a model to Lite's operators.

    Args:
        model: the messages.
        path: the file that they are from.
        given: what is known of inputs beside what the model says.

    Raises:
        ModelFormatError: the model is damaged, or tensors in other files cannot be had; all are listed.
        UnsupportedOperatorError: once, with every operator that cannot be lowered and its nodes.
    """
    try:
        return _lower(model, path, given)
    except (GraphError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"model {str(path)!r} is damaged: {error}") from error


def _lower(model: onnx.ModelProto, path: Path, given: Given) -> Graph:
    functions = {(_domain(f.domain), f.name, f.overload): f for f in model.functions}
    lowering = GraphLowering(path, functions, model.ByteSize())
    builder = GraphBuilder(model.graph.name or path.stem)
    scope = Scope(opsets_of(model, path))
    context = Context(builder, scope, lowering)
    kinds = {value.name: value.type for value in model.graph.input}
    for name, array in given.constants.items():
        scope.bind(name, builder.constant(array, name, _element_type(kinds.get(name))))
    _declare_inputs(model.graph, given, context, lowering.problems)
    for output in model.graph.output:
        if output.name and not builder.is_taken(output.name):  # bodies may use the name, too, and come first
            builder.unique_name(output.name)
    lowering.fill(model.graph, context)
    if lowering.problems:
        raise _error(path, lowering.problems)
    if not builder.graph.outputs:
        raise ModelFormatError(f"model {str(path)!r} has no outputs, so that there is nothing to compute")
    graph = builder.build()
    graph.metadata.update(_metadata(model, path))
    logger.info("%s: %d nodes of ONNX became %d", path, len(model.graph.node), len(graph.nodes))
    return graph


def _element_type(type_: onnx.TypeProto | None) -> DType | None:
    """The element type that a model says; None where it does not, or where Lite has not got it."""
    try:
        return None if type_ is None else element_type(type_.tensor_type.elem_type)
    except NotANumber:
        return None


def _declare_inputs(graph: onnx.GraphProto, given: Given, context: Context, problems: list[Problem]) -> None:
    """Declare the inputs that have no elements yet."""
    scope = context.scope
    initialized = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    seen: set[str] = set()
    for value in graph.input:
        if value.name in seen:
            raise GraphError(f"it has two inputs called {value.name!r}")
        seen.add(value.name)
        if value.name in initialized or scope.defines(value.name):
            continue
        try:
            scope.bind(value.name, declare_input(value.name, value.type, given, context.builder))
        except Unlowerable as problem:
            problems.append(Problem("input", value.name, problem.reason, problem.remedy))
            scope.lost.add(value.name)


def _error(path: Path, problems: list[Problem]) -> LiteError:
    """One error for all problems. Where only tensors cannot be read it is the file that is damaged."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for problem in problems:
        grouped.setdefault((problem.op, problem.reason, problem.remedy), []).append(problem.name)
    if not all(problem.is_damage for problem in problems):
        return UnsupportedOperatorError(
            f"model {str(path)!r} cannot be lowered",
            [OperatorProblem(op, why, tuple(names), cure) for (op, why, cure), names in grouped.items()],
        )
    lines = [f"model {str(path)!r} is damaged: {len(problems)} of its tensors cannot be read"]
    for (_, why, _), names in grouped.items():
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        lines.append(f"  {', '.join(names[:_MOST_SHOWN])}{more}: {why}")
    lines += [f"    -> {cure}" for cure in dict.fromkeys(problem.remedy for problem in problems)]
    return ModelFormatError("\n".join(lines))


def _metadata(model: onnx.ModelProto, path: Path) -> dict[str, str]:
    """What the model says of itself."""
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    said = {
        "format": "onnx",
        "ir_version": str(model.ir_version),
        "opset": opsets,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "file": str(path),
        **{f"onnx.{entry.key}": entry.value for entry in model.metadata_props},
    }
    return {key: value for key, value in said.items() if value}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
