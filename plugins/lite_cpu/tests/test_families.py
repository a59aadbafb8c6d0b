"""The table of operator families says where each operator is registered; a model imports only its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lite_cpu import scalar_ops
from lite_cpu.lowering import registry
from lite_cpu.lowering.families import FAMILIES, import_all_families


@pytest.mark.parametrize("family", FAMILIES)
def test_the_table_lists_what_a_module_registers(family: str) -> None:
    import_all_families()
    module = f"lite_cpu.lowering.{family}"
    registered = {op for op, (function, _, _) in registry._TABLE.items() if function.__module__ == module}
    if family == "quantization":
        registered |= registry._REWRITTEN.keys()
    assert sorted(registered) == FAMILIES[family].split()


def test_all_other_operators_are_elementwise() -> None:
    listed = {op for ops in FAMILIES.values() for op in ops.split()}
    assert registry.native_operators() - listed == set(scalar_ops.OPERATORS)


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
    assert not imported & (FAMILIES.keys() - {"shape"}), imported
