"""The table of operator families: it matches the registrations, and a model imports only the families it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lite_cpu import scalar_ops
from lite_cpu.lowering.registry import OPERATORS


@pytest.mark.parametrize("family", OPERATORS.families)
def test_a_family_registers_what_the_table_lists(family: str) -> None:
    """The registry compares them when the module is imported, and raises an error if they differ."""
    OPERATORS.import_family(family)


def test_all_other_operators_are_element_wise() -> None:
    listed = {op for operators in OPERATORS.families.values() for op in operators}
    assert OPERATORS.registered_operators() - listed == set(scalar_ops.OPERATORS)


def test_a_model_imports_its_own_families_only() -> None:
    program = """
import sys
import numpy as np
import lite_core as lite
builder = lite.GraphBuilder("relu")
builder.output(builder.add("Relu", [builder.input("x", "float32", [4])]), "y")
session = lite.load(builder.build(), backend="x86", fallback="never")
assert session.run(x=np.float32([-1, 2, -3, 4]))["y"].tolist() == [0, 2, 0, 4]
print(*sorted(name for name in sys.modules if name.startswith("lite_cpu.lowering.")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert "elementwise" in imported
    assert not imported & (OPERATORS.families.keys() - {"shape"}), imported


def test_listing_the_operators_imports_no_family() -> None:
    program = """
import sys
from lite_cpu.lowering.registry import OPERATORS
assert {"Conv", "Relu", "QLinearConv"} <= OPERATORS.registered_operators()
print(*(family for family in OPERATORS.families if f"lite_cpu.lowering.{family}" in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
