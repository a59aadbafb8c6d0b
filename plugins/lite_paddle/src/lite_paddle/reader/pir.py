"""Reading of PIR programs (``.json``, Paddle 3): JSON to source program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError

from ..source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue
from .conditionals import remove_unused_branch_results, used_values
from .pir_blocks import PirBlocks, parameter_name
from .pir_json import Json, member, members, parse_envelope, program_version, qualified_name, read_type
from .training import is_training_op, refuse_training_program

# Constants that usually became attributes and then are not read.
_CONSTANTS = frozenset({"pd_op.full", "pd_op.full_int_array"})


class PirProgram:
    """A parsed PIR file.

    Args:
        path: Path of the file, for messages.
        data: The file's bytes.

    Raises:
        ModelFormatError: The file is not a PIR program.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        """Parse the JSON and list the parameters; ``build`` translates the operators."""
        self.path = path
        self._block, self.file_version = parse_envelope(path, data)
        self._stored: dict[str, SourceType] = {}
        self._not_stored: dict[str, SourceType] = {}
        for position, op in enumerate(members(self._block, "ops", "the main block")):
            where = f"operator {position}"
            if qualified_name(member(op, "#", str, where)) == "builtin.parameter":
                self._declare(op, where)

    def refuse_training(self) -> None:
        """Raise an error if the program has gradients, an optimizer, or saves values for a backward pass.

        Raises:
            ModelFormatError: The program has them.
        """
        names = {qualified_name(name) for name in _all_names(self._block)}
        refuse_training_program(self.path, {name for name in names if is_training_op(name.rpartition(".")[2])})

    def parameter_types(self) -> dict[str, SourceType]:
        """Return name -> declared type of every stored parameter, in the order of the file that Paddle writes."""
        return {name: self._stored[name] for name in sorted(self._stored, key=str.encode)}

    def quantized_names(self) -> frozenset[str]:
        """Return no names: PIR programs declare the types that the file has."""
        return frozenset()

    def parameter_name_lists(self) -> Iterator[list[str]]:
        """Return possible orders of the combined file, the usual one first."""
        yield list(self.parameter_types())
        yield list(self._stored)

    def build(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> SourceProgram:
        """Make the source program.

        Args:
            arrays: The loaded parameters.

        Raises:
            ModelFormatError: The program is inconsistent.
        """
        values = {name: SourceValue(name, SourceType(array.dtype.name, array.shape)) for name, array in arrays.items()}
        absent = {name: SourceValue(name, declared) for name, declared in self._not_stored.items()}
        blocks = PirBlocks({**absent, **values})
        block = blocks.build(self._block)
        outputs = [(name, value) for _, name, value in sorted(blocks.fetches, key=lambda fetch: fetch[0])]
        if not outputs:
            raise ModelFormatError(f"{self.path}: the program has no outputs ({len(block.ops)} operators)")
        results = [value for _, value in outputs]
        remove_unused_branch_results(block, results)
        used = used_values(block) | set(results)
        _keep_used(block, used)
        for name, value in absent.items():
            # The state of dropout in recurrent layers is such a parameter; no legacy slot reads it.
            if value in used and name not in values:
                raise ModelFormatError(f"{self.path}: the parameter {name!r} is read, but not stored (not persistable)")
        return SourceProgram(
            kind="pir",
            version=program_version(self.file_version),
            inputs=[(name, value) for _, name, value in sorted(blocks.feeds, key=lambda feed: feed[0])],
            outputs=outputs,
            parameters=dict(arrays),
            parameter_values=values,
            block=block,
            path=self.path,
            file_version=self.file_version,
        )

    def _declare(self, op: Json, where: str) -> None:
        name = parameter_name(op, where)
        found = read_type(member(op, "O", dict, where).get("TT"), f"parameter {name!r}")
        if not isinstance(found, SourceType):
            raise ModelFormatError(f"{self.path}: parameter {name!r} is no tensor")
        if name in self._stored or name in self._not_stored:
            raise ModelFormatError(f"{self.path}: two parameters are named {name!r}")
        flags = op.get("OA")
        persistable = not isinstance(flags, list) or not flags or bool(flags[0])
        (self._stored if persistable else self._not_stored)[name] = found


def _all_names(block: Any) -> Iterator[str]:
    for op in members(block, "ops", "a block"):
        yield member(op, "#", str, "an operator")
        for region in members(op, "regions", "an operator"):
            for inner in members(region, "blocks", "a region"):
                yield from _all_names(inner)


def _keep_used(block: SourceBlock, used: set[SourceValue]) -> None:
    def is_needed(op: SourceOp) -> bool:
        if op.original_type not in _CONSTANTS:
            return True
        return any(value in used for values in op.outputs.values() for value in values)

    block.ops = [op for op in block.ops if is_needed(op)]
    for op in block.ops:
        for inner in op.blocks:
            _keep_used(inner, used)
