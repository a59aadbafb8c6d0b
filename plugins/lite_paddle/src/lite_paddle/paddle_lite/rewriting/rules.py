"""Small language of the rules that rewrite one operator into several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...source import SourceOp, SourceType, SourceValue
from ..draft import Draft

__all__ = ["Rewriting", "Rule"]


class Rewriting:
    """The operators that replace one operator; none if the rule leaves it, perhaps with other attributes.

    Args:
        op: the operator.
        draft: the program, for constants.
    """

    def __init__(self, op: SourceOp, draft: Draft) -> None:
        self.op, self.draft = op, draft
        self.ops: list[SourceOp] = []

    def input(self, slot: str) -> SourceValue:
        """Return the value of an input slot."""
        return self.op.inputs[slot][0]

    def make(
        self,
        type_: str,
        attrs: dict[str, Any] | None = None,
        *,
        result: SourceValue | None = None,
        to: str = "Out",
        like: SourceType | None = None,
        **inputs: SourceValue | list[SourceValue],
    ) -> SourceValue:
        """Add an operator and return its result.

        Args:
            type_: its type.
            attrs: its attributes.
            result: the value that it writes; a new one by default.
            to: the slot of the result.
            like: type of a new result; by default that of the first input.
            inputs: slot -> value or values.
        """
        slots = {slot: value if isinstance(value, list) else [value] for slot, value in inputs.items()}
        if result is None:
            first = next(iter(slots.values()))[0]
            near = next(iter(self.op.outputs.values()))[0]
            result = SourceValue(f"{near.name}/{type_}{len(self.ops)}", like or first.type)
        op = SourceOp(type_, slots, {to: [result]}, dict(attrs or {}), [], self.op.index, self.op.original_type)
        self.ops.append(op)
        return result

    def scale(
        self, value: SourceValue, factor: float, term: float = 0.0, result: SourceValue | None = None
    ) -> SourceValue:
        """Add ``factor * value + term``."""
        return self.make("scale", {"scale": factor, "bias": term, "bias_after_scale": True}, result=result, X=value)

    def result(self, slot: str = "Out") -> SourceValue:
        """Return the value of an output slot."""
        return self.op.outputs[slot][0]


Rule = Callable[[Rewriting], None]
