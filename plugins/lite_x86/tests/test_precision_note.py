"""Notes about a precision that only some weights are stored in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lite_core.builder import GraphBuilder
from lite_core.session import load
from lite_cpu.machine import X86_64_V3
from lite_cpu.precisions import precision_details


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_session(precision: str) -> None:
    b = GraphBuilder("exp")
    b.output(b.add("Exp", [b.input("x", "float32", [4])]), "y")
    (note,) = load(b.build(), "x86", precision=precision).notes
    assert all(text in note for text in (f"precision {precision}", "x86 computes 1 of 1 nodes in float32", "weights"))
    assert load(b.build(), "x86").notes == ()


def test_processor_without_float16() -> None:
    assert "float16" in precision_details(X86_64_V3)["float16"].partition(";")[2]
    assert "no instruction" in precision_details(replace(X86_64_V3, half=False))["float16"]
