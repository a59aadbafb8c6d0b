"""Calculation of everything that does not depend on the inputs."""

from __future__ import annotations

from pathlib import Path

from lite_core.errors import LiteError
from lite_core.ops.evaluate import evaluate_graph

from ...lowering import lower
from ...source import SourceBlock, SourceOp, SourceProgram, SourceValue
from ..draft import Draft
from ..type_numbers import NUMBERS

__all__ = ["fold_constants"]

# Operators without inputs whose results differ from run to run.
_RANDOM_TEXT = "bernoulli gaussian_random randint randperm sampling_id truncated_gaussian_random uniform_random"
_RANDOM = frozenset(_RANDOM_TEXT.split())
# A result that is larger than this, and than its operands, stays computed: it would make the file larger.
_LARGE_BYTES = 1 << 16


def fold_constants(draft: Draft) -> None:
    """Replace operators of the main block that read constants only by their results.

    The operators are evaluated by the references of the operators that they are lowered to.
    """
    known = set(draft.constants)
    chosen: list[SourceOp] = []
    for op in draft.block.ops:
        values = [value for group in op.inputs.values() for value in group]
        if op.blocks or op.type in _RANDOM or op.type == "create_array" or any(value not in known for value in values):
            continue
        known.update(value for group in op.outputs.values() for value in group)
        chosen.append(op)
    used = draft.users()
    members = set(chosen)
    wanted = [
        value
        for op in chosen
        for group in op.outputs.values()
        for value in group
        if any(user not in members for user in used.get(value, []))
    ]
    if wanted:
        _fold(draft, chosen, wanted)
        draft.remove_unused()


def _fold(draft: Draft, ops: list[SourceOp], wanted: list[SourceValue]) -> None:
    names = {value: f"constant{index}" for index, value in enumerate(draft.constants)}
    program = SourceProgram(
        kind="legacy",
        version=draft.version,
        inputs=[],
        outputs=[(f"result{index}", value) for index, value in enumerate(wanted)],
        parameters={name: draft.constants[value] for value, name in names.items()},
        parameter_values={name: value for value, name in names.items()},
        block=SourceBlock(ops=ops),
        path=Path("constants"),
    )
    try:
        results = evaluate_graph(lower(program), [])
    except LiteError:
        return  # an operator of another domain: Paddle-Lite may have it
    read = [draft.constants[v] for op in ops for group in op.inputs.values() for v in group if v in draft.constants]
    allowed = max([_LARGE_BYTES, *(array.nbytes for array in read)])
    known = {
        value: result
        for value, result in zip(wanted, results)
        if result.dtype.name in NUMBERS and result.nbytes <= allowed
    }
    for op in ops:
        for slot, group in list(op.outputs.items()):
            needed = [value for value in group if value in wanted]
            if needed and all(value in known for value in needed):
                draft.constants.update((value, known[value]) for value in needed)
                del op.outputs[slot]
