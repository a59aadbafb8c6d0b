"""Lowering of a whole model to a graph."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError, ModelFormatError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import DType, Graph
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.dimension_names import separate_independent_sizes
from lite_onnx.lowering.expansion import check_expansion
from lite_onnx.lowering.graphs import GraphLowering, Problem
from lite_onnx.lowering.interface import InputOptions, declare_input
from lite_onnx.lowering.opsets import opsets_of
from lite_onnx.lowering.scope import Scope
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import UnsupportedElementType, element_type
from lite_onnx.reader.stored_tensors import StoredTensors

__all__ = ["lower"]

logger = logging.getLogger("lite.onnx")

_NOTHING = InputOptions()
#: The maximum number of tensors that an error names.
_MAX_SHOWN = 100


def lower(
    model: onnx.ModelProto, path: Path, options: InputOptions = _NOTHING, stored: StoredTensors | None = None
) -> Graph:
    """Lower a model to Lite's operators.

    Args:
        model: the message.
        path: the model's file.
        options: the reader's options for inputs.
        stored: the large tensors inside the file; None if the message has them.

    Raises:
        ModelFormatError: the model is damaged, or tensors in other files cannot be read; all are listed.
        UnsupportedOperatorError: operators cannot be lowered; the error lists all of them with their nodes.
    """
    try:
        return _lower(model, path, options, stored)
    except (GraphError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"model {str(path)!r} is damaged: {error}") from error


def _lower(model: onnx.ModelProto, path: Path, options: InputOptions, stored: StoredTensors | None) -> Graph:
    functions = {(_domain(f.domain), f.name, f.overload): f for f in model.functions}
    check_expansion(model.graph, functions, path)
    lowering = GraphLowering(path, functions, model.ByteSize(), stored)
    builder = GraphBuilder(model.graph.name or path.stem)
    scope = Scope(opsets_of(model, path))
    scope.sizes = _third_sizes(model.graph, options.fixed_caches)
    context = Context(builder, scope, lowering)
    kinds = {value.name: value.type for value in model.graph.input}
    for name, array in options.constants.items():
        scope.bind(name, builder.constant(array, name, _element_type(kinds.get(name))))
    _declare_inputs(model.graph, options, context, lowering.problems)
    for output in model.graph.output:
        if output.name and not builder.is_taken(output.name):
            builder.unique_name(output.name)  # reserves the name: bodies, which are lowered first, may use it, too
    try:
        lowering.lower_graph(model.graph, context)
    except (GraphError, ModelFormatError) as error:
        if lowering.position:
            error.args = (f"{error} (at {lowering.position})",)
        raise
    if lowering.problems:
        raise _error(path, lowering.problems)
    if not builder.graph.outputs:
        raise ModelFormatError(f"model {str(path)!r} has no outputs: there is nothing to compute")
    graph = builder.build()
    separate_independent_sizes(graph)
    graph.metadata.update(_metadata(model, path))
    logger.info("%s: %d nodes of ONNX became %d", path, len(model.graph.node), len(graph.nodes))
    return graph


def _third_sizes(graph: onnx.GraphProto, all_equal: bool) -> dict[str, int | str]:
    """Return the third size that a model declares for its inputs and outputs; 0 for all with ``all_equal``."""
    shapes = {value.name: value.type.tensor_type.shape.dim for value in (*graph.input, *graph.output)}
    sizes = {name: dims[2].dim_param or dims[2].dim_value for name, dims in shapes.items() if len(dims) > 2}
    return dict.fromkeys(shapes, 0) if all_equal else {name: size for name, size in sizes.items() if size}


def _element_type(type_: onnx.TypeProto | None) -> DType | None:
    """Return the element type that a model states, or None if it states none or one that Lite does not have."""
    try:
        return None if type_ is None else element_type(type_.tensor_type.elem_type)
    except UnsupportedElementType:
        return None


def _declare_inputs(graph: onnx.GraphProto, options: InputOptions, context: Context, problems: list[Problem]) -> None:
    """Declare the inputs that are neither initialized nor given as constants."""
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
            scope.bind(value.name, declare_input(value.name, value.type, options, context.builder))
        except Unlowerable as problem:
            problems.append(Problem("input", value.name, problem.reason, problem.remedy))
            scope.failed.add(value.name)


def _error(path: Path, problems: list[Problem]) -> LiteError:
    """Return one error for all problems. If all problems are unreadable tensors, it says that the file is damaged."""
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
        more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
        lines.append(f"  {', '.join(names[:_MAX_SHOWN])}{more}: {why}")
    lines += [f"    -> {cure}" for cure in dict.fromkeys(problem.remedy for problem in problems)]
    return ModelFormatError("\n".join(lines))


def _metadata(model: onnx.ModelProto, path: Path) -> dict[str, str]:
    """Return the graph's metadata: the model's opsets, producer, file and own metadata."""
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    metadata = {
        "format": "onnx",
        "ir_version": str(model.ir_version),
        "opset": opsets,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "file": str(path),
        **{f"onnx.{entry.key}": entry.value for entry in model.metadata_props},
    }
    return {key: value for key, value in metadata.items() if value}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
