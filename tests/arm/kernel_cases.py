"""Products, convolutions and recurrent layers whose sizes are below, at and above the register tiles of ARM.

    python kernel_cases.py RESULTS.npz GROUP

runs a group of them on the backend ``arm`` of this processor, and writes their results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import lite_core as lite
from lite_core.ir import Graph
from lite_cpu.dot_panels import bfloat16_bits

Array = np.ndarray[Any, Any]

# Tiles have 6 rows and 12 columns; a vector holds 4 float32, or 16 bytes of the depth.
_PRODUCTS = [(1, 33, 25), (2, 3, 12), (5, 4, 11), (6, 9, 4), (7, 16, 13), (13, 34, 24), (50, 40, 30)]


#: The precisions of the groups that consist of :func:`pair_cases`.
PRECISIONS = {"pairs": "bfloat16", "halves": "float16"}


class Case(NamedTuple):
    """A graph with its inputs."""

    name: str
    graph: Graph
    inputs: list[Array]


def cases() -> Iterator[Case]:
    """Return all cases; their numbers are the same in every process."""
    for rows, depth, columns in _PRODUCTS:
        a, b = normal(rows, depth), normal(depth, columns)
        yield of("MatMul", [a, b], constants=1)
        yield of("MatMul", [a, b])
        x, w, zero = integers("uint8", rows, depth), integers("int8", depth, columns), np.array(117, "uint8")
        yield of("MatMulInteger", [x, w, zero], constants=2)
        # Weights minus this zero point do not fit 8 bits.
        yield of("MatMulInteger", [x, w, zero, np.array(3, "int8")], constants=3)
    yield of("MatMul", [normal(2, 3, 20, 8), normal(2, 1, 8, 40)])
    yield of("MatMul", [normal(9, 33), normal(33, 1)], constants=1)
    for channels, outputs, size, window, attributes in (
        (3, 16, (17, 19), 3, {"strides": (2, 2)}),
        (16, 20, (9, 7), 3, {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
        (8, 12, (5, 6), 1, {}),
        (32, 32, (14, 15), 3, {}),
        (12, 24, (6, 6), 5, {"group": 2}),
    ):
        pads = {"pads": (window // 2,) * 4}
        weights = (outputs, channels // attributes.get("group", 1), window, window)
        x, w, bias = normal(1, channels, *size), normal(*weights, seed=1), normal(outputs, seed=2)
        yield of("Conv", [x, w, bias], constants=2, **{**pads, **attributes})
        x, w = integers("uint8", 1, channels, *size), integers("int8", *weights)
        yield of("ConvInteger", [x, w, np.array(100, "uint8")], constants=2, **{**pads, **attributes})
    for channels, size, window, stride in ((3, 7, 3, 1), (8, 7, 3, 1), (10, 15, 3, 2), (8, 30, 3, 1), (12, 14, 5, 2)):
        x, w = normal(2, channels, size, size), normal(channels, 1, window, window, seed=1)
        geometry = {"pads": (window // 2,) * 4, "strides": (stride, stride), "group": channels}
        yield of("Conv", [x, w, normal(channels, seed=2)], constants=2, **geometry)
        bytes_ = [integers("uint8", *x.shape), integers("int8", *w.shape), np.array(100, "uint8")]
        yield of("ConvInteger", bytes_, constants=2, **geometry)
    for sequences in (1, 5):
        x, w, r = normal(3, sequences, 7), normal(1, 4 * 10, 7, seed=1), normal(1, 4 * 10, 10, seed=2)
        yield of("LSTM", [x, w, r], constants=2, hidden_size=10)
        yield of("GRU", [x, w[:, :30], r[:, :30]], constants=2, hidden_size=10)
        projected, scale = normal(3, sequences, 4 * 10), np.array([0.004], np.float32)
        for stored in ("int8", "uint8"):  # those without a zero point do not fit signed bytes
            yield of(
                "QuantizedLSTM", [projected, scale, integers(stored, 1, 4 * 10, 10)], constants=2, domain="lite"
            )  # fmt: skip


def narrow_cases() -> Iterator[Case]:
    """Return products whose weights are stored in 16 bits, if the session's precision allows it."""
    for rows in (1, 2):
        yield of("MatMul", [normal(rows, 515), normal(515, 600, seed=1)], constants=1)


def weight_cases() -> Iterator[Case]:
    """Return products with weights of 4 and 8 bits that kernels read directly, for one row and for several."""
    random = np.random.default_rng(6)
    for dtype, low, block in (("int4", -8, 32), ("uint4", 0, 128), ("int8", -128, 0), ("uint8", 0, 64)):
        count = 16 if dtype.endswith("4") else 256
        shape = (-(-330 // block), 210) if block else (210,)
        w, points = random.integers(low, low + count, (330, 210)), random.integers(low, low + count, shape)
        scales = random.uniform(0.01, 0.1, shape).astype(np.float32)
        for rows in (1, 9):
            b = lite.GraphBuilder("weights")
            x = b.input("x0", "float32", [rows, 330])
            constants = [b.constant(w, dtype=dtype), b.constant(scales), b.constant(points, dtype=dtype)]
            attributes = {"axis": 0 if block else 1, "block_size": block}
            b.output(b.add("MatMul", [x, b.add("DequantizeLinear", constants, attributes)]), "y")
            yield Case(f"{rows} rows, {dtype}, blocks of {block}", b.build(), [normal(rows, 330)])


def pair_cases() -> Iterator[Case]:
    """Return products of float32 that are bfloat16 without rounding, so that products of bfloat16 are exact.

    They are float16, too, but its sums are not exact.
    """
    for rows, depth, columns in (*_PRODUCTS, (3, 20, 5), (7, 6, 13), (12, 4, 1), (12, 48, 30)):
        a, b = exact(rows, depth), exact(depth, columns, seed=1)
        yield of("MatMul", [a, b], constants=1)
        yield of("MatMul", [a, b])
        yield of("Gemm", [a.T.copy(), b.T.copy(), exact(columns)], constants=2, transA=1, transB=1)
    yield of("MatMul", [exact(2, 3, 20, 8), exact(2, 1, 8, 40)], constants=1)
    for channels, outputs, size, window, attributes in (
        (3, 16, (17, 19), 3, {"strides": (2, 2)}),
        (1, 16, (9, 7), 3, {}),
        (16, 20, (9, 7), 3, {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
        (6, 20, (9, 7), 3, {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
        (8, 13, (5, 6), 1, {}),
        (12, 12, (9, 8), 1, {"strides": (2, 2)}),
        (32, 32, (14, 15), 3, {}),
        (12, 24, (6, 6), 5, {"group": 2}),
        (16, 26, (5, 7), 1, {"group": 2}),
    ):
        pads = {"pads": (window // 2,) * 4}
        weights = (outputs, channels // attributes.get("group", 1), window, window)
        x, w, bias = exact(2, channels, *size), exact(*weights, seed=1), exact(outputs, seed=2)
        yield of("Conv", [x, w, bias], constants=2, **{**pads, **attributes})


def row_cases() -> Iterator[Case]:
    """Return products of the first rows of a matrix, one more each time."""
    a, b = normal(7, 35), normal(35, 30, seed=1)
    for rows in range(1, 8):
        yield of("MatMul", [a[:rows], b], constants=1)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def exact(*shape: int, seed: int = 0) -> Array:
    """Return normal numbers, rounded to bfloat16, as float32."""
    bits: Array = bfloat16_bits(normal(*shape, seed=seed)).astype(np.uint32) << 16
    return bits.view(np.float32)


def integers(dtype: str, *shape: int) -> Array:
    """Return integers from the whole range of a type, a fifth of them the lowest one."""
    random, info = np.random.default_rng(3), np.iinfo(dtype)
    numbers = random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    return np.where(random.random(shape) < 0.2, np.asarray(info.min, dtype), numbers)


def of(op: str, arrays: Sequence[Array], *, constants: int = 0, domain: str = "", **attributes: Any) -> Case:
    """Return a graph of one node; the last ``constants`` operands are constants."""
    b = lite.GraphBuilder(op)
    inputs = arrays[: len(arrays) - constants]
    values = [b.input(f"x{i}", str(x.dtype), x.shape) for i, x in enumerate(inputs)]
    values += [b.constant(array) for array in arrays[len(inputs) :]]
    b.output(b.add(op, values, attributes, domain=domain), "y")
    shapes = " x ".join(str(list(array.shape)) for array in arrays)
    return Case(f"{op} {shapes} {constants} {attributes}", b.build(), list(inputs))


def run(case: Case, backend: str, **options: Any) -> Array:
    """Return the result of a case."""
    session = lite.load(case.graph, backend=backend, fallback="never", **options)
    result: Array = session.run({f"x{i}": x for i, x in enumerate(case.inputs)})["y"]
    return result


def main(path: str, group: str) -> None:
    if group == "all":
        results = [run(case, "arm", threads=1 + number % 2) for number, case in enumerate(cases())]
    elif group == "weights":
        results = [run(case, "arm", threads=1 + number % 2) for number, case in enumerate(weight_cases())]
    elif group == "rows":
        results = [run(case, "arm") for case in row_cases()]
    elif group in PRECISIONS:
        precision, numbered = PRECISIONS[group], enumerate(pair_cases())
        results = [run(case, "arm", threads=1 + n % 2, precision=precision) for n, case in numbered]
    else:
        results = [run(case, "arm", precision=group) for case in narrow_cases()]
    np.savez(path, *results)


if __name__ == "__main__":
    main(*sys.argv[1:])
