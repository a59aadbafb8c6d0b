"""Writes transformers of any size as ONNX models with random weights, one weight after another.

python tests/models/large_transformer.py FOLDER [--layers N] [--width N] [--dtype float32|float16] [--inside]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

__all__ = ["DTYPES", "write_transformer"]

DTYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
_HEAD_SIZE = 64
_VOCABULARY = 16000
_LEAST_EXTERNAL = 4096


class _Writer:
    """The nodes and weights of a model; large weights are in a file as soon as they are made."""

    def __init__(self, dtype: str, file: BinaryIO | None) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self._dtype, self._file, self._random = dtype, file, np.random.default_rng(0)

    def weight(self, *shape: int, around: float = 0.0) -> str:
        array = self._random.standard_normal(shape, np.float32)
        array *= 0.02
        array += around
        elements = array.astype(self._dtype, copy=False)
        tensor = TensorProto(name=f"weight_{len(self.weights)}", data_type=DTYPES[self._dtype], dims=shape)
        if self._file is None or elements.nbytes < _LEAST_EXTERNAL:
            tensor.raw_data = elements.tobytes()
        else:
            self._file.write(bytes(-self._file.tell() % _LEAST_EXTERNAL))
            tensor.data_location = TensorProto.EXTERNAL
            entries = {"location": "weights.bin", "offset": self._file.tell(), "length": elements.nbytes}
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=str(value))
            self._file.write(elements.data)
        self.weights.append(tensor)
        return tensor.name

    def numbers(self, name: str, numbers: Sequence[int]) -> None:
        self.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers))

    def add(self, op: str, *inputs: str, result: str = "", **attributes: object) -> str:
        result = result or f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [result], **attributes))
        return result

    def linear(self, x: str, rows: int, columns: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.weight(rows, columns)), self.weight(columns))

    def normalized(self, x: str, width: int) -> str:
        return self.add("LayerNormalization", x, self.weight(width, around=1.0), self.weight(width), axis=-1)


def write_transformer(folder: Path, *, layers: int, width: int, dtype: str = "float32", inside: bool = False) -> Path:
    """Write an encoder that reads ``ids`` [1, n] and returns ``y`` [1, n, width].

    Args:
        folder: receives ``model.onnx`` and, unless the weights are ``inside`` the model, ``weights.bin``.
        layers: its layers; each has 12 times ``width`` squared weights.
        width: its channels, a multiple of 64.
        dtype: the element type of weights and values.
        inside: True to write one file, of less than 2 GiB.

    Returns:
        The path of the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if inside:
        return _write(folder, layers, width, _Writer(dtype, None), dtype)
    with (folder / "weights.bin").open("wb") as file:
        return _write(folder, layers, width, _Writer(dtype, file), dtype)


def _write(folder: Path, layers: int, width: int, w: _Writer, dtype: str) -> Path:
    w.numbers("divided", [0, 0, width // _HEAD_SIZE, _HEAD_SIZE])
    w.numbers("joined", [0, 0, width])
    w.weights.append(helper.make_tensor("scale", DTYPES[dtype], [], [_HEAD_SIZE**-0.5]))
    x = w.add("Gather", w.weight(_VOCABULARY, width), "ids")
    for _ in range(layers):
        a = w.normalized(x, width)
        q, k, v = (
            w.add("Transpose", w.add("Reshape", w.linear(a, width, width), "divided"), perm=order)
            for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        shares = w.add("Softmax", w.add("Mul", w.add("MatMul", q, k), "scale"), axis=-1)
        heads = w.add("Transpose", w.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        x = w.add("Add", x, w.linear(w.add("Reshape", heads, "joined"), width, width))
        inner = w.linear(w.normalized(x, width), width, 4 * width)
        x = w.add("Add", x, w.linear(w.add("Mul", inner, w.add("Sigmoid", inner)), 4 * width, width))
    w.add("Identity", x, result="y")
    sizes: list[tuple[ValueInfoProto, ...]] = [
        (helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "n"]),),
        (helper.make_tensor_value_info("y", DTYPES[dtype], [1, "n", width]),),
    ]
    graph = helper.make_graph(w.nodes, "transformer", *map(list, sizes), w.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def main() -> None:
    """Write a model as the command line says, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=22, help="default: 22, which is 1.1 GB in float32")
    parser.add_argument("--width", type=int, default=1024, help="default: 1024")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--inside", action="store_true", help="write one file")
    options = parser.parse_args()
    print(
        write_transformer(
            options.folder, layers=options.layers, width=options.width, dtype=options.dtype, inside=options.inside
        )
    )


if __name__ == "__main__":
    main()
