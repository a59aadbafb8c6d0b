"""Last changes to a draft before kernels are chosen: outputs that are variables of their own."""

from __future__ import annotations

from ..source import SourceOp, SourceValue
from .draft import Draft

__all__ = ["finish"]


def finish(draft: Draft) -> None:
    """Let an operator write each output, and nothing else: inputs, constants and values fetched twice are copied."""
    made = {value for op in draft.block.ops for values in op.outputs.values() for value in values}
    taken: set[SourceValue] = set()
    outputs = []
    for name, value in draft.outputs:
        if value not in made or value in taken:
            copy = SourceValue(name, value.type)
            draft.block.ops.append(SourceOp("assign", {"X": [value]}, {"Out": [copy]}, {}, original_type="assign"))
            value = copy
        taken.add(value)
        outputs.append((name, value))
    draft.outputs = outputs
