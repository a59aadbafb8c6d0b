"""Test cases of element-wise operators: emitted, run on edge cases and random operands, compared with the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from lite_core import ops
from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.machine import Machine
from lite_cpu.machine_code.objects import compile_ir, load
from lite_cpu.scalar_ops import emit_operator, supports

Array = np.ndarray[Any, Any]

# **** operands ****

_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, -3.5, 7.0, -8.0, np.inf, -np.inf, np.nan]


def _numbers(random: np.random.Generator, dtype: DType, count: int) -> Array:
    """Return edge cases, then random numbers of all orders of magnitude."""
    if dtype is DType.BOOL:
        return random.random(count) < 0.5
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        edges = [0, 1, 2, 3, info.min, info.min + 1, info.max, info.max - 1] + ([-1, -2, -7] if dtype.is_signed else [])
        small = random.integers(-9 if dtype.is_signed else 0, 10, count)
        full = random.integers(info.min, info.max, count, dtype=dtype.numpy, endpoint=True)
        mixed = np.where(random.random(count) < 0.5, small.astype(dtype.numpy), full)
        return np.concatenate([np.array(edges, dtype.numpy), mixed])[:count]
    spread = random.standard_normal(count) * 10.0 ** random.uniform(-4, 4 if dtype is DType.FLOAT16 else 9, count)
    ordinary = np.where(random.random(count) < 0.7, random.uniform(-10, 10, count), spread)
    return np.concatenate([_SPECIAL, ordinary])[:count].astype(dtype.numpy)


def _operands(random: np.random.Generator, dtypes: Sequence[DType | None], count: int) -> list[Array | None]:
    """Return operands in which every edge case of the first meets every edge case of the second."""
    columns: list[Array | None] = []
    for number, dtype in enumerate(dtypes):
        pool = None if dtype is None else _numbers(random, dtype, count)
        if pool is not None and number == 1:
            edges = 16
            pool = np.concatenate([np.repeat(pool[:edges], edges), pool])[:count]
        elif pool is not None:
            pool = np.concatenate([np.tile(pool[:16], 16), pool])[:count]
        columns.append(pool)
    return columns


# **** running an operator ****

_EPSILON = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7, DType.FLOAT32: 2.0**-23, DType.FLOAT64: 2.0**-52}


@dataclass
class Case:
    """An operator on given element types.

    Attributes:
        ulps: tolerance, in epsilons of the result or, if that is larger, of 1.
        relative: the tolerance is in epsilons of the result only.
        restrict: replaces operands that the test cannot compare.
    """

    op: str
    inputs: Sequence[DType | None]
    output: DType
    attributes: dict[str, Any] = field(default_factory=dict)
    ulps: float = 0.0
    relative: bool = False
    restrict: Callable[[Sequence[Any]], Sequence[Any]] = lambda operands: operands

    @property
    def label(self) -> str:
        inputs = ",".join(str(d) for d in self.inputs)
        return f"{self.op}({inputs}) {self.attributes or ''}-> {self.output}"


def _emit(k: Emitter, case: Case, name: str) -> None:
    present = [(number, dtype) for number, dtype in enumerate(case.inputs) if dtype is not None]
    with k.kernel(name) as (pointers, _, begin, end, _scratch):
        tensors = {number: pointers.tensor(1 + n, dtype) for n, (number, dtype) in enumerate(present)}
        target = pointers.tensor(0, case.output)

        def body(index: Val, lanes: int) -> None:
            arguments: list[Val | None] = [None] * len(case.inputs)
            for number, dtype in present:
                loaded = tensors[number][index].load(lanes)
                arguments[number] = loaded.to(DType.FLOAT32) if dtype.is_half else loaded
            target[index].store(emit_operator(k, case.op, arguments, case.attributes, case.output))

        k.span(end - begin, k.machine.lanes(), body)


def run_kernel(address: int, inputs: Sequence[Array], output: Array) -> None:
    kernel = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 2, *(ctypes.c_int64,) * 2, ctypes.c_void_p)(address)
    pointers = np.array([a.ctypes.data for a in (output, *inputs)], np.int64)
    kernel(pointers.ctypes.data, None, 0, output.size, None)


def check_cases(cases: Sequence[Case], machine: Machine, count: int = 509) -> None:
    k = Emitter(machine)
    for number, case in enumerate(cases):
        assert supports(case.op, case.inputs, case.output, case.attributes) is None
        _emit(k, case, f"case{number}")
    code = load([compile_ir(k.text(), machine)])
    for number, case in enumerate(cases):
        operands = case.restrict(_operands(np.random.default_rng(number), case.inputs, count))
        actual = np.empty(count, case.output.numpy)
        run_kernel(code.address(0, f"case{number}"), [a for a in operands if a is not None], actual)
        _compare(case, operands, actual)


def _truth(case: Case, operands: Sequence[Array | None]) -> Array:
    """Return the result of the reference, computed in float64 for floating-point results that may be inexact."""
    domain, _, name = case.op.rpartition(".")
    definition = ops.find(name, domain)
    assert definition is not None
    attributes = {n: s.default for n, s in definition.attributes.items()} | case.attributes
    arguments = [_widened(case, a) for a in operands] + [None] * (definition.fixed_inputs - len(operands))
    if case.op == "Clip":
        arguments[1:] = [None if a is None else a[:1] for a in arguments[1:]]
    with np.errstate(all="ignore"):
        result = definition.reference(*arguments, **attributes)
    return np.asarray(result[0] if isinstance(result, tuple) else result)


def _widened(case: Case, operand: Array | None) -> Array | None:
    """Convert 16-bit floats to float32 for the reference, or to float64 for inexact results."""
    if operand is None or operand.dtype.kind not in "fV":
        return operand
    if case.ulps and case.output.is_floating:
        return operand.astype(np.float64)
    return operand.astype(np.float32) if operand.dtype.itemsize == 2 else operand


def _compare(case: Case, operands: Sequence[Array | None], actual: Array) -> None:
    expected = _truth(case, operands)
    if not case.output.is_floating:
        wrong = actual != expected
    else:
        with np.errstate(all="ignore"):
            rounded = expected.astype(case.output.numpy).astype(np.float64)
            result, expected = actual.astype(np.float64), expected.astype(np.float64)
            epsilon = _EPSILON[case.output]
            unit = np.abs(expected) if case.relative else np.maximum(np.abs(expected), 1)
            near = np.abs(result - expected) <= case.ulps * epsilon * unit
            flushed = (np.abs(expected) < 2.0**-126) & (np.abs(result) < 2.0**-126)
        wrong = ~((result == rounded) | (np.isnan(result) & np.isnan(rounded)) | near | flushed)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        given = [None if a is None else a[at] for a in operands]
        pytest.fail(f"{case.label}: of {given} is {actual[at]!r}, expected {expected[at]!r} ({wrong.sum()} wrong)")
