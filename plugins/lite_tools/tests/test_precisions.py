"""The option ``--precision``: for all nodes, and for some."""

from __future__ import annotations

from typing import Any

import pytest

from lite_core.errors import InputError
from lite_core.schedule.precision import Precision
from lite_tools.precisions import parse_precisions, precision_words, precisions_in


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], None),
        (["float16"], "float16"),
        (["softmax_*=float32"], {"softmax_*": "float32"}),
        (["float16", "a=b=float32", "c=bfloat16"], {"*": "float16", "a=b": "float32", "c": "bfloat16"}),
    ],
)
def test_texts_and_words(texts: list[str], found: Any) -> None:
    assert parse_precisions(texts) == found
    words = precision_words(Precision.of(found or "float32"))
    assert words == [word for text in texts for word in ("--precision", text)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["half"], "float32, float16, bfloat16.*'half'"),
        (["softmax="], "NAME=PRECISION.*'softmax='"),
        (["float16", "float32"], "two precisions: float16 and float32"),
        (["a=float16", "a=float32"], "'a' has two precisions"),
    ],
)
def test_wrong_texts(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_precisions(texts)


def test_precisions_that_occur() -> None:
    assert precisions_in(Precision.of({"a": "float16"})) == {"float16", "float32"}
