"""Write a small language model with random weights as an ONNX model, in one of the forms that exporters write.

    python make_model.py model.onnx --form past
    python make_model.py model.onnx --form buffer --bits 4

``past``: the form of Optimum and Transformers. Plain ONNX operators; the inputs ``past_key_values.N.key`` and
``.value`` hold the past positions, and the outputs ``present.N.key`` and ``.value`` one or more positions more.

``buffer``: the form of onnxruntime-genai. GroupQueryAttention and other operators of com.microsoft; past and present
are one buffer of fixed length, and ``attention_mask`` tells how many positions of it are in use. With 4 bits, the
products are MatMulNBits.

The network has the structure of Llama: RMS normalization, rotary embedding, groups of query heads that share a head
of keys and values, and a gated feed-forward network.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Decoder", "make_model"]

Array = np.ndarray[Any, Any]

_EPSILON = 1e-5
#: Numbers that share a scale in 4-bit weights.
_BLOCK = 32


@dataclass(frozen=True)
class Decoder:
    """The sizes of a decoder; by default its products have 123 million weights.

    Attributes:
        layers: the number of layers.
        hidden: the size of a token's vector.
        heads: the number of query heads.
        groups: the number of heads of keys and values.
        inner: the size inside of the feed-forward network.
        words: the number of tokens.
        positions: the most positions of a text.
    """

    layers: int = 8
    hidden: int = 1024
    heads: int = 16
    groups: int = 4
    inner: int = 2816
    words: int = 32000
    positions: int = 512

    @property
    def size(self) -> int:
        """The size of a head."""
        return self.hidden // self.heads


def make_model(path: Path, decoder: Decoder, form: str = "past", bits: int = 32, seed: int = 0) -> None:
    """Write the model, with its weights in a file beside it, whose name is the model's with ``.data``."""
    writer = (_WithPast if form == "past" else _WithBuffer)(decoder, seed, bits)
    model = writer.model()
    data = path.with_name(path.name + ".data")
    data.unlink(missing_ok=True)
    onnx.save_model(model, path, save_as_external_data=True, location=data.name, size_threshold=4096)


class _Writer(ABC):
    """The parts of both forms: names, weights, and the structure of the network."""

    def __init__(self, decoder: Decoder, seed: int, bits: int) -> None:
        self.d, self.bits = decoder, bits
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    # **** the network ****

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        d = self.d
        self._begin()
        x = self.add("Gather", self.normal("embedding", d.words, d.hidden, scale=1.0), "input_ids")
        total, normal = self._normalize("first", x, None, self.ones("0.norm"))
        for layer in range(d.layers):
            attended = self._attention(layer, normal)
            total, normal = self._normalize(f"{layer}.middle", total, attended, self.ones(f"{layer}.middle_norm"))
            gate = self.product(f"{layer}.gate", normal, d.hidden, d.inner)
            up = self.product(f"{layer}.up", normal, d.hidden, d.inner)
            active = self.add("Mul", self.add("Mul", gate, self.add("Sigmoid", gate)), up)
            down = self.product(f"{layer}.down", active, d.inner, d.hidden)
            total, normal = self._normalize(f"{layer}.end", total, down, self.ones(f"{layer + 1}.norm"))
        self.product("head", normal, d.hidden, d.words, "logits")
        return self._finish()

    @abstractmethod
    def _begin(self) -> None:
        """Add the nodes that all layers share."""

    @abstractmethod
    def _attention(self, layer: int, x: str) -> str:
        """Add the attention of a layer, with its product at the end."""

    @abstractmethod
    def _normalize(self, name: str, x: str, more: str | None, scale: str) -> tuple[str, str]:
        """Add ``x + more``, and its RMS normalization; return the names of both."""

    # **** parts ****

    def add(self, op: str, *inputs: str, to: str | Sequence[str] = "", domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its first output."""
        outputs = [to] if isinstance(to, str) else list(to)
        outputs[0] = outputs[0] or f"{op}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def cast(self, x: str, dtype: int) -> str:
        """Add a conversion to one of ONNX's element types, and return its name."""
        name = f"Cast_{len(self._nodes)}"
        self._nodes.append(helper.make_node("Cast", [x], [name], name=name, to=dtype))
        return name

    def constant(self, name: str, array: Any) -> str:
        """Add a constant, and return its name."""
        self._constants.setdefault(name, numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *numbers: int) -> str:
        """Add a vector of int64, and return its name."""
        return self.constant("ints_" + "_".join(map(str, numbers)), np.array(numbers, np.int64))

    def normal(self, name: str, *shape: int, scale: float) -> str:
        """Add normally distributed weights."""
        return self.constant(name, self._random.standard_normal(shape, np.float32) * np.float32(scale))

    def ones(self, name: str) -> str:
        """Add the scale of a normalization, which varies around one."""
        return self.constant(name, (1 + 0.1 * self._random.standard_normal(self.d.hidden)).astype(np.float32))

    def product(self, name: str, x: str, inputs: int, outputs: int, to: str = "") -> str:
        """Add a product with random weights."""
        weights = self._random.standard_normal((inputs, outputs), np.float32) * np.float32(inputs**-0.5)
        if self.bits == 32:
            return self.add("MatMul", x, self.constant(name, weights), to=to)
        blocks = weights.T.reshape(outputs, -1, _BLOCK)
        scales = np.abs(blocks).max(axis=2, keepdims=True) / 7
        codes = (np.rint(blocks / scales) + 8).astype(np.uint8)
        packed = self.constant(f"{name}.codes", codes[..., ::2] | codes[..., 1::2] << 4)
        attributes = {"K": inputs, "N": outputs, "bits": 4, "block_size": _BLOCK, "accuracy_level": 1}
        scaled = self.constant(f"{name}.scales", scales.reshape(-1))
        return self.add("MatMulNBits", x, packed, scaled, to=to, domain="com.microsoft", **attributes)

    def angles(self) -> Array:
        """Return the angles of all positions, [positions, size / 2]."""
        frequencies = 10000.0 ** -(np.arange(self.d.size // 2) * 2 / self.d.size)
        return np.arange(self.d.positions)[:, None] * frequencies

    def _finish(self, past: str, present: str, extra: Sequence[str] = ()) -> onnx.ModelProto:
        """Return the model with its inputs and outputs; ``past`` and ``present`` are the lengths of the caches."""
        d = self.d

        def cache(name: str, length: str) -> list[onnx.ValueInfoProto]:
            shape = ("batch", d.groups, length, d.size)
            names = [f"{name}.{i}.{kind}" for i in range(d.layers) for kind in ("key", "value")]
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in names]

        def tokens(name: str, length: str) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.INT64, ("batch", length))

        inputs = [tokens("input_ids", "sequence"), tokens("attention_mask", "total")]
        inputs += [tokens(name, "sequence") for name in extra]
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ("batch", "sequence", d.words))
        graph = helper.make_graph(
            self._nodes,
            "decoder",
            [*inputs, *cache("past_key_values", past)],
            [logits, *cache("present", present)],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


class _WithPast(_Writer):
    """Plain ONNX operators, in the order in which torch exports the modules of Transformers."""

    def _begin(self) -> None:
        half = self.d.size // 2
        frequencies = self.constant("frequencies", self.angles()[1].astype(np.float32).reshape(1, half, 1))
        rows = self.cast(self.add("Unsqueeze", "position_ids", self.ints(1)), TensorProto.FLOAT)
        angles = self.add("Transpose", self.add("MatMul", frequencies, rows), perm=[0, 2, 1])
        both = self.add("Concat", angles, angles, axis=-1)
        self._cosine = self.add("Unsqueeze", self.add("Cos", both), self.ints(1))
        self._sine = self.add("Unsqueeze", self.add("Sin", both), self.ints(1))
        self._mask = self._causal_mask()

    def _length(self, x: str, axis: int) -> str:
        return self.add("Gather", self.add("Shape", x), self.constant(f"axis_{axis}", np.array(axis, np.int64)), axis=0)

    def _causal_mask(self) -> str:
        """Add the mask [batch, 1, queries, keys]: 0, or the lowest number for keys that a query must not see."""
        zero, one = self.constant("zero", np.array(0, np.int64)), self.constant("one", np.array(1, np.int64))
        lowest = self.constant("lowest", np.array(np.finfo(np.float32).min, np.float32))
        past = self._length("past_key_values.0.key", 2)
        total = self.add("Add", past, self._length("input_ids", 1))
        queries = self.add("Reshape", self.add("Range", past, total, one), self.ints(-1, 1))
        later = self.cast(self.add("Greater", self.add("Range", zero, total, one), queries), TensorProto.FLOAT)
        causal = self.add("Unsqueeze", self.add("Mul", later, lowest), self.ints(0, 1))
        padding = self.cast(self.add("Unsqueeze", "attention_mask", self.ints(1, 2)), TensorProto.FLOAT)
        hidden = self.add("Equal", self.add("Add", causal, padding), self.constant("zero_float", np.float32(0)))
        return self.add("Where", hidden, lowest, causal)

    def _normalize(self, name: str, x: str, more: str | None, scale: str) -> tuple[str, str]:
        total = x if more is None else self.add("Add", x, more)
        square = self.add("Pow", total, self.constant("two", np.float32(2)))
        mean = self.add("ReduceMean", square, axes=[-1], keepdims=1)
        root = self.add("Sqrt", self.add("Add", mean, self.constant("epsilon", np.float32(_EPSILON))))
        inverse = self.add("Div", self.constant("one_float", np.float32(1)), root)
        return total, self.add("Mul", scale, self.add("Mul", total, inverse))

    def _heads(self, x: str, count: int) -> str:
        shape = [self.add("Unsqueeze", self._length(x, axis), self.ints(0)) for axis in (0, 1)]
        split = self.add("Reshape", x, self.add("Concat", *shape, self.ints(count), self.ints(self.d.size), axis=0))
        return self.add("Transpose", split, perm=[0, 2, 1, 3])

    def _rotate(self, x: str) -> str:
        half = self.add("Div", self._length(x, 3), self.constant("two_int", np.array(2, np.int64)))
        middle, last = self.add("Unsqueeze", half, self.ints(0)), self.ints(2**63 - 1)
        first = self.add("Slice", x, self.ints(0), middle, self.ints(3), self.ints(1))
        second = self.add("Slice", x, middle, last, self.ints(3), self.ints(1))
        turned = self.add("Concat", self.add("Neg", second), first, axis=-1)
        return self.add("Add", self.add("Mul", x, self._cosine), self.add("Mul", turned, self._sine))

    def _repeat(self, x: str) -> str:
        """Add the repetition of each head for all query heads of its group."""
        d = self.d
        sizes = [self.add("Unsqueeze", self._length(x, axis), self.ints(0)) for axis in (0, 2)]
        times, size = self.ints(d.heads // d.groups), self.ints(d.size)
        shape = self.add("Concat", sizes[0], self.ints(d.groups), times, sizes[1], size, axis=0)
        wide = self.add("Expand", self.add("Unsqueeze", x, self.ints(2)), shape)
        return self.add("Reshape", wide, self.add("Concat", sizes[0], self.ints(d.heads), sizes[1], size, axis=0))

    def _attention(self, layer: int, x: str) -> str:
        d, width = self.d, self.d.groups * self.d.size
        query = self._heads(self.product(f"{layer}.query", x, d.hidden, d.hidden), d.heads)
        key = self._heads(self.product(f"{layer}.key", x, d.hidden, width), d.groups)
        value = self._heads(self.product(f"{layer}.value", x, d.hidden, width), d.groups)
        query, key = self._rotate(query), self._rotate(key)
        keys, values = (
            self.add("Concat", f"past_key_values.{layer}.{kind}", new, to=f"present.{layer}.{kind}", axis=-2)
            for kind, new in (("key", key), ("value", value))
        )
        transposed = self.add("Transpose", self._repeat(keys), perm=[0, 1, 3, 2])
        scale = self.constant("scale", np.float32(d.size**0.5))
        scores = self.add("Add", self.add("Div", self.add("MatMul", query, transposed), scale), self._mask)
        result = self.add("MatMul", self.add("Softmax", scores, axis=-1), self._repeat(values))
        rows = self.add("Transpose", result, perm=[0, 2, 1, 3])
        shape = [self.add("Unsqueeze", self._length(x, axis), self.ints(0)) for axis in (0, 1)]
        flat = self.add("Reshape", rows, self.add("Concat", *shape, self.ints(-1), axis=0))
        return self.product(f"{layer}.output", flat, d.hidden, d.hidden)

    def _finish(self, past: str = "past", present: str = "total", extra: Sequence[str] = ()) -> onnx.ModelProto:
        return super()._finish(past, present, ["position_ids"])


class _WithBuffer(_Writer):
    """Operators of com.microsoft, as onnxruntime-genai's model builder writes them."""

    def _begin(self) -> None:
        count = self.add("ReduceSum", "attention_mask", self.ints(1), keepdims=0)
        self._lengths = self.cast(self.add("Sub", count, self.ints(1)), TensorProto.INT32)
        shape = self.add("Shape", "attention_mask")
        total = self.add("Gather", shape, self.constant("axis_1", np.array(1, np.int64)), axis=0)
        self._total = self.cast(total, TensorProto.INT32)
        self._cosine = self.constant("cosine", np.cos(self.angles()).astype(np.float32))
        self._sine = self.constant("sine", np.sin(self.angles()).astype(np.float32))

    def _normalize(self, name: str, x: str, more: str | None, scale: str) -> tuple[str, str]:
        if more is None:
            return x, self.add("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=_EPSILON, stash_type=1)
        outputs = (f"{name}.normal", "", "", f"{name}.total")
        attributes = {"to": outputs, "domain": "com.microsoft", "epsilon": _EPSILON}
        return outputs[3], self.add("SkipSimplifiedLayerNormalization", x, more, scale, **attributes)

    def _attention(self, layer: int, x: str) -> str:
        d = self.d
        packed = self.product(f"{layer}.packed", x, d.hidden, d.hidden + 2 * d.groups * d.size)
        past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        tables = [self._lengths, self._total, self._cosine, self._sine]
        flat = self.add(
            "GroupQueryAttention", packed, "", "", *past, *tables,
            to=(f"{layer}.attention", f"present.{layer}.key", f"present.{layer}.value"), domain="com.microsoft",
            num_heads=d.heads, kv_num_heads=d.groups, do_rotary=1, rotary_interleaved=0, scale=d.size**-0.5,
        )  # fmt: skip
        return self.product(f"{layer}.output", flat, d.hidden, d.hidden)

    def _finish(self, past: str = "length", present: str = "length", extra: Sequence[str] = ()) -> onnx.ModelProto:
        return super()._finish(past, present)


def main() -> None:
    """Read the command line, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--form", choices=("past", "buffer"), default="past")
    parser.add_argument("--bits", type=int, choices=(4, 32), default=32, help="bits of a weight of a product")
    options = parser.parse_args()
    make_model(options.path, Decoder(), options.form, options.bits)


if __name__ == "__main__":
    main()
