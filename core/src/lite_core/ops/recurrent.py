"""LSTM, GRU and RNN over whole sequences, in one or both directions.

One driver implements what the three share (direction, layout, sequence lengths, the input projection of
all steps in one matrix product); each operator adds the arithmetic of one step. Sizes in this file: T
steps, B sequences, I inputs, H hidden units, D directions, G gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import AttributeSpec, choice, op, optional

__all__ = ["LSTM_ACTIVATIONS", "activations_of", "attributes_of_layer", "expect", "lstm_steps", "run_sequences"]

Array = np.ndarray[Any, Any]
Activation = Callable[[Array], Array]


#: The default activations of an LSTM: of its gates, of the new cell, and of the cell in the state.
LSTM_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")

# **** activation functions named by attributes ****


def _softplus(x: Array, alpha: float, beta: float) -> Array:
    return np.logaddexp(x, np.zeros((), x.dtype))


# name -> (function of x, alpha, beta; default alpha; default beta); None for a parameter it does not take.
_ACTIVATIONS: dict[str, tuple[Callable[[Array, float, float], Array], float | None, float | None]] = {
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    # the logistic function written with tanh does not overflow
    "sigmoid": (lambda x, a, b: 0.5 * np.tanh(0.5 * x) + 0.5, None, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "softplus": (_softplus, None, None),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, None),
    # NaN fails the comparison and stays NaN
    "thresholdedrelu": (lambda x, a, b: np.where(x <= a, 0, x), 1.0, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), 1.0, None),
}


def activations_of(attributes: dict[str, Any], defaults: Sequence[str], directions: int) -> list[Activation]:
    """Return the activation functions of all directions; each that takes alpha or beta gets the next number listed.

    Raises:
        GraphError: a name is unknown, or their number is not that of the operator's activations.
    """
    names = attributes["activations"] or tuple(defaults) * directions
    if len(names) != len(defaults) * directions:
        raise fail(
            f"activations lists {len(names)} functions, expected {len(defaults) * directions} "
            f"({len(defaults)} for each of {directions} directions)"
        )
    alphas, betas = iter(attributes["activation_alpha"] or ()), iter(attributes["activation_beta"] or ())
    return [_activation(name, alphas, betas, attributes["clip"]) for name in names]


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float], clip: float | None) -> Activation:
    found = _ACTIVATIONS.get(name.lower())
    if found is None:
        raise fail(f"activation {name!r} is not one of {', '.join(sorted(_ACTIVATIONS))}")
    function, default_alpha, default_beta = found
    alpha = 0.0 if default_alpha is None else next(alphas, default_alpha)
    beta = 0.0 if default_beta is None else next(betas, default_beta)

    def apply(x: Array) -> Array:
        clipped = x if clip is None else np.clip(x, -clip, clip)
        return function(clipped, alpha, beta).astype(x.dtype, copy=False)

    return apply


# **** the common driver ****


def attributes_of_layer(**own: Any) -> dict[str, AttributeSpec | int]:
    """Return the attributes that all recurrent operators have, and an operator's own ones."""
    return {
        "activation_alpha": optional("floats"),
        "activation_beta": optional("floats"),
        "activations": optional("strs"),
        "clip": optional("float"),
        "direction": choice("forward", "reverse", "bidirectional"),
        "hidden_size": optional("int"),
        "layout": 0,
        **own,
    }


def _infer(
    gates: int, states: int, defaults: Sequence[str], peepholes: int | None = None
) -> Callable[[Inference], list[Shape]]:
    """Return the inference function of an operator with these numbers of gates and state tensors (h, or h and c)."""

    def infer(inference: Inference) -> list[Shape]:
        attributes = inference.attributes
        directions = 2 if attributes["direction"] == "bidirectional" else 1
        activations_of(dict(attributes), defaults, directions)
        if attributes["layout"] not in (0, 1):
            raise fail(f"layout must be 0 (steps first) or 1 (batch first), is {attributes['layout']}")
        steps, batch, size = _sizes(inference)
        hidden = _hidden(inference)
        expect(inference, 1, "W", (directions, gates * hidden, size))
        expect(inference, 2, "R", (directions, gates * hidden, hidden))
        expect(inference, 3, "B", (directions, 2 * gates * hidden))
        expect(inference, 4, "sequence_lens", (batch,))
        batch_first = attributes["layout"] == 1
        state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
        for number, name in enumerate(("initial_h", "initial_c")[:states]):
            expect(inference, 5 + number, name, state)
        if peepholes is not None:
            expect(inference, peepholes, "P", (directions, 3 * hidden))
        whole = (batch, steps, directions, hidden) if batch_first else (steps, directions, batch, hidden)
        return [whole, *[state] * states]

    return infer


def _sizes(inference: Inference) -> Shape:
    """Return steps, batch and input size; fresh symbols if the rank of X is unknown."""
    shape = inference.shape(0)
    if shape is None:
        return fresh_dim("steps"), fresh_dim("batch"), fresh_dim("input_size")
    if len(shape) != 3:
        order = "[batch, steps, input]" if inference.attributes["layout"] == 1 else "[steps, batch, input]"
        raise fail(f"X must be {order}, has {len(shape)} dimensions")
    return (shape[1], shape[0], shape[2]) if inference.attributes["layout"] == 1 else shape


def _hidden(inference: Inference) -> Dim:
    recurrent, declared = inference.shape(2), inference.attributes["hidden_size"]
    if declared is not None:
        return int(declared)
    if recurrent is None or len(recurrent) != 3:
        return fresh_dim("hidden")
    return recurrent[2]


def expect(inference: Inference, index: int, name: str, wanted: Shape) -> None:
    """Raise GraphError if an input's shape contradicts the shape that follows from the other inputs."""
    shape = inference.shape(index) if inference.has(index) else None
    if shape is None:
        return
    differ = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, wanted))
    if len(shape) != len(wanted) or differ:
        raise fail(f"{name} must be [{_listed(wanted)}], is [{_listed(shape)}]")


def _listed(shape: Shape) -> str:
    return ", ".join(map(str, shape))


# One step of one direction: computes the new states from the projected input [B, G*H] and the states [B, H].
Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]


def run_sequences(
    x: Array,
    w: Array | None,
    input_bias: Array,
    sequence_lens: Array | None,
    initial: Sequence[Array | None],
    steps: Sequence[Step],
    hidden: int,
    *,
    direction: str,
    layout: int,
) -> tuple[Array, ...]:
    """Run every direction over the sequences.

    Args:
        x: [T, B, I], or [B, T, I] for ``layout`` 1.
        w: [D, G*H, I]; all steps are projected by one matrix product. None if ``x`` is projected, [T, B, D*G*H].
        input_bias: [D, G*H].
        sequence_lens: [B] or None; later steps have outputs of 0 and leave the states unchanged.
        initial: [D, B, H] ([B, D, H] for ``layout`` 1) for each state; zeros when None.
        steps: the arithmetic of one step, for each direction.
        hidden: H.
        direction: ``forward``, ``reverse`` or ``bidirectional``.
        layout: 0 for steps first, 1 for batch first, in ``x``, ``initial`` and the results.

    Returns:
        Y [T, D, B, H] and each final state [D, B, H], or in the order of ``layout`` 1.
    """
    if layout == 1:
        x = x.swapaxes(0, 1)
        initial = [None if s is None else s.swapaxes(0, 1) for s in initial]
    length, batch, _ = x.shape
    if (
        sequence_lens is not None
        and sequence_lens.size
        and not 0 <= sequence_lens.min() <= sequence_lens.max() <= length
    ):
        raise fail(f"sequence_lens must be from 0 to {length}, are {sequence_lens.tolist()}")
    whole = np.zeros((length, len(steps), batch, hidden), x.dtype)
    finals = [np.zeros((len(steps), batch, hidden), x.dtype) for _ in initial]
    for d, step in enumerate(steps):
        width = input_bias.shape[1]
        projected = (x[..., d * width : (d + 1) * width] if w is None else x @ w[d].T) + input_bias[d]
        state = tuple(np.zeros((batch, hidden), x.dtype) if s is None else s[d] for s in initial)
        backwards = direction == "reverse" or d == 1
        for t in reversed(range(length)) if backwards else range(length):
            new = step(projected[t], state)
            if sequence_lens is None:
                state, whole[t, d] = new, new[0]
            else:
                # Padding is at the end. In reverse direction its steps come first and leave the state unchanged.
                inside = (t < sequence_lens)[:, None]
                state = tuple(np.where(inside, n, s) for n, s in zip(new, state))
                whole[t, d] = np.where(inside, new[0], 0)
        for final, s in zip(finals, state):
            final[d] = s
    if layout == 1:
        return whole.transpose(2, 0, 1, 3), *(f.swapaxes(0, 1) for f in finals)
    return whole, *finals


def _split_bias(bias: Array | None, directions: int, width: int, dtype: Any) -> tuple[Array, Array]:
    """Return the halves of B, for the input and for the recurrent projection; zeros if B is left out."""
    if bias is None:
        bias = np.zeros((directions, 2 * width), dtype)
    return bias[:, :width], bias[:, width:]


# **** the operators ****


@op(
    "LSTM",
    "X: T, W: T, R: T, B: T?, sequence_lens: int32?, initial_h: T?, initial_c: T?, P: T? -> Y: T?, Y_h: T?, Y_c: T?",
    types={"T": FLOATS},
    attributes=attributes_of_layer(input_forget=0),
    infer=_infer(4, 2, LSTM_ACTIVATIONS, peepholes=7),
)
def lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    *,
    direction: str,
    layout: int,
    input_forget: int,
    **attributes: Any,
) -> tuple[Array, ...]:
    """Long short-term memory. Gates are stored in the order input, output, forget, cell (iofc).

    With the activation functions f, g and h: ``it = f(x Wi' + h Ri' + Pi c + b)``; ``ft`` in the same way,
    or ``1 - it`` with ``input_forget``; ``ct = g(x Wc' + h Rc' + b)``; ``C = ft c + it ct``;
    ``ot = f(x Wo' + h Ro' + Po C + b)``; ``H = ot h(C)``. Without peepholes P, their products are no part of the sums:
    a zero in their place would turn an infinite cell into NaN.
    """
    directions, _, hidden = r.shape
    input_bias, recurrent_bias = _split_bias(b, directions, 4 * hidden, x.dtype)
    steps = lstm_steps(lambda d, h: h @ r[d].T, p, input_forget, directions, attributes)
    return run_sequences(
        x, w, input_bias + recurrent_bias, sequence_lens, (initial_h, initial_c), steps, hidden, direction=direction,
        layout=layout,
    )  # fmt: skip


def lstm_steps(
    product: Callable[[int, Array], Array],
    p: Array | None,
    input_forget: int,
    directions: int,
    attributes: dict[str, Any],
) -> list[Step]:
    """Return the arithmetic of one step of an LSTM for each direction.

    Args:
        product: the product of a direction's recurrent weights and the state [B, H].
        p: the peepholes or None.
        input_forget: see :func:`lstm`.
        directions: their number.
        attributes: those of the activations.
    """
    functions = activations_of(attributes, LSTM_ACTIVATIONS, directions)

    def step_of(d: int) -> Step:
        gate, candidate, output = functions[3 * d : 3 * d + 3]
        p_input, p_output, p_forget = (None, None, None) if p is None else np.split(p[d], 3)

        def peep(total: Array, weights: Array | None, cell: Array) -> Array:
            return total if weights is None else total + weights * cell

        def step(projected: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            h, c = state
            i, o, f, g = np.split(projected + product(d, h), 4, axis=-1)
            i = gate(peep(i, p_input, c))
            f = 1 - i if input_forget else gate(peep(f, p_forget, c))
            c = f * c + i * candidate(g)
            return gate(peep(o, p_output, c)) * output(c), c

        return step

    return [step_of(d) for d in range(directions)]


@op(
    "GRU",
    "X: T, W: T, R: T, B: T?, sequence_lens: int32?, initial_h: T? -> Y: T?, Y_h: T?",
    types={"T": FLOATS},
    attributes=attributes_of_layer(linear_before_reset=0),
    infer=_infer(3, 1, ("Sigmoid", "Tanh")),
)
def gru(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    *,
    direction: str,
    layout: int,
    linear_before_reset: int,
    **attributes: Any,
) -> tuple[Array, ...]:
    """Gated recurrent unit. Gates are stored in the order update, reset, hidden (zrh).

    ``H = (1 - z) n + z h`` with ``n = g(x Wh' + (r h) Rh' + b)`` or, with ``linear_before_reset``,
    ``n = g(x Wh' + r (h Rh' + Rb) + Wb)``.
    """
    directions, _, hidden = r.shape
    functions = activations_of(attributes, ("Sigmoid", "Tanh"), directions)
    input_bias, recurrent_bias = _split_bias(b, directions, 3 * hidden, x.dtype)

    def step_of(d: int) -> Step:
        gate, candidate = functions[2 * d : 2 * d + 2]
        r_gates, r_hidden = r[d, : 2 * hidden].T, r[d, 2 * hidden :].T
        b_gates, b_hidden = recurrent_bias[d, : 2 * hidden], recurrent_bias[d, 2 * hidden :]

        def step(projected: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            (h,) = state
            update, reset = np.split(gate(projected[:, : 2 * hidden] + h @ r_gates + b_gates), 2, axis=-1)
            if linear_before_reset:
                recurrent = reset * (h @ r_hidden + b_hidden)
            else:
                recurrent = (reset * h) @ r_hidden + b_hidden
            new = candidate(projected[:, 2 * hidden :] + recurrent)
            return ((1 - update) * new + update * h,)

        return step

    return run_sequences(
        x, w, input_bias, sequence_lens, (initial_h,),
        [step_of(d) for d in range(directions)], hidden, direction=direction, layout=layout,
    )  # fmt: skip


@op(
    "RNN",
    "X: T, W: T, R: T, B: T?, sequence_lens: int32?, initial_h: T? -> Y: T?, Y_h: T?",
    types={"T": FLOATS},
    attributes=attributes_of_layer(),
    infer=_infer(1, 1, ("Tanh",)),
)
def rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    *,
    direction: str,
    layout: int,
    **attributes: Any,
) -> tuple[Array, ...]:
    """A plain recurrent layer: ``H = f(x W' + h R' + Wb + Rb)``."""
    directions, _, hidden = r.shape
    functions = activations_of(attributes, ("Tanh",), directions)
    input_bias, recurrent_bias = _split_bias(b, directions, hidden, x.dtype)

    def step_of(d: int) -> Step:
        def step(projected: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            return (functions[d](projected + state[0] @ r[d].T),)

        return step

    return run_sequences(
        x, w, input_bias + recurrent_bias, sequence_lens, (initial_h,),
        [step_of(d) for d in range(directions)], hidden, direction=direction, layout=layout,
    )  # fmt: skip
