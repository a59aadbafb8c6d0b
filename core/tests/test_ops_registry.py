"""Signatures of operators: malformed ones are refused when the operator is defined."""

from __future__ import annotations

import re

import pytest

from lite_core.ops import define
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import same_as_first


@pytest.mark.parametrize(
    ("signature", "problem"),
    [
        ("X: T, limit: -> Y T", "'limit' has no type; write NAME: TYPE"),
        ("X: T, limit -> Y: T", "'limit' has no type; write NAME: TYPE"),
        ("X: T -> Y T", "'Y T' has no type; write NAME: TYPE"),
        ("X: T, ?: T -> Y: T", "'?: T' is no name and type; write NAME: TYPE"),
        ("X: T*? -> Y: T", "'X: T*?' is no name and type; write NAME: TYPE"),
        ("X: T -> ", "has no output; write -> NAME: TYPE at its end"),
        ("X: T", "has no output; write -> NAME: TYPE at its end"),
    ],
)
def test_a_malformed_signature_is_refused(signature: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^signature {re.escape(repr(signature))}:? {re.escape(problem)}$"):
        define(lambda x: x, "Op", signature, types={"T": FLOATS}, infer=same_as_first, domain="test")


def test_a_signature_is_shown_as_it_was_written() -> None:
    signature = "X: T, M: bool?, rest: T** -> Y: T, Z: int64?"
    definition = define(lambda x: x, "Op", signature, types={"T": FLOATS}, infer=same_as_first, domain="test")
    assert definition.signature == signature
