"""Cases of QuantizedLSTM (domain ``lite``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.recurrent import ACTIVATIONS
from lite_conformance.cases.tensors import Array, Tensor, as_type, const, integers, t, uniform, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType

_state = uniform(-0.9, 0.9)
_EIGHT_BITS = ("int8", "uint8")
_WEIGHTS = integers(-100, 100)
_CODES = integers(20, 220)
_ZERO = 120


def _unsigned(dtype: str) -> bool:
    return dtype == "uint8"


class _Layer:
    """The operands of a layer: the size of a unit of the weights keeps the gates from saturating."""

    def __init__(
        self, *, steps: int = 3, batch: int = 1, hidden: int = 7, directions: int = 1, dtype: str = "int8"
    ) -> None:
        columns, state = 4 * hidden, (directions, batch, hidden)
        self.x = t(steps, batch, directions * columns, dtype="float32", init=uniform(-1, 1))
        self.scale = const(directions, dtype="float32", init=uniform(0.002, 0.004))
        self.scales = const(directions, columns, dtype="float32", init=uniform(0.002, 0.004))
        self.r = const(directions, columns, hidden, dtype=dtype, init=_CODES if _unsigned(dtype) else _WEIGHTS)
        self.b = const(directions, columns, dtype="float32", init=uniform(-0.5, 0.5))
        self.h, self.c = (t(*state, dtype="float32", init=_state) for _ in range(2))
        self.p = const(directions, 3 * hidden, dtype="float32", init=uniform(-0.5, 0.5))
        self.zero = const(directions, dtype=dtype, init=integers(_ZERO, _ZERO + 9))
        self.zeros = const(directions, columns, dtype=dtype, init=integers(_ZERO, _ZERO + 9))


def _lengths(*steps: int) -> Tensor:
    return values(steps, "int32")


lstm = table("QuantizedLSTM", SCALED, domain="lite")
_one, _three, _two = _Layer(), _Layer(batch=3), _Layer(batch=2, directions=2)
lstm("t3b1h7", _one.x, _one.scale, _one.r, outputs=3)
lstm("t3b1h7,all", _one.x, _one.scales, _one.r, _one.b, None, _one.h, _one.c, _one.p, outputs=3)
lstm("t3b1h7,reverse", _one.x, _one.scale, _one.r, _one.b, outputs=3, direction="reverse")
lstm("t3b1h7,input-forget,clip", _one.x, _one.scale, _one.r, _one.b, None, _one.h, outputs=3, input_forget=1, clip=0.8)
lstm("t3b3h7,lengths", _three.x, _three.scale, _three.r, _three.b, _lengths(3, 1, 2), outputs=3)
lstm("t3b3h7,states", _three.x, _three.scales, _three.r, None, None, _three.h, _three.c, outputs=3)
lstm("t3b2h7,bidirectional", _two.x, _two.scales, _two.r, _two.b, None, _two.h, _two.c, outputs=3,
     direction="bidirectional")  # fmt: skip
lstm("t3b2h7,relu", _two.x, _two.scale, _two.r, _two.b, outputs=3, direction="bidirectional",
     activations=("Sigmoid", "Relu", "Tanh", "HardSigmoid", "Tanh", "Softsign"))  # fmt: skip
lstm("t3b5h16", *(lambda g: (g.x, g.scale, g.r, g.b))(_Layer(batch=5, hidden=16)), outputs=3)
lstm("t3b0h7,empty-batch", *(lambda g: (g.x, g.scale, g.r, g.b))(_Layer(batch=0)), outputs=3)
lstm("t1b1h1", *(lambda g: (g.x, g.scale, g.r))(_Layer(steps=1, hidden=1)), outputs=1)
lstm("t2b1h33,uint8", *(lambda g: (g.x, g.scale, g.r, g.b, None, g.h, g.c, None, g.zero))(
    _Layer(steps=2, hidden=33, dtype="uint8")), outputs=3)  # fmt: skip
lstm("t2b2h9,uint8,zero-points-of-columns", *(lambda g: (g.x, g.scales, g.r, g.b, None, None, None, None, g.zeros))(
    _Layer(steps=2, batch=2, hidden=9, dtype="uint8")), outputs=3)  # fmt: skip
lstm("t3b1h7,hidden-size", _one.x, _one.scale, _one.r, outputs=3, hidden_size=7)
lstm("t3b1h7,int8,zero-point", _one.x, _one.scale, _one.r, _one.b, None, _one.h, None, None,
     const(1, dtype="int8", init=integers(20, 30)), outputs=3)  # fmt: skip
lstm("t2b1h5,uint8,no-zero-point", *(lambda g: (g.x, g.scale, g.r))(_Layer(steps=2, hidden=5, dtype="uint8")),
     outputs=2)  # fmt: skip


def _symmetric(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return a state whose largest number and zero point are both rounded up, to a code beyond 255."""
    return as_type(random.choice([-1, 1], size) * 255 / 512, dtype)


def _some_nan(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers of which every fifth is NaN."""
    numbers = random.uniform(-9, 9, size)
    numbers[..., ::5] = np.nan
    return as_type(numbers, dtype)


lstm("t1b2h16,symmetric-state", *(lambda g: (g.x, g.scales, g.r, g.b, None))(_Layer(steps=1, batch=2, hidden=16)),
     t(1, 2, 16, dtype="float32", init=_symmetric), outputs=3)  # fmt: skip

# One step from a zero state: behind a jump, rounding errors would show.
_step = _Layer(steps=1, hidden=33)
_wide = t(1, 1, 132, dtype="float32", init=uniform(-9, 9))
#: From -1.5 to 1.5 in steps of 1/512, every fourth for one gate; the cell's have 1, the default of ThresholdedRelu.
_fine = values(np.arange(-771, 765).reshape(1, 1, 384, 4).swapaxes(2, 3).reshape(1, 1, -1) / 512, "float32")
_small_weights = const(1, 1536, 384, dtype="int8", init=integers(-9, 9))
_thresholded: dict[str, tuple[float, ...]] = {"activation_alpha": (0.25, 0.5)}
for _name, _parameters in [*ACTIVATIONS.items(), ("ThresholdedRelu", _thresholded)]:
    _own: dict[str, Any] = {"activations": ("Sigmoid", _name, _name), **_parameters}
    lstm(f"t1b1h33,{_name.lower()}", _wide, _step.scale, _step.r, outputs=3, **_own)
    if _parameters:
        lstm(f"t1b1h384,{_name.lower()},default-parameters", _fine, _step.scale, _small_weights, outputs=3,
             activations=("Sigmoid", _name, _name))  # fmt: skip
for _name in ("Relu", "Elu"):
    lstm(f"t1b1h33,{_name.lower()},nan", t(1, 1, 132, dtype="float32", init=_some_nan), _step.scale, _step.r, outputs=3,
         activations=("Sigmoid", _name, _name))  # fmt: skip
lstm("t20b33h100,large", *(lambda g: (g.x, g.scale, g.r))(_Layer(steps=20, batch=33, hidden=100)), outputs=3)
lstm("t1b1h33,gates-hardsigmoid", _wide, _step.scale, _step.r, outputs=3, activations=("HardSigmoid", "Tanh", "Tanh"),
     activation_alpha=(0.3,), activation_beta=(0.6,))  # fmt: skip
lstm("t3b2h7,bidirectional,other-activations", _two.x, _two.scale, _two.r, _two.b, outputs=3,
     direction="bidirectional", activations=("Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Softsign", "Softsign"),
     activation_alpha=(0.1, 0.3), activation_beta=(0.4,))  # fmt: skip


@lstm.drawn
def draw_quantized(draw: Draw, dtype: DType) -> OpCase:
    direction = draw(st.sampled_from(("forward", "reverse", "bidirectional")))
    kind = draw(st.sampled_from(_EIGHT_BITS))
    layer = _Layer(
        steps=draw(st.integers(1, 3)), batch=draw(st.integers(1, 3)), hidden=draw(st.integers(1, 20)),
        directions=2 if direction == "bidirectional" else 1, dtype=kind,
    )  # fmt: skip
    by_column = draw(st.booleans())
    zero = layer.zeros if by_column else layer.zero
    operands: list[Any] = [
        layer.x, layer.scales if by_column else layer.scale, layer.r, layer.b if draw(st.booleans()) else None, None,
        layer.h if draw(st.booleans()) else None, None, None, zero if _unsigned(kind) else None,
    ]  # fmt: skip
    return lstm.case(*operands, outputs=3, direction=direction)
