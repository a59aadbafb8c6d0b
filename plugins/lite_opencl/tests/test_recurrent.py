"""LSTM, GRU and RNN: the kernels of GPUs, and options that libraries implement differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import agree, normal

from lite_core.errors import ExecutionError

pytestmark = pytest.mark.full("opencl")

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def check(
    kind: str,
    op: str,
    *,
    steps: int = 4,
    hidden: int = 9,
    lengths: tuple[int, ...] | None = None,
    **attributes: Any,
) -> None:
    """Compare all outputs of a layer with the reference; weights are small, so that gates are not saturated."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    batch_first = attributes.get("layout", 0) == 1
    rows, batch, size = GATES[op] * hidden, 3, 7
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    shapes = [(batch, steps, size) if batch_first else (steps, batch, size)]
    shapes += [(directions, rows, size), (directions, rows, hidden), (directions, 2 * rows)]
    arrays = [normal(*shape, seed=i) * np.float32(0.3) for i, shape in enumerate(shapes)]
    arrays.append(np.array(lengths or [steps] * batch, np.int32))
    arrays += [normal(*state, seed=9 + i) for i in range(2 if op == "LSTM" else 1)]
    if op == "LSTM":
        arrays.append(normal(directions, 3 * hidden, seed=11))
    attributes = {"hidden_size": hidden, **attributes}
    agree(kind, op, arrays, attributes, outputs=3 if op == "LSTM" else 2, tolerance=1e-5)


@pytest.mark.parametrize(("op", "hidden"), [("LSTM", 1), ("LSTM", 9), ("LSTM", 40), ("GRU", 9), ("RNN", 9)])
def test_hidden_sizes_on_gpus(op: str, hidden: int) -> None:
    check("GPU", op, hidden=hidden, direction="bidirectional")


@pytest.mark.parametrize("op", GATES)
def test_vectors_of_units_on_processors(op: str) -> None:
    check("CPU", op, hidden=40, direction="bidirectional")


@pytest.mark.parametrize("op", GATES)
def test_sequence_of_length_zero(op: str) -> None:
    check("CPU", op, layout=1, direction="bidirectional", lengths=(4, 0, 2))


@pytest.mark.parametrize("options", [{"direction": "reverse", "clip": 0.5}, {"steps": 0}], ids="-".join)
def test_options(options: dict[str, Any]) -> None:
    check("CPU", "LSTM", **options)


def test_reset_after_the_product_on_gpus() -> None:
    check("GPU", "GRU", linear_before_reset=1, direction="bidirectional")


def test_lengths_out_of_range_are_errors() -> None:
    with pytest.raises(ExecutionError, match="'gru' .*length 5 is out of range, it must be from 0 to 4"):
        check("GPU", "GRU", lengths=(4, 5, 2))
