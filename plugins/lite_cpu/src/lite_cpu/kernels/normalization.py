"""Normalization of rows: to mean 0 and variance 1, or to norm 1."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, each_row
from lite_cpu.vector_math import absolute, sqrt

__all__ = ["Normalization", "ScaleToNorm"]

F32 = DType.FLOAT32


@dataclass(frozen=True)
class Normalization(Kernel):
    """Normalization of each row: ``(x - mean) / sqrt(variance + epsilon) * scale + bias``.

    Pointers: elements, result; then, as far as present, scale, bias, mean of each row, reciprocal standard deviation of
    each row. Parameters: those of the layout, epsilon (float32 bits).

    With ``epsilon_outside`` epsilon is added to the square root instead. All is computed in float32; a layout with
    scratch memory holds the elements there, so that each of them is converted once.
    """

    layout: RowLayout
    scale: bool = False
    bias: bool = False
    mean: bool = False
    deviation: bool = False
    epsilon_outside: bool = False

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            epsilon = params.number(self.layout.parameters, F32)
            each_row(k, self.layout, pointers, params, begin, end, lambda row: self._emit_row(row, epsilon), scratch)

    def _emit_row(self, row: Row, epsilon: Val) -> None:
        part = 1.0 / row.count.to(F32)
        held = len(self.layout.dtypes) - 1 if self.layout.wide else 0

        def first_load(elements: Elements) -> Val:
            value = elements.load(0, 0.0)
            if held:
                elements.store(held, value)
            return value

        means = [total * part for total in row.sum(first_load)]

        def square(elements: Elements) -> Val:
            centred = elements.load(held, means[elements.column]) - means[elements.column]
            return centred * centred

        variances = [total * part for total in row.sum(square)]
        if self.epsilon_outside:
            reciprocals = [1.0 / (sqrt(v) + epsilon) for v in variances]
        else:
            reciprocals = [1.0 / sqrt(v + epsilon) for v in variances]

        def element(elements: Elements) -> None:
            value = (elements.load(held) - means[elements.column]) * reciprocals[elements.column]
            tensor = 2
            if self.scale:
                value = value * elements.load(tensor)
                tensor += 1
            if self.bias:
                value = value + elements.load(tensor)
            elements.store(1, value)

        row.walk(element)
        statistics = 2 + self.scale + self.bias
        if self.mean:
            row.store(statistics, means)
        if self.deviation:
            row.store(statistics + self.mean, reciprocals)


@dataclass(frozen=True)
class ScaleToNorm(Kernel):
    """Elements divided by the norm of their row, of order ``p`` 1 or 2; zeros stay 0. Pointers: elements, result."""

    layout: RowLayout
    p: int

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(k, self.layout, pointers, params, begin, end, self._emit_row)

    def _emit_row(self, row: Row) -> None:
        def term(elements: Elements) -> Val:
            value = elements.load(0, 0.0)
            return absolute(value) if self.p == 1 else value * value

        norms = row.sum(term)
        if self.p == 2:
            norms = [sqrt(total) for total in norms]
        divisors = [norm.eq(0.0).select(1.0, norm) for norm in norms]
        row.walk(lambda elements: elements.store(1, elements.load(0) / divisors[elements.column]))
