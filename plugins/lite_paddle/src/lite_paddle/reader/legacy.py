"""Reading of legacy programs (``.pdmodel``, ``__model__``): ProgramDesc to source program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError

from ..source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue
from .conditionals import refuse_undefined, remove_unused_branch_results
from .legacy_blocks import LegacyBlocks
from .legacy_messages import is_stored_parameter, op_role, slots, variable_type
from .program_proto import parse_message
from .training import BACKWARD_OR_OPTIMIZE, is_training_op, refuse_training_program

# Outputs that are not results of the network, even if they are never read.
_SIDE_OUTPUTS_TEXT = """
XShape Mask MeanOut VarianceOut SavedMean SavedVariance ReserveSpace Reserve Scope StepScopes MidOut
DropoutState InnerCache OutScale OutState OutAccum Mean Variance Norm BatchGate BatchCellPreAct
BatchResetHiddenPrev BatchHidden
"""
_SIDE_OUTPUTS = frozenset(_SIDE_OUTPUTS_TEXT.split())


class LegacyProgram:
    """A parsed ProgramDesc.

    Args:
        path: Path of the file, for messages.
        data: The file's bytes.

    Raises:
        ModelFormatError: The bytes are not a ProgramDesc with at least one block.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        """Parse the message and check its names."""
        self._set_message(path, parse_message("ProgramDesc", data, str(path)))

    @classmethod
    def of_message(cls, path: Path, message: Any) -> LegacyProgram:
        """Return the program of a ProgramDesc message; ``path`` is the file's, for messages."""
        program = cls.__new__(cls)
        program._set_message(path, message)
        return program

    def _set_message(self, path: Path, message: Any) -> None:
        self.path = path
        self.message = message
        if not message.blocks:
            raise ModelFormatError(f"{path}: the program has no blocks; the file is damaged")
        self._check_names()

    def _check_names(self) -> None:
        # NOTE: protobuf's fast runtime returns a string that is not UTF-8 as bytes, without an error.
        for block in self.message.blocks:
            names = [variable.name for variable in block.vars]
            for op in block.ops:
                names.append(op.type)
                for slot in [*op.inputs, *op.outputs]:
                    names += [slot.parameter, *slot.arguments]
            for name in names:
                if not isinstance(name, str):
                    raise ModelFormatError(f"{self.path}: the name {name!r} is not UTF-8; the file is damaged")

    def refuse_training(self) -> None:
        """Raise an error if the program has gradients or an optimizer.

        Raises:
            ModelFormatError: The program has them.
        """
        found = {
            op.type
            for block in self.message.blocks
            for op in block.ops
            if is_training_op(op.type) or op_role(op) & BACKWARD_OR_OPTIMIZE
        }
        refuse_training_program(self.path, found)

    def parameter_types(self) -> dict[str, SourceType]:
        """Return name -> declared type of every stored parameter, in the order of the file that Paddle writes."""
        types = {}
        for block in self.message.blocks:
            for variable in block.vars:
                if is_stored_parameter(variable):
                    types[variable.name] = variable_type(variable) or SourceType("undefined", None)
        return {name: types[name] for name in _byte_sorted(types)}

    def quantized_names(self) -> frozenset[str]:
        """Return the names of parameters that dequantize_linear reads: Paddle declares them as floats, stores int8."""
        return frozenset(
            name
            for block in self.message.blocks
            for op in block.ops
            if op.type == "dequantize_linear"
            for name in slots(op.inputs).get("X", [])
        )

    def parameter_name_lists(self) -> Iterator[list[str]]:
        """Return possible orders of the combined file, the usual one first."""
        every = list(self.parameter_types())
        yield every
        main_block = {v.name for v in self.message.blocks[0].vars if is_stored_parameter(v)}
        yield _byte_sorted(main_block)
        read = {
            name for block in self.message.blocks for op in block.ops for s in slots(op.inputs).values() for name in s
        }
        yield [name for name in every if name in read]
        declared = [v.name for block in self.message.blocks for v in block.vars if is_stored_parameter(v)]
        yield list(dict.fromkeys(declared))

    def build(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> SourceProgram:
        """Make the source program.

        Args:
            arrays: The loaded parameters.

        Raises:
            ModelFormatError: The program is inconsistent.
        """
        parameters = {
            name: SourceValue(name, SourceType(array.dtype.name, array.shape)) for name, array in arrays.items()
        }
        blocks = LegacyBlocks(self.message, parameters)
        block = blocks.build()
        inputs = [(name, value) for _, name, value in sorted(blocks.feeds, key=lambda feed: feed[0])]
        outputs = [(name, value) for _, name, value in sorted(blocks.fetches, key=lambda fetch: fetch[0])]
        if not outputs:
            outputs = _unread_results(block)
        if not outputs:
            raise ModelFormatError(f"{self.path}: the program has no outputs ({len(block.ops)} operators)")
        outputs = _drop_final_scales(block, outputs)
        results = [value for _, value in outputs]
        remove_unused_branch_results(block, results)
        refuse_undefined(block, blocks.undefined)
        return SourceProgram(
            kind="legacy",
            version=int(self.message.version.version),
            inputs=inputs,
            outputs=outputs,
            parameters=dict(arrays),
            parameter_values=parameters,
            block=block,
            path=self.path,
        )


def _byte_sorted(names: Any) -> list[str]:
    return sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape"))


def _unread_results(block: SourceBlock) -> list[tuple[str, SourceValue]]:
    """Return the outputs of a program that was cut without fetch operators: the values that are never read."""
    read = set()
    for op in block.walk():
        for values in op.inputs.values():
            read.update(values)
        for inner in op.blocks:
            read.update(inner.results)
    found: list[tuple[str, SourceValue]] = []
    for op in block.ops:
        for slot, values in op.outputs.items():
            if slot not in _SIDE_OUTPUTS:
                found.extend((value.name, value) for value in values if value not in read)
    return found


def _drop_final_scales(block: SourceBlock, outputs: list[tuple[str, SourceValue]]) -> list[tuple[str, SourceValue]]:
    """Remove the scale by one that Paddle up to 2.6 puts before each fetch; the output keeps its name."""
    fetched = {value for _, value in outputs}
    uses: dict[SourceValue, int] = {}
    for op in block.walk():
        for values in [*op.inputs.values(), *(inner.results for inner in op.blocks)]:
            for value in values:
                uses[value] = uses.get(value, 0) + 1
    replaced: dict[SourceValue, SourceValue] = {}
    for op in block.ops:
        if _is_identity_scale(op) and op.outputs["Out"][0] in fetched and not uses.get(op.outputs["Out"][0]):
            replaced[op.outputs["Out"][0]] = op.inputs["X"][0]
    block.ops = [op for op in block.ops if not (_is_identity_scale(op) and op.outputs["Out"][0] in replaced)]
    return [(name, replaced.get(value, value)) for name, value in outputs]


def _is_identity_scale(op: SourceOp) -> bool:
    return (
        op.type == "scale"
        and list(op.inputs) == ["X"]
        and list(op.outputs) == ["Out"]
        and op.attrs["scale"] == 1
        and op.attrs["bias"] == 0
    )
