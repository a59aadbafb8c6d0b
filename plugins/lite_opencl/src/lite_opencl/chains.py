"""Chains: element-wise operators that run one after another on a value in a register.

A kernel applies a :class:`Chain` to each element before it stores it: as the epilogue of a convolution, or as all of
an element-wise kernel. A chain is static data, part of the key of the compiled kernel, and becomes two macros::

    EPILOGUE_PARAMETERS              the end of the kernel's parameter list (empty, or begins with a comma)
    EPILOGUE(value, row, column)     the result for a value, in the compute type of the output, for STORE_Y
"""

from __future__ import annotations

from typing import NamedTuple

from lite_compiler.chains import Apply
from lite_core.ir import DType
from lite_opencl.addressing import Addressing
from lite_opencl.programs.element_types import c_type
from lite_opencl.scalar_ops import cost, emit_operator, helper_functions

__all__ = ["Chain", "Operand"]


class Operand(NamedTuple):
    """An input of a chain other than its start; without ``addressing`` a number that is passed by value."""

    dtype: DType
    addressing: Addressing | None


class Chain(NamedTuple):
    """Element-wise steps on numbered values: 0 is the start, then come the operands, then the result of each step.

    The last value is the result. A chain without steps returns its start.
    """

    start: DType
    operands: tuple[Operand, ...] = ()
    steps: tuple[Apply, ...] = ()

    @property
    def output(self) -> DType:
        return self.steps[-1].output if self.steps else self.start

    @property
    def dtypes(self) -> set[DType]:
        """All element types of the chain's values."""
        return {self.start, *(o.dtype for o in self.operands), *(s.output for s in self.steps)}

    @property
    def cost(self) -> int:
        """The approximate number of floating-point operations for one element."""
        return sum(cost(step.op) for step in self.steps)

    def text(self) -> str:
        """Return the chain as macros in C; see the module."""
        result = c_type(self.output)
        dtypes: list[DType] = [self.start, *(o.dtype for o in self.operands)]
        names = [f"v{i}" for i in range(len(dtypes))]
        parameters: list[str] = []
        arguments: list[str] = []
        body: list[str] = []
        for i, operand in enumerate(self.operands):
            declared, passed, value = _operand(i, operand)
            parameters += declared
            arguments += passed
            body.append(f"const {c_type(operand.dtype).compute} v{i + 1} = {value};")
        for step in self.steps:
            inputs = [None if n is None else (names[n], dtypes[n]) for n in step.inputs]
            expression = emit_operator(step.op, inputs, dict(step.attributes), step.output)
            names.append(f"v{len(names)}")
            dtypes.append(step.output)
            body.append(f"const {c_type(step.output).compute} {names[-1]} = {expression};")
        listed = "".join(f", {p}" for p in parameters)
        lines = [
            helper_functions(self.steps, dtypes),
            f"#define EPILOGUE_PARAMETERS {listed}",
            f"static inline {result.compute} epilogue_chain(const {c_type(self.start).compute} v0, const int row, "
            f"const int column{listed}) {{",
            *(f"    {line}" for line in body),
            f"    return {names[-1]};",
            "}",
            "#define EPILOGUE(value, row, column) epilogue_chain(value, row, column"
            f"{''.join(f', {a}' for a in arguments)})",
        ]
        return "\n".join(lines) + "\n"


def _operand(i: int, operand: Operand) -> tuple[list[str], list[str], str]:
    """Return the parameters, the arguments and the value expression of an operand."""
    kind, name = c_type(operand.dtype), f"operand{i}"
    if operand.addressing is None:
        return [f"const {kind.compute} {name}"], [name], name
    addressing = operand.addressing
    pointer = [f"__global const {kind.storage}* {name}_base", f"const ulong {name}_offset"]
    value = f"LOAD_{kind.suffix}({name}_base + {name}_offset, {addressing.index(name)})"
    passed = [f"{name}_base", f"{name}_offset", *addressing.arguments(name)]
    return [*pointer, *addressing.parameters(name)], passed, value
