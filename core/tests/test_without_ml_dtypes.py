"""Without the extra ``lite-core[narrow]``, everything works except models with the element types that it adds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lite_core.ir import DType
from lite_core.ops import narrow_types

BLOCKED = """
import sys
sys.modules["ml_dtypes"] = None  # as if it were not installed

import numpy as np
import lite_core as lite
from lite_core import ops
from lite_core.ir import DType

def model(dtype):
    b = lite.GraphBuilder("g")
    x = b.input("x", dtype, ["n", 2])
    b.output(b.add("Cast", [b.add("Add", [x, x])], {"to": DType.FLOAT32}), "y")
    return b.build()
"""


def output_of(code: str) -> str:
    shown = subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def test_opset_loads_and_a_float32_model_runs() -> None:
    code = """
assert ops.find("QuantizeLinear") and {str(d) for d in DType} >= {"bfloat16", "int4"}
print(lite.load(model("float32"), backend="host").run(x=np.ones((1, 2), np.float32))["y"])
"""
    assert output_of(code) == "[[2. 2.]]"


EXTENDED = [d for d in DType if d is DType.BFLOAT16 or d.is_narrow]


def test_bfloat16_model_names_what_to_install() -> None:
    code = """
try:
    lite.load(model("bfloat16"), backend="host").run(x=np.ones((1, 2), np.float32))
except lite.LiteError as error:
    print(error)
"""
    output = output_of(code)
    assert "bfloat16" in output
    assert 'pip install "lite-core[narrow]"' in output


def test_every_type_of_the_extra_names_what_to_install() -> None:
    code = f"""
for name in {[str(d) for d in EXTENDED]}:
    try:
        DType(name).numpy
    except lite.LiteError as error:
        print(name in str(error) and "lite-core[narrow]" in str(error))
"""
    assert output_of(code).split() == ["True"] * len(EXTENDED)


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_narrow and d.is_floating])
def test_the_largest_numbers_are_those_of_ml_dtypes(dtype: DType) -> None:
    import ml_dtypes

    assert float(ml_dtypes.finfo(dtype.numpy).max) == narrow_types._LARGEST[dtype]
