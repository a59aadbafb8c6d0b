"""Lowering of a whole Paddle program to a Lite graph."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError, ModelFormatError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import DType, Graph, Origin, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.left_out import reason_of
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.operators import complex_lowering_of, lowering_of
from lite_paddle.lowering.paddle_lite_fusions import INT8_OPERATORS, refuse_int8
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.reader.run_time_attributes import unreadable_attributes
from lite_paddle.source import SourceOp, SourceProgram, SourceValue, describe_version

__all__ = ["level_names", "lower", "lower_operators"]

logger = logging.getLogger("lite.paddle")


class _Problems(Exception):
    """Operators inside a sub-block that could not be lowered, for the enclosing operator."""

    def __init__(self, problems: list[tuple[SourceOp, Unlowerable]]) -> None:
        super().__init__(f"{len(problems)} operators")
        self.problems = problems


def lower(program: SourceProgram, *, lod: bool = False) -> Graph:
    """Lower a program to Lite's opset.

    Args:
        program: the program.
        lod: give the graph an input for the sequence offsets of each input that has them; without, each such input is
            one sequence.

    Raises:
        UnsupportedOperatorError: operators cannot be lowered; the error lists all of them with their nodes.
        ModelFormatError: an input or a parameter has an element type that Lite does not have, or an
            impossible shape.
    """
    unknown = [op for op in program.block.walk() if lowering_of(op.type) is None]
    if unknown:
        raise _error(program, [(op, _unknown(op.type)) for op in unknown])
    builder = GraphBuilder(_model_name(program))
    context = Context(builder, program, lower_operators, reads_offsets=lod)
    for name, source in program.inputs:
        context.bind_value(source, _input(builder, name, source))
    _add_sequences(builder, program, context)
    used = {s for op in program.block.walk() for group in op.inputs.values() for s in group}
    used |= {s for op in program.block.walk() for b in op.blocks for s in b.results}
    used |= {s for _, s in program.outputs}
    for name, source in program.parameter_values.items():
        if source in used:
            _lite_type(f"parameter {name!r}", program.parameters[name].dtype)
            context.bind_value(source, builder.constant(program.parameters[name], name))
    try:
        lower_operators(program.block.ops, context)
    except _Problems as found:
        raise _error(program, found.problems) from None
    for name, source in program.outputs:
        value = _output(program, context, source)
        # A program may overwrite an input and fetch it under the input's name, which is taken here.
        free = value.name == name or not builder.is_taken(name)
        builder.output(value, name if free else builder.unique_name(name))
    for name, source in program.outputs:
        sequences = context.sequences(source)
        if sequences is None or sequences.offsets is None:
            continue
        levels = (*sequences.outer, sequences.offsets)
        for offsets, label in zip(levels, level_names(name, len(levels))):
            builder.output(offsets, builder.unique_name(label))
    graph = builder.build()
    graph.metadata.update(_metadata(program))
    logger.info("%s: %d Paddle operators became %d nodes", program.path, len(program.block.ops), len(graph.nodes))
    return graph


def lower_operators(ops: Iterable[SourceOp], context: Context) -> None:
    """Lower operators in order, continuing after one that cannot be lowered, to find every problem."""
    problems: list[tuple[SourceOp, Unlowerable]] = []
    lost: set[SourceValue] = set()  # outputs of operators that could not be lowered, and values computed from them
    for op in ops:
        if lost and any(s in lost for s in _values_read(op)):
            lost.update(s for group in op.outputs.values() for s in group)
            continue
        context.builder.origin = Origin(op.original_type or op.type, _name(op))
        try:
            _lower_operator(op, context)
            context.inherit_sequences(op)
        except Unlowerable as problem:
            problems.append((op, problem))
        except GraphError as problem:
            problems.append((op, Unlowerable(f"it does not fit Lite's operators: {problem}")))
        except _Problems as inner:
            problems += inner.problems
        else:
            continue
        lost.update(s for group in op.outputs.values() for s in group)
    if problems:
        raise _Problems(problems)


def _lower_operator(op: SourceOp, context: Context) -> None:
    function = lowering_of(op.type)
    assert function is not None, "unknown operators were reported before lowering began"
    if context.reads_complex(op):
        function = complex_lowering_of(op.type)
    unreadable = unreadable_attributes(op.inputs)
    if unreadable:
        named = ", ".join(unreadable)
        raise Unlowerable(
            f"its attribute {named} is a tensor, which its lowering needs as a constant",
            f"export the model with a constant {named}",
        )
    if op.attrs.get("enable_int8") and op.type not in INT8_OPERATORS:
        refuse_int8(op, context)
    try:
        function(op, context)
    except (GraphError, LiteError):
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        # The lowerings check what they rely on; other errors caused by damaged files end here.
        logger.debug("%s %s", op.type, _name(op), exc_info=True)
        raise Unlowerable(
            f"its attributes or inputs are damaged ({type(error).__name__}: {error})",
            "export the model again, or copy it again",
        ) from error
    except MemoryError as error:  # a size in a damaged file
        raise Unlowerable(f"there is not enough memory for it: {error}") from error


def _unknown(type_: str) -> Unlowerable:
    reason = reason_of(type_)
    return Unlowerable("lite-paddle has no lowering for it" + (f": {reason}" if reason else ""))


def _model_name(program: SourceProgram) -> str:
    """Return the file's stem, or the folder's name if the stem is one of the usual names of program files."""
    stem = program.path.stem
    folder = program.path.resolve().parent.name
    return folder if stem in ("inference", "model", "__model__", "") and folder else stem


def _values_read(op: SourceOp) -> Iterable[SourceValue]:
    for group in op.inputs.values():
        yield from group
    for block in op.blocks:
        for inner in block.walk():
            for group in inner.inputs.values():
                yield from group


def _output(program: SourceProgram, context: Context, source: SourceValue) -> Value:
    try:
        value = context.value(source)
        if value in context.complex:
            raise Unlowerable(
                "its result has complex numbers, and is an output of the model",
                "let the model return as_real() of it, or real() and imag()",
            )
        return value
    except Unlowerable as problem:
        ops = (op for op in program.block.ops if any(source in group for group in op.outputs.values()))
        raise _error(program, [(op, problem) for op in ops]) from None


def _input(builder: GraphBuilder, name: str, source: SourceValue) -> Value:
    if source.type is None:
        return builder.input(name, DType.FLOAT32, None)
    dtype = _lite_type(f"input {name!r}", source.type.dtype)
    if source.type.is_array or source.type.shape is None:
        return builder.input(name, dtype, None)
    # One symbol for each unknown dimension: Paddle does not say which of them are equal.
    dims = [d if d >= 0 else f"{name}_{axis}" for axis, d in enumerate(source.type.shape)]
    return builder.input(name, dtype, dims)


def _add_sequences(builder: GraphBuilder, program: SourceProgram, context: Context) -> None:
    """Set the sequences of inputs: one, or those of offsets that are further inputs."""
    levels = {name: source.type.lod_level for name, source in program.inputs if source.type is not None}
    if context.reads_offsets and not any(levels.values()):
        raise ModelFormatError(
            f"model {str(program.path)!r} has no input with sequences (LoD); read it without the option lod"
        )
    for name, source in program.inputs:
        count = levels.get(name, 0)
        if not count:
            continue
        if not context.reads_offsets:
            context.bind_sequences(source, Sequences())
            continue
        labels = level_names(name, count)
        offsets = [builder.input(builder.unique_name(n), DType.INT64, [f"{n}_0"]) for n in labels]
        context.bind_sequences(source, Sequences(offsets=offsets[-1], outer=tuple(offsets[:-1])))


def level_names(name: str, levels: int) -> list[str]:
    """Return the names of the offsets of a tensor, those of the outermost level first."""
    return [f"{name}.lod"] if levels == 1 else [f"{name}.lod{level}" for level in range(levels)]


def _lite_type(what: str, dtype: str | np.dtype[Any]) -> DType:
    try:
        return DType.of(dtype)
    except ValueError:
        known = ", ".join(str(type_) for type_ in DType)
        raise ModelFormatError(
            f"the {what} has the element type {dtype}; Lite has {known}. Export the model with the {what} in one of "
            "these"
        ) from None


def _name(op: SourceOp) -> str:
    first = next((s for group in op.outputs.values() for s in group), None)
    return first.name if first is not None else f"#{op.index}"


def _error(program: SourceProgram, problems: list[tuple[SourceOp, Unlowerable]]) -> UnsupportedOperatorError:
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for op, problem in problems:
        key = (op.original_type or op.type, problem.reason, problem.remedy)
        grouped.setdefault(key, []).append(_name(op))
    return UnsupportedOperatorError(
        f"model {str(program.path)!r} cannot be lowered",
        [OperatorProblem(op, why, tuple(names), cure) for (op, why, cure), names in grouped.items()],
    )


def _metadata(program: SourceProgram) -> dict[str, str]:
    metadata = {
        "format": "paddle",
        "kind": program.kind,
        "paddle_version": describe_version(program.version),
        "file": str(program.path),
    }
    if program.file_version is not None:
        metadata["file_version"] = str(program.file_version)
    return {**metadata, **program.facts}
