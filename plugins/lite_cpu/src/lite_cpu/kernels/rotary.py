"""Rotation of pairs of elements by angles that depend on the position."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.gather import wrapped

__all__ = ["PARAMETERS", "Rotary"]

F32, I64 = DType.FLOAT32, DType.INT64

#: Order of the parameters; strides in elements. ``half`` is the number of pairs, ``width`` the size of a head;
#: ``fault`` is the number of the error for a position that is not in the tables.
PARAMETERS = (
    "heads", "rows", "half", "width", "table_rows", "fault",
    "x_batch", "x_head", "x_row",
    "y_batch", "y_head", "y_row",
    "angle_batch", "angle_row",
)  # fmt: skip


@dataclass(frozen=True)
class Rotary(Kernel):
    """Rotation of the first pairs of each head; the other elements are copied. A work item is a row of a head.

    Pointers: X, Y, cosines, sines; with ``positions`` also these (int64) and the fault. Without, the angles have a row
    for each row of X; with them, ``angle_batch`` and ``angle_row`` are strides of the positions.

    Attributes:
        interleaved: the elements of a pair are neighbours; else the second one is ``half`` elements further.
        positions: the rows of the tables are given by positions.
    """

    interleaved: bool
    positions: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            half, lanes = p["half"], k.machine.lanes()
            with k.loop(begin, end) as item:
                row, rest = item % p["rows"], item / p["rows"]
                head, batch = rest % p["heads"], rest / p["heads"]
                x, y = (
                    pointers.tensor(i, F32)[batch * p[f"{n}_batch"] + head * p[f"{n}_head"] + row * p[f"{n}_row"]]
                    for i, n in enumerate("xy")
                )
                angle = batch * p["angle_batch"] + row * p["angle_row"]
                if self.positions:
                    position = pointers.tensor(4, I64)[angle].load()
                    with k.if_((position >= p["table_rows"]) | (position < -p["table_rows"])):
                        fault = pointers.tensor(5, I64)
                        fault.store(p["fault"])
                        fault[1].store(position)
                    angle = wrapped(k, position, p["table_rows"]) * half
                cosine, sine = (pointers.tensor(i, F32)[angle] for i in (2, 3))

                def rotate(i: Val, n: int, x=x, y=y, cosine=cosine, sine=sine) -> None:  # type: ignore[no-untyped-def]
                    first, second = (2 * i, 2 * i + 1) if self.interleaved else (i, half + i)
                    a, b, c, s = x[first].load(n), x[second].load(n), cosine[i].load(n), sine[i].load(n)
                    y[first].store(a * c - b * s)
                    y[second].store(a * s + b * c)

                k.span(half, 1 if self.interleaved else lanes, rotate)
                rest_x, rest_y = x[2 * half], y[2 * half]

                def keep(i: Val, n: int, x=rest_x, y=rest_y) -> None:  # type: ignore[no-untyped-def]
                    y[i].store(x[i].load(n))

                k.span(p["width"] - 2 * half, lanes, keep)
