"""Cases of LSTM, GRU, RNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.tensors import Tensor, big, const, t, uniform, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType

#: Weights small enough to keep the gates from saturating.
weight = uniform(-0.8, 0.8)

#: Activations other than the defaults, with their parameters.
ACTIVATIONS: dict[str, dict[str, tuple[float, ...]]] = {
    "Relu": {},
    "Softsign": {},
    "Softplus": {},
    "HardSigmoid": {},
    "LeakyRelu": {"activation_alpha": (0.3, 0.2)},
    "Elu": {"activation_alpha": (0.5, 0.7)},
    "ScaledTanh": {"activation_alpha": (0.5, 0.7), "activation_beta": (0.3, 0.6)},
    "Affine": {"activation_alpha": (0.3, 0.2), "activation_beta": (0.1, -0.2)},
    "Sigmoid": {},
}

OfWeights = Callable[..., Tensor]


class Layer:
    """The operands of a recurrent operator on ``batch`` sequences of ``steps`` steps.

    Args:
        gates: number of gates of the operator.
        states: number of state tensors: 1 for h, 2 for h and c.
        steps, batch, inputs, hidden, directions: sizes.
        batch_first: ``layout`` 1.
        weights: makes the weights and biases: :func:`const` for constants, :func:`t` for run-time operands.
    """

    def __init__(
        self, gates: int, states: int = 1, *, steps: int = 4, batch: int = 3, inputs: int = 5, hidden: int = 7,
        directions: int = 1, batch_first: bool = False, weights: OfWeights = const,
    ) -> None:  # fmt: skip
        state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
        self.batch = batch
        self.x_shape = (batch, steps, inputs) if batch_first else (steps, batch, inputs)
        self.x = t(*self.x_shape)
        self.w = weights(directions, gates * hidden, inputs, init=weight)
        self.r = weights(directions, gates * hidden, hidden, init=weight)
        self.b = weights(directions, 2 * gates * hidden, init=weight)
        self.initial = tuple(t(*state, init=weight) for _ in range(states))
        self.peepholes = weights(directions, 3 * hidden, init=weight)

    def plain(self, x: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the required operands: input, weights and recurrence weights."""
        return (x or self.x, self.w, self.r)

    def lengths(self, *steps: int) -> Tensor:
        """Return the operand with the length of each sequence."""
        return values(steps, "int32")


def _add_recurrent(op: OpTable, gates: int, states: int, activations: tuple[str, ...]) -> None:
    """Add the cases that LSTM, GRU and RNN share.

    Args:
        op: the table to extend.
        gates: number of gates of the operator.
        states: number of its state tensors, each of which is also an output after the first.
        activations: the default activations of one direction.
    """
    every = 1 + states
    one = Layer(gates, states)
    two = Layer(gates, states, directions=2)
    first = Layer(gates, states, batch_first=True)
    both = Layer(gates, states, directions=2, batch_first=True)
    op("t4b3i5h7", *one.plain(), outputs=every)
    op("t4b3i5h7,one-output,hidden-size", *one.plain(), hidden_size=7)
    op("t4b3i5h7,bias", *one.plain(), one.b, outputs=every)
    op("t4b3i5h7,initial-states", *one.plain(), one.b, None, *one.initial, outputs=every)
    op("t4b3i5h7,initial-h-only", *one.plain(), None, None, one.initial[0], outputs=every)
    op("t4b3i5h7,lengths", *one.plain(), one.b, one.lengths(4, 1, 3), *one.initial, outputs=every)
    op("t4b3i5h7,reverse", *one.plain(), one.b, outputs=every, direction="reverse")
    op("t4b3i5h7,reverse,lengths", *one.plain(), one.b, one.lengths(2, 4, 3), *one.initial, outputs=every,
       direction="reverse")  # fmt: skip
    op("t4b3i5h7,bidirectional", *two.plain(), two.b, None, *two.initial, outputs=every, direction="bidirectional")
    op("t4b3i5h7,bidirectional,lengths", *two.plain(), two.b, two.lengths(1, 4, 2), outputs=every,
       direction="bidirectional")  # fmt: skip
    op("t4b3i5h7,batch-first", *first.plain(), first.b, None, *first.initial, outputs=every, layout=1)
    op("t4b3i5h7,batch-first,bidirectional,lengths", *both.plain(), both.b, both.lengths(3, 2, 4), *both.initial,
       outputs=every, layout=1, direction="bidirectional")  # fmt: skip
    # One step from a zero state only: implementations differ on whether an LSTM's cell state is clipped as well.
    step = Layer(gates, states, steps=1)
    op("t1b3i5h7,clip0.6", *step.plain(), step.b, None, step.initial[0], outputs=every, clip=0.6)
    op("t4b3i5h7,saturated", *one.plain(t(*one.x_shape, init=big)), one.b, outputs=every)
    op("t1b1i1h1", *Layer(gates, steps=1, batch=1, inputs=1, hidden=1).plain(), outputs=every)
    op("t3b1i33h17", *Layer(gates, steps=3, batch=1, inputs=33, hidden=17).plain(), outputs=every)
    op("t17b2i3h4,many-steps", *Layer(gates, steps=17, batch=2, inputs=3, hidden=4).plain(), outputs=every)
    op("t4b0i5h7,empty-batch", *Layer(gates, batch=0).plain(), outputs=every)
    dynamic = Layer(gates, weights=t)
    op("t4b3i5h7,weights-at-run-time", *dynamic.plain(), dynamic.b, outputs=every)

    count = len(activations)
    for name, parameters in ACTIVATIONS.items():
        # The gates keep bounded activations where the operator has several: unbounded gates let the states explode.
        used = activations[: count > 1] + (name,) * (count - (count > 1))
        attributes: dict[str, Any] = {key: numbers[: used.count(name)] for key, numbers in parameters.items()}
        op(f"t4b3i5h7,{name.lower()}", *one.plain(), one.b, outputs=every, activations=used, **attributes)
    for name in ("Affine", "Elu", "LeakyRelu", "ScaledTanh"):
        used = activations[: count > 1] + (name,) * (count - (count > 1))
        op(f"t4b3i5h7,{name.lower()},default-parameters", *one.plain(), one.b, outputs=every, activations=used)
    # One step from a zero state: behind a jump, rounding errors would show.
    thresholded = activations[: count > 1] + ("ThresholdedRelu",) * (count - (count > 1))
    for label, alpha in (("", {"activation_alpha": (0.25, 0.5)[: count - (count > 1)]}), (",default-parameters", {})):
        own_alpha: dict[str, Any] = alpha
        op(f"t1b3i5h7,thresholdedrelu{label}", *step.plain(t(*step.x_shape, init=uniform(-9, 9))), outputs=every,
           activations=thresholded, dtypes=("float32", "float64"), **own_alpha)  # fmt: skip
    op("t4b3i5h7,gates-hardsigmoid", *one.plain(), one.b, outputs=every, activations=("HardSigmoid", *activations[1:]),
       activation_alpha=(0.3,), activation_beta=(0.6,))  # fmt: skip
    op("t4b3i5h7,bidirectional,other-activations", *two.plain(), two.b, outputs=every, direction="bidirectional",
       activations=(*activations[:-1], "LeakyRelu", "HardSigmoid", *("Softsign",) * (count - 1)),
       activation_alpha=(0.1, 0.3), activation_beta=(0.4,))  # fmt: skip

    @op.drawn
    def draw_recurrent(draw: Draw, dtype: DType) -> OpCase:
        steps, batch = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        direction = draw(st.sampled_from(("forward", "reverse", "bidirectional")))
        layout = draw(st.integers(0, 1))
        layer = Layer(
            gates, states, steps=steps, batch=batch, inputs=draw(st.integers(1, 6)), hidden=draw(st.integers(1, 9)),
            directions=2 if direction == "bidirectional" else 1, batch_first=layout == 1,
            weights=draw(st.sampled_from((const, t))),
        )  # fmt: skip
        lengths = layer.lengths(*(draw(st.integers(1, steps)) for _ in range(batch)))
        operands = [
            *layer.plain(),
            layer.b if draw(st.booleans()) else None,
            lengths if draw(st.booleans()) else None,
            *(layer.initial if draw(st.booleans()) else (None,) * states),
        ]
        if states == 2 and draw(st.booleans()):
            operands.append(layer.peepholes)
        own: dict[str, Any] = {}
        if op.definition.name == "LSTM":
            own["input_forget"] = draw(st.integers(0, 1))
        if op.definition.name == "GRU":
            own["linear_before_reset"] = draw(st.integers(0, 1))
        return op.case(*operands, outputs=every, direction=direction, layout=layout, **own)


lstm = table("LSTM", SCALED)
_add_recurrent(lstm, 4, 2, ("Sigmoid", "Tanh", "Tanh"))
_layer = Layer(4, 2)
lstm("t4b3i5h7,peepholes", *_layer.plain(), _layer.b, None, *_layer.initial, _layer.peepholes, outputs=3)
lstm("t4b3i5h7,two-outputs", *_layer.plain(), _layer.b, outputs=2)
lstm("t4b3i5h7,input-forget", *_layer.plain(), _layer.b, None, *_layer.initial, outputs=3, input_forget=1)
lstm("t4b3i5h7,initial-c-only", *_layer.plain(), None, None, None, _layer.initial[1], outputs=3)
_two = Layer(4, 2, directions=2)
lstm("t4b3i5h7,bidirectional,peepholes", *_two.plain(), _two.b, None, None, None, _two.peepholes, outputs=3,
     direction="bidirectional")  # fmt: skip

gru = table("GRU", SCALED)
_add_recurrent(gru, 3, 1, ("Sigmoid", "Tanh"))
_layer = Layer(3)
gru("t4b3i5h7,linear-before-reset", *_layer.plain(), _layer.b, None, *_layer.initial, outputs=2, linear_before_reset=1)
gru("t4b3i5h7,linear-before-reset,no-bias", *_layer.plain(), outputs=2, linear_before_reset=1)
_two = Layer(3, directions=2)
gru("t4b3i5h7,bidirectional,linear-before-reset", *_two.plain(), _two.b, _two.lengths(2, 4, 1), *_two.initial,
    outputs=2, direction="bidirectional", linear_before_reset=1)  # fmt: skip

rnn = table("RNN", SCALED)
_add_recurrent(rnn, 1, 1, ("Tanh",))
# NOTE: ThresholdedRelu has a jump at its threshold, and half types round numbers across it.
_layer = Layer(1)
rnn("t4b3i5h7,thresholdedrelu", *_layer.plain(), _layer.b, outputs=2, dtypes=("float32", "float64"),
    activations=("ThresholdedRelu",), activation_alpha=(0.4,))  # fmt: skip
for _name in ("LeakyRelu", "Elu"):
    rnn(
        f"t4b3i5h7,{_name.lower()},default-alpha",
        *_layer.plain(),
        _layer.b,
        outputs=2,
        activations=(_name,),
        hidden_size=7,
    )
