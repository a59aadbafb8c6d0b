"""The recorded figures about ARM, and the files that they are in."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import catalog
import pytest

from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from emulated import kernel_file
from emulated.instruction_file import Cell, geometric_mean, read, update

CELL = Cell("cortex-a53", "a", "A", 60, 100, "2026-01-02", "abc", "1.0")


def test_lite_needs_fewer_instructions_than_the_other_engine() -> None:
    cells = [cell for cell in read() if cell.processor == "cortex-a53"]
    assert len(cells) == len(catalog.VISION) + 3
    assert [cell.title for cell in cells if cell.ratio >= 1] == []
    assert geometric_mean(cells) <= 0.75


def test_a_new_count_replaces_the_old_one_and_models_keep_their_order(tmp_path: Path) -> None:
    file, order = tmp_path / "new" / "counts.json", ["b", "a"]
    update([CELL, replace(CELL, processor="max")], order, file)
    update([replace(CELL, lite=50), replace(CELL, model="b", lite=200)], order, file)
    found = read(file)
    assert [(cell.processor, cell.model, cell.lite) for cell in found] == [
        ("cortex-a53", "b", 200),
        ("cortex-a53", "a", 50),
        ("max", "a", 60),
    ]
    assert geometric_mean(found[:2]) == pytest.approx(1.0)
    assert read(tmp_path / "missing.json") == []


def test_products_reach_the_peak_of_a_processor_that_works_out_of_order() -> None:
    products = {"gemm", "direct", "winograd, product", "gemmint8", "convint8"}
    rows = [row for row in kernel_file.read() if row.part in products]
    assert {row.part for row in rows} == products
    assert [row for row in rows if row.shares.get("neoverse-n1", 1.0) < 0.9] == []
