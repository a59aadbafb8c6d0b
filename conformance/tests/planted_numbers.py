"""Bugs of arithmetic: accumulators, element types, and sizes for which a kernel is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from planted_parts import Array, PlantedExecutable

from lite_core.backend import Buffer
from lite_core.ir import DType, Node

_BFLOAT16 = DType.BFLOAT16.numpy


def _terms(node: Node, operands: Sequence[Array | None]) -> tuple[Array, type[Any]] | None:
    """Return the terms of the sums that a node computes, along the first axis, and the element type; or None."""
    if not operands or operands[0] is None or DType.of(operands[0].dtype).is_floating is False:
        return None
    a, b = operands[0], operands[1] if len(operands) > 1 else None
    wide = a.astype(np.float64)
    if node.op == "MatMul" and a.ndim == 2 and b is not None and b.ndim == 2:
        return np.einsum("ik,kj->kij", wide, b.astype(np.float64)), a.dtype.type
    if node.op == "Conv" and b is not None and b.shape[2:] == (1, 1):
        return np.einsum("nchw,oc->cnohw", wide, b[:, :, 0, 0].astype(np.float64)), a.dtype.type
    if node.op == "ReduceSum" and b is not None and b.size == 1 and not node.attributes.get("keepdims", 1):
        return np.moveaxis(wide, int(b[0]), 0), a.dtype.type
    return None


class _Accumulates(PlantedExecutable):
    """Computes sums in MatMul, Conv and ReduceSum with an accumulator of its own."""

    def total(self, terms: Array) -> Array:
        raise NotImplementedError

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        found = _terms(node, operands)
        if found is None:
            return super().node(node, operands)
        with np.errstate(all="ignore"):
            return [np.asarray(self.total(found[0])).astype(found[1])]


def _sequential(terms: Array, dtype: Any) -> Array:
    total = np.zeros(terms.shape[1:], dtype)
    for term in terms:
        total = (total + term.astype(dtype)).astype(dtype)
    return total


class Float16Accumulator(_Accumulates):
    def total(self, terms: Array) -> Array:
        return _sequential(terms, np.float16)


class Bfloat16Accumulator(_Accumulates):
    def total(self, terms: Array) -> Array:
        return _sequential(terms, _BFLOAT16)


class Float16Lanes(_Accumulates):
    """Adds in sixteen lanes of float16, and the lanes in float32."""

    def total(self, terms: Array) -> Array:
        return sum((_sequential(terms[lane::16], np.float16).astype(np.float32) for lane in range(16)), np.float32(0))


class Float16Blocks(_Accumulates):
    """Adds blocks of 64 terms in float32, and the blocks in float16."""

    def total(self, terms: Array) -> Array:
        blocks = [terms[i : i + 64].sum(axis=0) for i in range(0, len(terms), 64)]
        return _sequential(np.array(blocks), np.float16)


class Float16Tail(_Accumulates):
    """Adds the terms after the last full vector in float16."""

    def total(self, terms: Array) -> Array:
        whole = len(terms) - len(terms) % 16
        tail = _sequential(terms[whole:], np.float16).astype(np.float64)
        return terms[:whole].sum(axis=0) + tail  # type: ignore[no-any-return]


class Float16WhenLong(_Accumulates):
    """Has another kernel for sums of more than 1000 terms, which adds in float16."""

    def total(self, terms: Array) -> Array:
        return _sequential(terms, np.float16 if len(terms) > 1000 else np.float64)


class Float16Products(_Accumulates):
    """Rounds products to float16, and adds in float32."""

    def total(self, terms: Array) -> Array:
        return terms.astype(np.float16).astype(np.float32).sum(axis=0)  # type: ignore[no-any-return]


class Float32Accumulator(_Accumulates):
    """Adds in float32, also for float64."""

    def total(self, terms: Array) -> Array:
        return terms.astype(np.float32).sum(axis=0)  # type: ignore[no-any-return]


class LosesLastTerm(_Accumulates):
    """Loses the last term of sums of more than 1000."""

    def total(self, terms: Array) -> Array:
        return terms[:-1].sum(axis=0) if len(terms) > 1000 else terms.sum(axis=0)  # type: ignore[no-any-return]


# **** element types ****


class _Through(PlantedExecutable):
    """Computes in another element type."""

    own: Any
    other: Any

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        if not any(a is not None and a.dtype == self.own for a in operands):
            return super().node(node, operands)
        with np.errstate(all="ignore"):
            operands = [a.astype(self.other).astype(self.own) if a is not None and a.dtype == self.own else a
                        for a in operands]  # fmt: skip
            results = super().node(node, operands)
            return [a.astype(self.other).astype(self.own) if a.dtype == self.own else a for a in results]


class Int64ThroughFloat64(_Through):
    own, other = np.int64, np.float64


class Int64ThroughFloat32(_Through):
    own, other = np.int64, np.float32


class Int64ThroughInt32(_Through):
    own, other = np.int64, np.int32


class Float64ThroughFloat32(_Through):
    own, other = np.float64, np.float32


class Float32ThroughBfloat16(_Through):
    own, other = np.float32, _BFLOAT16


class Bfloat16ThroughFloat16(_Through):
    own, other = _BFLOAT16, np.float16


class _Reinterprets(PlantedExecutable):
    """Computes with the bits of one element type taken for another."""

    own: Any
    other: Any

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        if not any(a is not None and a.dtype == self.own for a in operands):
            return super().node(node, operands)
        operands = [a.view(self.other) if a is not None and a.dtype == self.own else a for a in operands]
        with np.errstate(all="ignore"):
            return [a.view(self.own) if a.dtype == self.other else a for a in super().node(node, operands)]


class Uint8AsInt8(_Reinterprets):
    own, other = np.uint8, np.int8


class Uint32AsInt32(_Reinterprets):
    own, other = np.uint32, np.int32


class Uint64AsInt64(_Reinterprets):
    own, other = np.uint64, np.int64


class BoolOfAllBits(PlantedExecutable):
    """Stores true with all bits set, as vector comparisons leave it."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        for array, buffer in zip(results, outputs):
            if array.dtype == np.bool_ and buffer.data is not None:
                buffer.data.view(np.uint8)[...] = np.where(array, 255, 0)
            else:
                buffer.store(np.ascontiguousarray(array).reshape(array.shape))


class TruncatesBfloat16(PlantedExecutable):
    """Cuts the lower half of a float32 off instead of rounding it."""

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        if not any(a is not None and a.dtype == _BFLOAT16 for a in operands):
            return super().node(node, operands)
        wide = [a.astype(np.float32) if a is not None and a.dtype == _BFLOAT16 else a for a in operands]
        results = super().node(node, wide)
        return [
            (a.view(np.uint32) >> 16).astype(np.uint16).view(_BFLOAT16) if a.dtype == np.float32 else a
            for a in map(np.ascontiguousarray, results)
        ]


class _Saturates(PlantedExecutable):
    """Limits float16 results to the largest finite number instead of infinity."""

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        with np.errstate(all="ignore"):
            return [np.clip(a, -65504, 65504) if a.dtype == np.float16 else a for a in super().node(node, operands)]


class SaturatesFloat16(_Saturates):
    pass


class SaturatesIntegers(PlantedExecutable):
    """Limits sums and products of integers to the range of their type."""

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        results = super().node(node, operands)
        if node.op not in ("Add", "Mul") or results[0].dtype.kind not in "iu" or results[0].dtype.itemsize > 4:
            return results
        info = np.iinfo(results[0].dtype)
        wide = super().node(node, [None if a is None else a.astype(np.int64) for a in operands])
        return [np.clip(wide[0], info.min, info.max).astype(results[0].dtype)]


class LosesNan(PlantedExecutable):
    """Computes Max, Clip, Relu and ReduceMax by comparisons that are false for NaN."""

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        results = super().node(node, operands)
        if node.op not in ("Max", "Clip", "Relu", "ReduceMax") or not DType.of(results[0].dtype).is_floating:
            return results
        return [np.where(np.isnan(a), a.dtype.type(0), a) for a in results]


class GarbageSubnormals(PlantedExecutable):
    """Gives wrong numbers of normal size for float16 results below the normal range."""

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        with np.errstate(all="ignore"):
            return [
                np.where((a != 0) & (abs(a) < 2.0**-14), np.float16(1), a) if a.dtype == np.float16 else a
                for a in super().node(node, operands)
            ]


# **** sizes ****


class _WrongSizes(PlantedExecutable):
    """Changes the last element of outputs of some shapes."""

    def is_wrong(self, shape: tuple[int, ...]) -> bool:
        raise NotImplementedError

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        results = []
        for array in super().node(node, operands):
            if self.is_wrong(array.shape) and array.size:
                array = array.copy()
                array.reshape(-1)[-1:] = 1 - array.reshape(-1)[-1:]
            results.append(array)
        return results


class WrongScalars(_WrongSizes):
    def is_wrong(self, shape: tuple[int, ...]) -> bool:
        return shape == ()


class WrongForOneElement(_WrongSizes):
    def is_wrong(self, shape: tuple[int, ...]) -> bool:
        return bool(np.prod(shape) == 1 and shape)


class WrongForOddSizes(_WrongSizes):
    def is_wrong(self, shape: tuple[int, ...]) -> bool:
        return bool(np.prod(shape) % 2)


class WrongForHighRanks(_WrongSizes):
    def is_wrong(self, shape: tuple[int, ...]) -> bool:
        return len(shape) > 5


class WrongForLargeTensors(_WrongSizes):
    def is_wrong(self, shape: tuple[int, ...]) -> bool:
        return bool(np.prod(shape) > 2**16)


class FailsForEmptyTensors(PlantedExecutable):
    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        if any(a is not None and not a.size for a in operands):
            raise ZeroDivisionError("no elements")
        return super().node(node, operands)
