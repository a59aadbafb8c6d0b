"""Checks of the references and the inference of operators, which are the truth that backends are compared with.

For each case of an operator, hand-written or drawn:

1. The reference computes every output of the node, and the same when it is called again.
2. It returns no floating numbers for an output of another type, because they would be cut off, and nothing but floating
   numbers for an output of a floating type: integers mean that it cut them off itself.
3. The inferred types of the outputs accept the results: with fixed sizes, with symbols for the sizes of the inputs,
   and with inputs of unknown rank. Inference may refuse symbols by a GraphError, but must not stumble over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.op_cases import OpCase, OpTable
from lite_conformance.cases.op_runner import CaseBuildError, check_examples
from lite_conformance.cases.tensors import Array, short_name
from lite_conformance.drive.subject import first_difference, same_bits
from lite_conformance.judge.outcome import Failure, Outcome
from lite_core import ops
from lite_core.errors import LiteError
from lite_core.ir import Dim, DType, Graph, Node, SymbolicDim, TensorType
from lite_core.ops.evaluate import evaluate_op
from lite_core.ops.infer import GraphInference

__all__ = ["ReferenceRefusal", "check_reference", "reference_cases"]


class ReferenceRefusal(Failure):
    """The reference itself raised a LiteError: it refuses the operands, which is no mistake if they were generated."""


def reference_cases(table: OpTable) -> Iterator[Case]:
    """Yield a case for each element type of an operator: ``reference[acme.Squish,f32]``."""
    name = table.definition.qualified_name
    for dtype in table.dtypes:
        run = partial(_run, table=table, dtype=dtype)
        yield Case(f"reference[{name},{short_name(dtype)}]", 2, "references", run, name, dtype.value)


def _run(context: Context, table: OpTable, dtype: DType) -> Outcome:
    settings = context.settings
    outcomes = []
    for _, case_dtype, case in table.cases():
        if case_dtype is dtype:
            try:
                outcomes.append(check_reference(case, dtype, settings.seed))
            except Failure as failure:
                failure.reason = f"{case.label}: {failure.reason}"
                raise
    for _, drawn_dtype, drawer in table.drawers():
        if drawn_dtype is dtype:
            check = partial(check_reference, dtype=dtype, seed=settings.seed)
            outcomes.append(check_examples(drawer, dtype, settings.seed, settings.examples, check))
    return Outcome(examples=sum(outcome.examples for outcome in outcomes))


def check_reference(case: OpCase, dtype: DType, seed: int) -> Outcome:
    """Check the reference and the inference of an operator with one case.

    Raises:
        Failure: one of the rules above is broken.
        CaseBuildError: the case does not fit the operator.
    """
    try:
        graph, arrays = case.build(dtype, seed)
    except Exception as error:
        raise CaseBuildError(f"{case.describe(dtype)}: {error}") from error
    (node,) = graph.nodes
    known = {**graph.constants, **dict(zip(graph.inputs, arrays))}
    if ops.get(node).extra_keywords & {"run_graph", "infer_outputs"}:
        return Outcome()  # such a reference needs the enclosing graph; the cases on a backend run it there
    operands = [None if value is None else known[value] for value in node.inputs]
    results = _results(node, operands)
    for number, (one, other) in enumerate(zip(results, _results(node, operands))):
        if not same_bits(one, other):
            raise Failure(f"the reference gave another output {number} again: {first_difference(one, other)}")
    for value, result in zip(node.outputs, results):
        if value is not None and not value.type.accepts(result.shape):
            raise Failure(f"the inference says {value.type}, the reference gives {list(result.shape)}")
    _check_symbols(graph, node, results)
    return Outcome()


def _results(node: Node, operands: Sequence[Array | None]) -> list[Array]:
    """Run the reference of a node, and check what it returns before the results are converted."""
    definition = ops.get(node)
    returned: list[Array] = []

    def spy(*arguments: Any, **keywords: Any) -> Any:
        try:
            results = definition.reference(*arguments, **keywords)
        except LiteError as error:
            raise ReferenceRefusal(f"the reference failed with {type(error).__name__}: {error}") from error
        returned.extend(np.asarray(r) for r in (results if isinstance(results, (tuple, list)) else [results]))
        return results

    read_only = [None if array is None else _read_only(array) for array in operands]
    spied = replace(definition, reference=spy)
    try:
        results = evaluate_op(spied, read_only, definition.attributes_of(node), len(node.outputs))
    except (KeyboardInterrupt, ReferenceRefusal):
        raise
    except BaseException as error:
        raise Failure(f"the reference failed with {type(error).__name__}: {error}") from error
    if len(returned) < len(node.outputs):
        raise Failure(f"the reference returned {len(returned)} array(s), the node has {len(node.outputs)} outputs")
    for value, raw in zip(node.outputs, returned):
        if value is None:
            continue
        is_float = DType.of(raw.dtype).is_floating if raw.dtype != object else value.dtype is not DType.STRING
        if is_float != value.dtype.is_floating:
            advice = "round it there" if is_float else "compute in floating numbers there"
            raise Failure(f"the reference returned {raw.dtype} for an output of {value.dtype}: {advice}")
    return results


def _check_symbols(graph: Graph, node: Node, results: Sequence[Array]) -> None:
    """Check the inferred types for inputs with symbols as sizes, one symbol for equal sizes, and of unknown rank."""
    sizes: dict[str, int] = {}

    def symbolic(type: TensorType) -> TensorType:
        dims: list[Dim] = []
        for dim in type.shape or ():
            # NOTE: a size of 1 stays, because it broadcasts; a symbol does not.
            if isinstance(dim, SymbolicDim) or dim == 1:
                dims.append(dim)
            else:
                dims.append(SymbolicDim.named(f"size_{dim}"))
                sizes[f"size_{dim}"] = dim
        return type.with_shape(tuple(dims))

    for what in ("symbols as sizes", "an unknown rank"):
        inference = GraphInference()
        inference.add_constants(graph)
        for value in graph.inputs:
            vague = symbolic(value.type) if what.startswith("symbols") else value.type.with_shape(None)
            inference.set_type(value, vague)
        try:
            types = inference.infer(node)
        except LiteError as error:
            if stumble := _other_cause(error):
                raise Failure(f"the inference fails for inputs with {what}: {error}") from stumble
            continue
        for type, result in zip(types, results):
            if not type.substitute(sizes).accepts(result.shape):
                given = ", ".join(str(inference.type_of(value)) for value in graph.inputs)
                shown = f"{given} gives {type}, which does not accept the result {list(result.shape)}"
                raise Failure(f"the inference is wrong for inputs with {what}: {shown}")


def _other_cause(error: BaseException) -> BaseException | None:
    """Return the exception that is not a LiteError in the chain of causes, or None."""
    cause: BaseException | None = error
    while isinstance(cause, LiteError):
        cause = cause.__cause__
    return cause


def _read_only(array: Array) -> Array:
    view: Array = array.view()
    view.flags.writeable = False
    return view
