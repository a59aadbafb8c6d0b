"""Pairing of the one-sided conditionals of a legacy program, and removal of select_input.

Paddle writes ``cond(c, f, g)`` as: conditional_block(c), logical_not(c), conditional_block(not c), cast c to
int, and one select_input per result. Before this module runs, each conditional_block is an ``if`` whose else
block returns the variables unchanged; this module turns the two into one ``if`` with both branches.
"""

from __future__ import annotations

from collections.abc import Iterable

from lite_core.errors import ModelFormatError

from ..source import SourceBlock, SourceOp, SourceValue

_Producers = dict[SourceValue, SourceOp]


def structure_conditionals(block: SourceBlock) -> None:
    """Rewrite one block in place; its inner blocks must have been rewritten before."""
    if not any(op.type in ("if", "select_input") for op in block.ops):
        return
    producers = {value: op for op in block.ops for values in op.outputs.values() for value in values}
    _pair_branches(block, producers)
    _replace_selects(block, producers)


def remove_unused_branch_results(block: SourceBlock, program_outputs: Iterable[SourceValue]) -> None:
    """Remove unused results of conditionals."""
    outputs = set(program_outputs)
    while True:
        used = outputs | used_values(block)
        changed = [_remove_unused(op, used) for op in block.walk() if op.type == "if"]
        if not any(changed):
            return


def refuse_undefined(block: SourceBlock, undefined: set[SourceValue]) -> None:
    """Raise an error if a value that is written on one path only is read.

    Raises:
        ModelFormatError: Such values are read; the message names them.
    """
    found = used_values(block) & undefined if undefined else set()
    if found:
        names = sorted(value.name.removesuffix("@undefined") for value in found)
        raise ModelFormatError(
            f"the variables {names[:5]} are written by a conditional_block in one case only, but read in every case"
        )


def _pair_branches(block: SourceBlock, producers: _Producers) -> None:
    """Merge ``if c`` and a later ``if not c``, at the position of the later one."""
    open_branches: dict[SourceValue, SourceOp] = {}
    for op in list(block.ops):
        if op.type != "if":
            for branch in [branch for branch in open_branches.values() if _reads(op, branch)]:
                del open_branches[branch.inputs["Cond"][0]]
            continue
        condition = op.inputs["Cond"][0]
        negated = _input_of(condition, "logical_not", producers)
        first = open_branches.pop(negated, None) if negated is not None else None
        if first is None or first.attrs != op.attrs:
            open_branches[condition] = op
            continue
        merged = _merge(first, op)
        block.ops.remove(first)
        block.ops[block.ops.index(op)] = merged
        for value in merged.outputs.get("Out", []):
            producers[value] = merged


def _merge(first: SourceOp, second: SourceOp) -> SourceOp:
    """Make one ``if`` from ``if c: first`` and ``if not c: second``."""
    then, before_then = first.blocks
    other, before_other = second.blocks
    first_out, second_out = first.outputs.get("Out", []), second.outputs.get("Out", [])
    # Where c is false, the variables that the first one writes keep their earlier values, and vice versa.
    if_true = dict(zip(first_out, then.results))
    if_false = dict(zip(first_out, before_then.results))
    _substitute(other, if_false)
    then_block = SourceBlock([], then.ops, [*then.results, *(if_true.get(v, v) for v in before_other.results)])
    else_block = SourceBlock([], other.ops, [*before_then.results, *other.results])
    outputs = {"Out": [*first_out, *second_out]} if first_out or second_out else {}
    return SourceOp(
        "if", first.inputs, outputs, first.attrs, [then_block, else_block], second.index, first.original_type
    )


def _replace_selects(block: SourceBlock, producers: _Producers) -> None:
    """Make each select_input a result of the conditional with its condition, or a separate ``if``."""
    conditionals = {op.inputs["Cond"][0]: op for op in block.ops if op.type == "if"}
    kept: list[SourceOp] = []
    for op in block.ops:
        if op.type != "select_input":
            kept.append(op)
            continue
        choices, mask, result = op.inputs.get("X", []), op.inputs.get("Mask", []), op.outputs.get("Out", [])
        if len(choices) != 2 or len(mask) != 1 or len(result) != 1:
            raise ModelFormatError(f"operator {op.index} (select_input): expected two values in X, one in Mask and Out")
        condition = _input_of(mask[0], "cast", producers)
        found, negated = _conditional_of(condition, conditionals, producers)
        if found is not None and _can_join(found, choices, kept):
            _join(found, choices[::-1] if negated else choices, result[0])
            continue
        if condition is None:
            condition = SourceValue(f"{mask[0].name}@bool")
            kept.append(
                SourceOp("cast", {"X": mask}, {"Out": [condition]}, {"out_dtype": "bool"}, [], op.index, "cast")
            )
        branches = [SourceBlock(results=[choices[1]]), SourceBlock(results=[choices[0]])]
        kept.append(SourceOp("if", {"Cond": [condition]}, {"Out": result}, {}, branches, op.index, op.original_type))
    block.ops = kept


def _conditional_of(
    condition: SourceValue | None, conditionals: dict[SourceValue, SourceOp], producers: _Producers
) -> tuple[SourceOp | None, bool]:
    """Return the conditional on a condition or on its negation, and True if it is on the negation.

    Paddle leaves out a branch that only returns a value unchanged, so either of the two may be the only one.
    """
    if condition is None:
        return None, False
    if condition in conditionals:
        return conditionals[condition], False
    for other, op in conditionals.items():
        if _input_of(other, "logical_not", producers) is condition or other is _input_of(
            condition, "logical_not", producers
        ):
            return op, True
    return None, False


def _can_join(conditional: SourceOp, choices: list[SourceValue], kept: list[SourceOp]) -> bool:
    """Return True if a conditional can return the choices; move it behind them in ``kept`` if needed."""
    if conditional not in kept:
        return False
    index = kept.index(conditional)
    later = kept[index + 1 :]
    made_later = {value for op in later for value in _outputs(op)}
    if not made_later.intersection(choices):
        return True
    if any(_reads(op, conditional) for op in later):
        return False
    kept.append(kept.pop(index))
    return True


def _join(conditional: SourceOp, choices: list[SourceValue], result: SourceValue) -> None:
    outputs = conditional.outputs.setdefault("Out", [])
    then, otherwise = conditional.blocks
    for branch, choice in ((then, choices[1]), (otherwise, choices[0])):
        # strict=False on purpose: a branch that was just extended has one result more.
        inner = dict(zip(outputs, branch.results))
        branch.results = [*branch.results, inner.get(choice, choice)]
    outputs.append(result)


def _input_of(value: SourceValue, op_type: str, producers: _Producers) -> SourceValue | None:
    """Return the operand of the operator that produces a value, if that operator has the given type."""
    producer = producers.get(value)
    if producer is None or producer.type != op_type or len(producer.inputs.get("X", [])) != 1:
        return None
    return producer.inputs["X"][0]


def _outputs(op: SourceOp) -> list[SourceValue]:
    return [value for values in op.outputs.values() for value in values]


def _reads(op: SourceOp, branch: SourceOp) -> bool:
    written = set(branch.outputs.get("Out", []))
    inputs = {value for values in op.inputs.values() for value in values}
    inner = set().union(*(used_values(block) for block in op.blocks)) if op.blocks else set()
    return bool(written & (inputs | inner))


def used_values(block: SourceBlock) -> set[SourceValue]:
    """Return all values that the operators of a block, and of the blocks inside it, read or return."""
    used = set(block.results)
    for op in block.walk():
        for values in op.inputs.values():
            used.update(values)
        for inner in op.blocks:
            used.update(inner.results)
    return used


def _substitute(block: SourceBlock, replacement: dict[SourceValue, SourceValue]) -> None:
    if not replacement:
        return
    block.results = [replacement.get(value, value) for value in block.results]
    for op in block.ops:
        op.inputs = {slot: [replacement.get(v, v) for v in values] for slot, values in op.inputs.items()}
        for inner in op.blocks:
            _substitute(inner, replacement)


def _remove_unused(op: SourceOp, used: set[SourceValue]) -> bool:
    outputs = op.outputs.get("Out", [])
    kept = [index for index, value in enumerate(outputs) if value in used]
    if len(kept) == len(outputs):
        return False
    for block in op.blocks:
        block.results = [block.results[index] for index in kept]
    op.outputs = {"Out": [outputs[index] for index in kept]} if kept else {}
    return True
