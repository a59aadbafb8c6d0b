"""A source program while it is changed into a Paddle-Lite program.

The draft has its own operators, in the vocabulary of :mod:`lite_paddle.source` at first and in Paddle-Lite's at last,
and constants as arrays that belong to values. Values are still written once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue
from .program import Array

__all__ = ["Draft", "element_type", "rank"]


@dataclass(eq=False)
class Draft:
    """A program that passes change in place.

    Attributes:
        inputs: (name, value) in feeding order.
        outputs: (name, value) in fetching order.
        constants: value -> its elements, for parameters and folded results.
        block: the main block.
        version: version of Paddle that exported the program.
    """

    inputs: list[tuple[str, SourceValue]]
    outputs: list[tuple[str, SourceValue]]
    constants: dict[SourceValue, Array]
    block: SourceBlock
    version: int

    @classmethod
    def of(cls, source: SourceProgram) -> Draft:
        """Return a draft of a program, which is not changed through it."""
        copies: dict[SourceValue, SourceValue] = {}
        constants = {_twin(value, copies): source.parameters[name] for name, value in source.parameter_values.items()}
        inputs = [(name, _twin(value, copies)) for name, value in source.inputs]
        block = _copy(source.block, copies)
        outputs = [(name, _twin(value, copies)) for name, value in source.outputs]
        return cls(inputs, outputs, constants, block, source.version)

    def values(self) -> set[SourceValue]:
        """Return every value of the program."""
        found = {value for _, value in [*self.inputs, *self.outputs]} | set(self.constants)
        for block in self.blocks():
            found.update([*block.arguments, *block.results])
            for op in block.ops:
                found.update(value for group in [*op.inputs.values(), *op.outputs.values()] for value in group)
        return found

    def blocks(self) -> Iterator[SourceBlock]:
        """Iterate over the main block and all blocks inside it."""
        yield self.block
        for op in self.block.walk():
            yield from op.blocks

    def producers(self) -> dict[SourceValue, SourceOp]:
        """Return value -> the operator that writes it."""
        return {value: op for op in self.block.walk() for values in op.outputs.values() for value in values}

    def users(self) -> dict[SourceValue, list[SourceOp | None]]:
        """Return value -> its readers, once for each read; None stands for an output of the program or of a block."""
        found: dict[SourceValue, list[SourceOp | None]] = defaultdict(list)
        for op in self.block.walk():
            for values in op.inputs.values():
                for value in values:
                    found[value].append(op)
            for block in op.blocks:
                for value in block.results:
                    found[value].append(None)
        for _, value in self.outputs:
            found[value].append(None)
        return found

    def replace(self, old: SourceValue, new: SourceValue) -> None:
        """Let every reader of one value read another one."""
        for op in self.block.walk():
            for slot, values in op.inputs.items():
                if old in values:
                    op.inputs[slot] = [new if value is old else value for value in values]
            for block in op.blocks:
                block.results = [new if value is old else value for value in block.results]
        self.outputs = [(name, new if value is old else value) for name, value in self.outputs]

    def constant(self, op: SourceOp, slot: str) -> Array | None:
        """Return the elements of the only value in an input slot, None if it is computed or the slot is empty."""
        values = op.inputs.get(slot, [])
        return self.constants.get(values[0]) if len(values) == 1 else None

    def add_constant(self, name: str, array: Array) -> SourceValue:
        """Add a constant and return its value."""
        value = SourceValue(name, SourceType(array.dtype.name, array.shape))
        self.constants[value] = np.ascontiguousarray(array)
        return value

    def remove_unused(self) -> None:
        """Remove operators whose results nobody reads, and constants that nobody reads."""
        while True:
            used = self.users()
            removed = False
            for block in list(self.blocks()):
                kept = [op for op in block.ops if _is_needed(op, used)]
                removed |= len(kept) != len(block.ops)
                block.ops = kept
            if not removed:
                break
        self.constants = {value: array for value, array in self.constants.items() if value in used}


def element_type(value: SourceValue) -> str:
    """Return the element type of a value; ``"float32"`` if the program does not tell it."""
    return value.type.dtype if value.type is not None and value.type.dtype != "undefined" else "float32"


def rank(value: SourceValue) -> int | None:
    """Return the number of dimensions of a value, None if it is unknown."""
    return None if value.type is None or value.type.shape is None else len(value.type.shape)


def _is_needed(op: SourceOp, used: dict[SourceValue, list[SourceOp | None]]) -> bool:
    if op.type == "print":
        return True
    return any(value in used for values in op.outputs.values() for value in values)


def _copy(block: SourceBlock, copies: dict[SourceValue, SourceValue]) -> SourceBlock:
    arguments = [_twin(value, copies) for value in block.arguments]
    ops = [
        SourceOp(
            op.type,
            {slot: [_twin(value, copies) for value in values] for slot, values in op.inputs.items()},
            {slot: [_twin(value, copies) for value in values] for slot, values in op.outputs.items()},
            dict(op.attrs),
            [_copy(inner, copies) for inner in op.blocks],
            op.index,
            op.original_type,
            op.scope,
        )
        for op in block.ops
    ]
    return SourceBlock(arguments, ops, [_twin(value, copies) for value in block.results])


def _twin(value: SourceValue, copies: dict[SourceValue, SourceValue]) -> SourceValue:
    return copies.setdefault(value, SourceValue(value.name, value.type))
