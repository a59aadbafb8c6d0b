"""Faults of arithmetic: one element type, too narrow a type, saturation, NaN, infinities and zeros."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lite_conformance.mutate.behaviour.fault import Fault, is_data, spoiled
from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core.ir import DType
from lite_core.ops import OpDef
from lite_core.ops.dtypes import ALL

__all__ = ["SATURATE", "SIGNED_ZERO", "UNSIGNED", "number_faults"]

#: The kind of fault that only operators that move elements must not have.
SIGNED_ZERO = "signed zero lost"
#: Kinds of faults that operators that move elements cannot have.
SATURATE, UNSIGNED = "integers saturate", "unsigned as signed"

_NARROWER_FLOATS = (
    (DType.FLOAT64, DType.FLOAT32),
    (DType.FLOAT32, DType.FLOAT16),
    (DType.FLOAT32, DType.BFLOAT16),
    (DType.FLOAT16, DType.BFLOAT16),
)
_INTEGERS_THROUGH = (
    (DType.INT64, np.int32),
    (DType.INT64, np.float64),
    (DType.UINT64, np.uint32),
    (DType.UINT64, np.float64),
    (DType.INT32, np.int16),
    (DType.INT32, np.float32),
    (DType.UINT32, np.float32),
    (DType.INT16, np.int8),
)
_SIGNED = {
    DType.UINT8: DType.INT8,
    DType.UINT16: DType.INT16,
    DType.UINT32: DType.INT32,
    DType.UINT64: DType.INT64,
}


def number_faults(definition: OpDef) -> Iterator[Fault]:
    """Yield the faults of an operator's arithmetic in each of its element types."""
    working = definition.working_type
    types = [d for d in definition.types.get(working, ()) if d in ALL]
    for dtype in types:
        yield Fault("element type", str(dtype), _spoiled_in(definition, dtype))
    for dtype, narrower in _NARROWER_FLOATS:
        if dtype in types:
            yield Fault("narrower arithmetic", f"{dtype} in {narrower}", _rounded(definition, dtype, narrower.numpy))
    for dtype, through in _INTEGERS_THROUGH:
        if dtype in types:
            detail = f"{dtype} through {np.dtype(through).name}"
            yield Fault("integers converted", detail, _rounded(definition, dtype, np.dtype(through)))
    for unsigned, signed in _SIGNED.items():
        if unsigned in types and signed in types:
            yield Fault(UNSIGNED, str(unsigned), _taken_as(unsigned, signed))
    if any(d.is_integer for d in types) and definition.outputs[0].type == working:
        yield Fault(SATURATE, "", _saturating(definition))
    if any(d.is_floating for d in types):
        yield Fault("NaN in an input lost", "", _operands(definition, _without_nan))
        yield Fault("infinity in an input lost", "", _operands(definition, _finite))
    if any(d.is_floating for d in map(DType.of, definition.types.get(definition.outputs[0].type, ()))):
        yield Fault("NaN in a result lost", "", _results(_without_nan))
        yield Fault("infinity in a result lost", "", _results(_finite))
        yield Fault(SIGNED_ZERO, "", _results(lambda a: a + a.dtype.type(0)))


def _operands(definition: OpDef, change: Callable[[Array], Array], dtype: DType | None = None) -> Compute:
    """Return the computation with the operands of the working type changed, those of one element type if given."""

    def compute(call: NodeCall) -> list[Array]:
        return call.run(inputs=_changed(definition, call, change, dtype))

    return compute


def _changed(
    definition: OpDef, call: NodeCall, change: Callable[[Array], Array], dtype: DType | None
) -> list[Array | None]:
    inputs: list[Array | None] = []
    for index, array in enumerate(call.inputs):
        parameter = definition.parameter(index)
        if array is not None and parameter is not None and is_data(definition, parameter):
            array = change(array) if dtype is None or array.dtype == dtype.numpy else array
        inputs.append(array)
    return inputs


def _works_in(definition: OpDef, call: NodeCall, dtype: DType) -> bool:
    return definition.working_dtype(call.node) == dtype


def _spoiled_in(definition: OpDef, dtype: DType) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        results = call.run()
        return list(map(spoiled, results)) if _works_in(definition, call, dtype) else results

    return compute


def _rounded(definition: OpDef, dtype: DType, narrower: np.dtype[Any]) -> Compute:
    """Return the computation in which operands and results pass through a narrower type."""

    def through(array: Array) -> Array:
        if array.dtype != dtype.numpy:
            return array
        with np.errstate(all="ignore"):
            return array.astype(narrower).astype(array.dtype)

    def compute(call: NodeCall) -> list[Array]:
        if not _works_in(definition, call, dtype):
            return call.run()
        return list(map(through, call.run(inputs=_changed(definition, call, through, dtype))))

    return compute


def _taken_as(unsigned: DType, signed: DType) -> Compute:
    """Return the computation that takes the bits of unsigned numbers for signed ones."""

    def signed_bits(array: Array | None) -> Array | None:
        return array.view(signed.numpy) if array is not None and array.dtype == unsigned.numpy else array

    def compute(call: NodeCall) -> list[Array]:
        right, wrong = call.run(), call.run([signed_bits(a) for a in call.inputs])
        return [w.view(r.dtype) if w.dtype == signed.numpy and r.dtype == unsigned.numpy else w
                for r, w in zip(right, wrong)]  # fmt: skip

    return compute


def _saturating(definition: OpDef) -> Compute:
    """Return the computation in a wider type whose results are kept within the range of the element type."""
    supported = set(definition.types.get(definition.working_type, ()))

    def compute(call: NodeCall) -> list[Array]:
        right = call.run()
        dtype = right[0].dtype
        if dtype.kind not in "iu":
            return right
        wider = _wider(DType.of(dtype), supported)
        if wider is None:
            return right
        wide = call.run([a.astype(wider) if a is not None and a.dtype == dtype else a for a in call.inputs])[0]
        info = np.iinfo(dtype)
        limits = np.where(wide < info.min, info.min, info.max).astype(dtype)
        return [np.where((wide < info.min) | (wide > info.max), limits, right[0]), *right[1:]]

    return compute


def _wider(dtype: DType, supported: set[DType]) -> np.dtype[Any] | None:
    """Return a type that the operator supports and that holds the results of an integer type, if there is one."""
    if dtype.itemsize == 8:
        candidates: tuple[DType, ...] = (DType.FLOAT64,)
    else:
        candidates = (DType.INT64, DType.FLOAT64) if dtype.is_signed else (DType.UINT64, DType.INT64, DType.FLOAT64)
    return next((d.numpy for d in candidates if d in supported), None)


def _results(change: Callable[[Array], Array]) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        return [change(a).astype(a.dtype) if _is_floating(a) else a for a in call.run()]

    return compute


def _is_floating(array: Array) -> bool:
    return array.dtype.kind in "fV" and DType.of(array.dtype).is_floating


def _without_nan(array: Array) -> Array:
    return np.where(np.isnan(array), array.dtype.type(0), array) if _is_floating(array) else array


def _finite(array: Array) -> Array:
    if not _is_floating(array):
        return array
    return np.where(np.isinf(array), np.copysign(array.dtype.type(1), array) * array.dtype.type(1000), array)
