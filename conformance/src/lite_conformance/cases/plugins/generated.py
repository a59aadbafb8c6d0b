"""Cases for an operator whose package brings none, generated from its signature.

All operands have one shape and standard normal elements, and attributes have their defaults. That suits element-wise
operators and others that keep the shape; which shapes an operator takes, its inference says. The reference in the
element type itself is the truth, because an unknown operator may round or compare.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable
from lite_conformance.cases.tensors import Tensor, t
from lite_conformance.judge.tolerances import SCALED
from lite_core.errors import LiteError
from lite_core.ir import DType
from lite_core.ops import OpDef, Parameter

__all__ = ["generated_table"]

_NUMERICS = replace(SCALED, name="scaled, truth in the element type", truth="native")
_SHAPES = ((2, 3), (7,), (3, 4, 5), (2, 3, 4, 5), (3, 257), (0, 3), ())


def generated_table(definition: OpDef) -> OpTable | str:
    """Return a table that is not registered, or the reason why none can be generated."""
    attributes: dict[str, Any] = {}
    for name, spec in definition.attributes.items():
        if spec.required and not spec.choices:
            return f"its attribute {name!r} is required"
        if spec.required:
            attributes[name] = spec.choices[0]
    if any(parameter.variadic for parameter in definition.outputs):
        return "its number of outputs is not fixed"
    if not definition.inputs:
        return "it has no inputs"
    operands: list[tuple[Parameter, str | None]] = []
    for parameter in definition.inputs:
        dtype = _operand_type(definition, parameter)
        if dtype is None and parameter.type != definition.working_type:
            if not parameter.optional:
                return f"its input {parameter.name!r} is of type {parameter.type}, whose valid elements are unknown"
            break
        operands.append((parameter, dtype))
    outputs = sum(not parameter.optional for parameter in definition.outputs)
    table = OpTable(definition.name, _NUMERICS, domain=definition.domain)

    def operands_of(shape: tuple[int, ...], with_optional: bool) -> list[Tensor | None]:
        found: list[Tensor | None] = []
        for parameter, dtype in operands:
            is_omitted = parameter.optional and not with_optional
            found += [None if is_omitted else t(*shape, dtype=dtype)] * (2 if parameter.variadic else 1)
        return found

    accepted = []
    problem = "it has no element type"
    for shape in _SHAPES if table.dtypes else ():
        try:
            table.case(*operands_of(shape, False), outputs=outputs, **attributes).build(table.dtypes[0], 0)
        except LiteError as error:
            problem = f"its inference refuses operands of one shape: {error}"
        else:
            accepted.append(shape)
            table(f"generated-{_shown(shape)}", *operands_of(shape, False), outputs=outputs, **attributes)
    if not any(0 not in shape for shape in accepted):
        return problem
    if any(parameter.optional for parameter, _ in operands):
        table("generated-every-input", *operands_of(accepted[0], True), outputs=outputs, **attributes)
    ranks = sorted({len(shape) for shape in accepted if 0 not in shape})

    @table.drawn
    def draw(draw: Draw, dtype: DType) -> OpCase:
        rank = draw(st.sampled_from(ranks))
        shape = tuple(draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank)))
        return table.case(*operands_of(shape, False), outputs=outputs, **attributes)

    return table


def _operand_type(definition: OpDef, parameter: Parameter) -> str | None:
    """Return a floating type or bool for an input that does not have the type of the case; None if there is none."""
    if parameter.type == definition.working_type:
        return None
    found = (DType.of(d) for d in definition.types.get(parameter.type, (parameter.type,)))
    return next((d.value for d in found if d is DType.BOOL or (d.is_floating and not d.is_narrow)), None)


def _shown(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
