"""Every operator of Paddle is lowered, or listed with a reason; ``fixtures/operator_names.txt`` has their names.

The file has no gradients, and names of PIR without the ``_`` of operators that work in place.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hand_made import graph_of

from lite_core.errors import UnsupportedOperatorError
from lite_paddle.lowering.left_out import groups
from lite_paddle.lowering.operators import supported_ops
from lite_paddle.reader.pir_names import find_name

NAMES = Path(__file__).parent / "fixtures" / "operator_names.txt"
#: Operators that the readers translate themselves.
READ = {"conditional_block", "conditional_block_infer", "data", "feed", "fetch"}


def test_every_operator_is_lowered_or_listed() -> None:
    lines = NAMES.read_text(encoding="utf-8").splitlines()
    every = {name for line in lines if not line.startswith("==") for name in line.split()}
    supported = set(supported_ops())
    lowered = {n for n in every if n in supported or ((entry := find_name(n)) and entry.legacy in supported)} | READ
    listed = [name for group in groups() for name in group.names]
    assert len(listed) == len(set(listed)), "an operator is listed twice"
    assert sorted(set(listed) & lowered) == [], "lowered, and listed as left out"
    assert sorted(every - lowered - set(listed)) == [], "neither lowered nor listed"
    assert sorted(set(listed) - every) == [], "Paddle has no operator of this name"


def test_the_reason_is_in_the_error() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"lite-paddle has no lowering for it: it decomposes a matrix"):
        graph_of("svd", {"X": np.eye(3, dtype=np.float32)})


def test_an_operator_that_paddle_does_not_have() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"lite-paddle has no lowering for it"):
        graph_of("made_up", {"X": np.eye(3, dtype=np.float32)})
