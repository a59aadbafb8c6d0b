"""The element types of the protocol."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lite_core.ir import DType
from lite_serve.protocol.element_types import DATATYPES, datatype_of, dtype_of
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError


def test_every_type_has_a_name_and_a_type_of_numpy() -> None:
    assert {name: datatype_of(dtype_of(name)) for name in DATATYPES} == {name: name for name in DATATYPES}
    assert {name: datatype_of(dtype) for name, dtype in DATATYPES.items()} == {name: name for name in DATATYPES}


@pytest.mark.parametrize(
    ("datatype", "dtype"),
    [("BOOL", np.bool_), ("UINT64", np.uint64), ("FP16", np.float16), ("BF16", ml_dtypes.bfloat16), ("BYTES", object)],
)
def test_names(datatype: str, dtype: type) -> None:
    assert dtype_of(datatype) == np.dtype(dtype)


def test_types_that_the_protocol_has_not_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no element type for float8e4m3fn; it has BOOL, UINT8"):
        datatype_of(DType.FLOAT8E4M3FN)
    with pytest.raises(UnsupportedError, match="int4"):
        datatype_of(np.dtype(ml_dtypes.int4))
    with pytest.raises(InvalidRequestError, match="'FP8' is not one of BOOL, UINT8"):
        dtype_of("FP8")
