"""Generated code that follows the instructions of a recipe: integer arithmetic on a table of numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from llvmlite import ir

from lite_cpu.runtime.codegen import INT64, Function, Int64, Module
from lite_cpu.templates.layout import INSTRUCTION_FIELDS, Operation

__all__ = ["emit_follow"]

_LEAST = -(1 << 63)


class _Field(IntEnum):
    OPERATION = 0
    RESULT = 1
    LEFT = 2
    RIGHT = 3


def emit_follow(code: Module, convention: str) -> None:
    """Emit ``lite_follow(instructions, count, numbers)``; :class:`Operation` describes the instructions.

    It returns 1, or 0 if a number did not turn out as it must, does not fit into 64 bits, or was divided by 0.
    """
    with code.function("lite_follow", 3, result=True, exported=True, convention=convention) as f:
        instructions, count, numbers = f.arguments
        b = f.builder
        failed = b.append_basic_block("failed")
        with f.count(count) as i:
            instruction = instructions.at(i * INSTRUCTION_FIELDS)
            left, right = (numbers[instruction[field]].value for field in (_Field.LEFT, _Field.RIGHT))
            result = instruction[_Field.RESULT]
            done = b.append_basic_block("done")
            choice = b.switch(instruction[_Field.OPERATION].value, failed)
            for operation in Operation:
                block = b.append_basic_block(operation.name.lower())
                choice.add_case(ir.Constant(INT64, operation), block)
                b.position_at_end(block)
                _emit_operation(f, operation, left, right, numbers, result, failed)
                b.branch(done)
            b.position_at_end(done)
        f.ret(1)
        b.position_at_end(failed)
        f.ret(0)


def _emit_operation(
    f: Function, operation: Operation, left: Any, right: Any, numbers: Int64, result: Int64, failed: Any
) -> None:
    b = f.builder
    if operation is Operation.EXPECT:
        _leave_unless(f, b.icmp_signed("==", left, right), failed)
    elif operation is Operation.CHOOSE:
        chosen = b.select(b.icmp_signed("!=", left, ir.Constant(INT64, 0)), right, numbers[result].value)
        numbers[result] = Int64(f, chosen)
    else:
        numbers[result] = Int64(f, _calculated(f, operation, left, right, failed))


def _calculated(f: Function, operation: Operation, left: Any, right: Any, failed: Any) -> Any:
    b = f.builder
    checked = {
        Operation.ADD: b.sadd_with_overflow, Operation.SUBTRACT: b.ssub_with_overflow,
        Operation.MULTIPLY: b.smul_with_overflow,
    }  # fmt: skip
    signs = {Operation.EQUAL: "==", Operation.LESS: "<", Operation.AT_MOST: "<="}
    if operation in checked:
        pair = checked[operation](left, right)
        _leave_unless(f, b.not_(b.extract_value(pair, 1)), failed)
        return b.extract_value(pair, 0)
    if operation in signs:
        return b.zext(b.icmp_signed(signs[operation], left, right), INT64)
    if operation in (Operation.LARGEST, Operation.SMALLEST):
        sign = ">" if operation is Operation.LARGEST else "<"
        return b.select(b.icmp_signed(sign, right, left), right, left)
    if operation is Operation.NEARBY:
        return _nearby(f, left, failed)
    return _divided(f, operation, left, right, failed)


def _nearby(f: Function, length: Any, failed: Any) -> Any:
    """Return what :func:`lite_cpu.kernels.shares.nearby` does."""
    b, zero, one = f.builder, ir.Constant(INT64, 0), ir.Constant(INT64, 1)
    _leave_unless(f, b.icmp_unsigned("<", length, ir.Constant(INT64, 1 << 62)), failed)
    excess = b.sub(ir.Constant(INT64, 64 - 5), b.ctlz(length, ir.Constant(ir.IntType(1), 0)))
    shift = b.select(b.icmp_signed(">", excess, zero), excess, zero)
    half = b.lshr(b.shl(one, shift), one)
    return b.shl(b.lshr(b.add(length, half), shift), shift)


def _divided(f: Function, operation: Operation, left: Any, right: Any, failed: Any) -> Any:
    """Return the quotient, rounded down, or the remainder, which has the sign of the divisor."""
    b, zero = f.builder, ir.Constant(INT64, 0)
    _leave_unless(f, b.icmp_signed("!=", right, zero), failed)
    _leave_unless(f, b.icmp_signed("!=", left, ir.Constant(INT64, _LEAST)), failed)  # by -1 it would overflow
    quotient, rest = b.sdiv(left, right), b.srem(left, right)
    differ = b.icmp_signed("<", b.xor(rest, right), zero)
    rounds = b.and_(b.icmp_signed("!=", rest, zero), differ)
    if operation is Operation.DIVIDE:
        return b.sub(quotient, b.zext(rounds, INT64))
    return b.select(rounds, b.add(rest, right), rest)


def _leave_unless(f: Function, condition: Any, failed: Any) -> None:
    rest = f.builder.append_basic_block()
    f.builder.cbranch(condition, rest, failed)
    f.builder.position_at_end(rest)
