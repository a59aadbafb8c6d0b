"""Notes about a precision that was asked for, and the types that the partitions of a session compute in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.session import load
from lite_cpu.machine import X86_64_V3, X86_64_V4
from lite_cpu.precisions import precision_details
from lite_x86.backend import X86Backend


def exponential() -> Graph:
    b = GraphBuilder("exp")
    b.output(b.add("Exp", [b.input("x", "float32", [4])]), "y")
    return b.build()


def product(rows: int) -> Graph:
    b = GraphBuilder("product")
    weights = np.random.default_rng(0).standard_normal((512, 600)).astype(np.float32)
    b.output(b.add("MatMul", [b.input("x", "float32", [rows, 512]), b.constant(weights)]), "y")
    return b.build()


def test_a_device_that_computes_in_float32_is_noted() -> None:
    (note,) = load(exponential(), "x86", precision="float16").notes
    assert all(text in note for text in ("precision float16", "x86 computes 1 of 1 nodes in float32", "weights"))
    assert load(exponential(), "x86").notes == ()


def test_processors_without_the_instructions() -> None:
    assert "float16" in precision_details(X86_64_V3)["float16"].partition(";")[2]
    assert "no instruction" in precision_details(replace(X86_64_V3, half=False))["float16"]
    assert precision_details(X86_64_V3)["bfloat16"].startswith("float32")
    assert precision_details(replace(X86_64_V4, half_products=True))["float16"].startswith("float16 products")
    assert precision_details(replace(X86_64_V4, bf16_dot=True))["bfloat16"].startswith(
        "bfloat16 products by AVX512-BF16"
    )


def test_a_session_says_what_its_partitions_compute_in(tmp_path: Path) -> None:
    session = load(product(1), "x86", precision="bfloat16")
    assert session.computes == (), "nothing is planned yet"
    session.prepare()
    (line,) = session.computes
    assert line.startswith("x86/0: 1 node(s) in float32; ")
    assert "bfloat16" in line
    assert line in session.describe()
    file = tmp_path / "product.lite"
    lite.convert(product(1), file, ["x86"], precision="bfloat16")
    restored = lite.load(file)
    restored.prepare()
    assert restored.computes == session.computes


@pytest.mark.skipif(not X86Backend().machine().bf16_dot, reason="the processor does not multiply bfloat16")
def test_products_in_bfloat16_are_counted() -> None:
    session = load(product(33), "x86", precision="bfloat16")
    session.prepare()
    assert "the product in bfloat16 by " in session.computes[0]
    assert session.notes == ()
