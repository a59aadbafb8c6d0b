"""Small programs for the writer of Paddle-Lite's files: one for each rewriting and fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lite_paddle.lowering import lower
from lite_paddle.reader.attributes import complete_attributes
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue

Array = np.ndarray[Any, Any]
#: Type, input slots with names, output slots with names, attributes, then blocks: arguments, operators, results.
Step = tuple[Any, ...]

RANDOM = np.random.default_rng(7)
IMAGE = RANDOM.normal(size=(2, 4, 6, 6)).astype(np.float32)
MATRIX = RANDOM.normal(size=(3, 5)).astype(np.float32)
POSITIVE = np.abs(MATRIX) + 0.1


@dataclass(frozen=True)
class SmallProgram:
    """A program with its inputs.

    Attributes:
        name: label of the test.
        feeds: name -> array of the inputs.
        parameters: name -> array.
        steps: the operators.
        outputs: names of the outputs.
    """

    name: str
    feeds: Mapping[str, Array]
    parameters: Mapping[str, Array]
    steps: Sequence[Step]
    outputs: Sequence[str] = ("out",)

    def source(self) -> SourceProgram:
        """Return the program as the reader returns it."""
        program = SourceProgram("legacy", 2_006_002, [], [], {}, {}, SourceBlock(), Path(self.name))
        values: dict[str, SourceValue] = {}
        for given in (self.feeds, self.parameters):
            for name, array in given.items():
                values[name] = SourceValue(name, SourceType(array.dtype.name, array.shape))
        program.inputs += [(name, values[name]) for name in self.feeds]
        for name, array in self.parameters.items():
            program.parameters[name], program.parameter_values[name] = array, values[name]
        program.block.ops += [_operator(step, values) for step in self.steps]
        _set_types(program)
        program.outputs += [(name, values[name]) for name in self.outputs]
        return program


def _operator(step: Step, values: dict[str, SourceValue]) -> SourceOp:
    kind, inputs, outputs, attrs, *blocks = step
    read = {slot: [values[name] for name in _listed(names)] for slot, names in inputs.items()}
    inner = [_block(*block, values) for block in blocks]
    written = {}
    for slot, names in outputs.items():
        written[slot] = [_new(text, values) for text in _listed(names)]
    return SourceOp(kind, read, written, complete_attributes(kind, attrs), inner, original_type=kind)


def _block(arguments: str, steps: Sequence[Step], results: str, values: dict[str, SourceValue]) -> SourceBlock:
    given = [_new(text, values) for text in arguments.split()]
    return SourceBlock(given, [_operator(step, values) for step in steps], [values[name] for name in results.split()])


def _new(text: str, values: dict[str, SourceValue]) -> SourceValue:
    """Make a value: ``name``, or ``name:element type`` inside of a block; ``name:array`` is a tensor array."""
    name, _, dtype = text.partition(":")
    is_array = dtype == "array"
    values[name] = SourceValue(name, SourceType("float32" if is_array else dtype, None, is_array) if dtype else None)
    return values[name]


def _set_types(program: SourceProgram) -> None:
    """Give each result the type that Lite infers."""
    made = [value for op in program.block.ops for group in op.outputs.values() for value in group]
    unknown = [(value.name, value) for value in made if value.type is None]
    graph = lower(replace(program, outputs=unknown))
    for (_, value), found in zip(unknown, graph.outputs, strict=True):
        shape = tuple(dim if isinstance(dim, int) else -1 for dim in found.type.shape or ())
        value.type = SourceType(found.dtype, shape)


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def one(kind: str, x: Array = MATRIX, attrs: dict[str, Any] | None = None, **more: Any) -> SmallProgram:
    """Return a program of one operator X -> Out."""
    return SmallProgram(kind, {"x": x}, {}, [(kind, {"X": "x"}, {"Out": "out"}, {**(attrs or {}), **more})])


def two(kind: str, x: Array, y: Array, slots: str = "X Y", **attrs: Any) -> SmallProgram:
    """Return a program of one operator with two operands."""
    first, second = slots.split()
    return SmallProgram(kind, {"x": x, "y": y}, {}, [(kind, {first: "x", second: "y"}, {"Out": "out"}, attrs)])


def convolution(label: str, *following: Step, kind: str = "conv2d", **attrs: Any) -> SmallProgram:
    """Return a convolution of images to ``c``, followed by other operators that end in ``out``."""
    groups = 4 if kind == "depthwise_conv2d" else 1
    shape = (4, 4 // groups, 3, 3)
    parameters = {
        "filter": (0.3 * RANDOM.normal(size=shape)).astype(np.float32),
        "row": RANDOM.normal(size=4).astype(np.float32),
        "channels": RANDOM.normal(size=(1, 4, 1, 1)).astype(np.float32),
        "gamma": RANDOM.uniform(0.5, 1.5, 4).astype(np.float32),
        "variance": RANDOM.uniform(0.5, 1.5, 4).astype(np.float32),
        "number": np.array([1.5], np.float32),
    }
    steps = [(kind, {"Input": "x", "Filter": "filter"}, {"Output": "c"}, {"groups": groups, **attrs}), *following]
    used = {name for step in steps for names in step[1].values() for name in _listed(names)}
    kept = {name: array for name, array in parameters.items() if name in used}
    return SmallProgram(label, {"x": IMAGE}, kept, steps)


def _activations(kind: str) -> list[SmallProgram]:
    found = []
    for name, attrs in (
        ("relu", {}),
        ("relu6", {}),
        ("leaky_relu", {"alpha": 0.1}),
        ("hard_swish", {}),
        ("sigmoid", {}),
        ("hard_sigmoid", {}),
        ("tanh", {}),
        ("swish", {}),
    ):
        found.append(convolution(f"{kind}-{name}", (name, {"X": "c"}, {"Out": "out"}, attrs), kind=kind))
    return found


_NORM = {"Scale": "gamma", "Bias": "row", "Mean": "row", "Variance": "variance"}
_BATCH_NORM: Step = ("batch_norm", {"X": "c", **_NORM}, {"Y": "b"}, {})

CASES = [
    # Operators that Paddle-Lite lacks on x86 or ARM.
    two("bmm", IMAGE[0], IMAGE[1]),
    SmallProgram(
        "addmm",
        {"i": MATRIX[:, :3], "x": MATRIX, "y": MATRIX.T.copy()},
        {},
        [("addmm", {"Input": "i", "X": "x", "Y": "y"}, {"Out": "out"}, {"Alpha": 0.5, "Beta": 2.0})],
    ),
    two("expand_as_v2", MATRIX[:1], MATRIX),
    one("logsigmoid"),
    one("log1p", POSITIVE),
    one("log2", POSITIVE),
    one("log10", POSITIVE),
    one("expm1"),
    one("ceil"),
    one("tan"),
    one("selu", alpha=1.6732632, scale=1.050701),
    one("celu", alpha=2.0),
    one("brelu", t_min=-0.5, t_max=0.5),
    one("stanh", scale_a=0.67, scale_b=1.7159),
    one("tanh_shrink"),
    one("softshrink", attrs={"lambda": 0.3}),
    one("softsign"),
    one("arg_min", axis=1, dtype="int64"),
    one("mean"),
    SmallProgram("sum", {"x": MATRIX, "y": POSITIVE}, {}, [("sum", {"X": ["x", "y"]}, {"Out": "out"}, {})]),
    SmallProgram("size", {"x": MATRIX}, {}, [("size", {"Input": "x"}, {"Out": "out"}, {})]),
    one("logsumexp", axis=[1], keepdim=False, reduce_all=False),
    one("reduce_amax", dim=[1], keep_dim=False, reduce_all=False),
    # Forms that newer versions of Paddle write.
    one("arg_max", flatten=True, axis=0, dtype="int64"),
    one("reduce_sum", dim=[], reduce_all=True),
    one("dropout", dropout_prob=0.3, dropout_implementation="downgrade_in_infer"),
    two("scale", MATRIX, np.array([2.5], np.float32), "X ScaleTensor", scale=1.0, bias=0.5, bias_after_scale=True),
    SmallProgram(
        "unbind",
        {"x": MATRIX},
        {},
        [("unbind", {"X": "x"}, {"Out": ["a", "b", "c"]}, {"axis": 0}), ("sum", {"X": ["a", "c"]}, {"Out": "out"}, {})],
    ),
    SmallProgram(
        "top_k_v2-smallest",
        {"x": MATRIX},
        {},
        [("top_k_v2", {"X": "x"}, {"Out": "out", "Indices": "i"}, {"k": 2, "axis": -1, "largest": False})],
        ("out", "i"),
    ),
    SmallProgram(
        "shape-int64",
        {"x": IMAGE},
        {},
        [
            ("shape", {"Input": "x"}, {"Out": "s"}, {"dtype": "int64"}),
            (
                "slice",
                {"Input": "s"},
                {"Out": "n"},
                {"axes": [0], "starts": [0], "ends": [1], "decrease_axis": []},
            ),
            ("fill_constant", {}, {"Out": "m"}, {"shape": [1], "dtype": "int64", "value": -1}),
            ("concat", {"X": ["n", "m"]}, {"Out": "t"}, {"axis": 0}),
            ("reshape2", {"X": "x", "Shape": "t"}, {"Out": "out"}, {"shape": [-1, -1]}),
        ],
    ),
    SmallProgram(
        "lookup_table_v2",
        {"ids": np.array([[1, 0], [2, 2]], np.int64)},
        {"w": MATRIX},
        [("lookup_table_v2", {"Ids": "ids", "W": "w"}, {"Out": "out"}, {})],
    ),
    SmallProgram("input-is-output", {"x": MATRIX}, {}, [("assign", {"X": "x"}, {"Out": "out"}, {})], ("out",)),
    # Fusions.
    convolution("batch_norm-relu", _BATCH_NORM, ("relu", {"X": "b"}, {"Out": "out"}, {})),
    convolution(
        "depthwise-batch_norm", _BATCH_NORM, ("relu6", {"X": "b"}, {"Out": "out"}, {}), kind="depthwise_conv2d"
    ),
    convolution("transpose-batch_norm", _BATCH_NORM, ("relu", {"X": "b"}, {"Out": "out"}, {}), kind="conv2d_transpose"),
    convolution("bias", ("elementwise_add", {"X": "c", "Y": "row"}, {"Out": "out"}, {"axis": 1})),
    convolution(
        "bias-reshape2",
        ("reshape2", {"X": "row"}, {"Out": "r"}, {"shape": [1, -1, 1, 1]}),
        ("elementwise_add", {"X": "c", "Y": "r"}, {"Out": "out"}, {}),
    ),
    convolution(
        "factors",
        ("elementwise_mul", {"X": "number", "Y": "c"}, {"Out": "m"}, {}),
        ("elementwise_sub", {"X": "channels", "Y": "m"}, {"Out": "s"}, {}),
        ("scale", {"X": "s"}, {"Out": "out"}, {"scale": 2.0, "bias": 1.0, "bias_after_scale": False}),
    ),
    convolution(
        "residual",
        ("elementwise_add", {"X": "c", "Y": "x"}, {"Out": "a"}, {}),
        ("relu", {"X": "a"}, {"Out": "out"}, {}),
        paddings=[1, 1],
    ),
    convolution(
        "both-used",
        ("relu", {"X": "c"}, {"Out": "r"}, {}),
        ("elementwise_add", {"X": "c", "Y": "r"}, {"Out": "out"}, {}),
    ),
    *_activations("conv2d"),
    *_activations("depthwise_conv2d"),
    convolution("transpose-relu", ("relu", {"X": "c"}, {"Out": "out"}, {}), kind="conv2d_transpose"),
    convolution("transpose-relu6", ("relu6", {"X": "c"}, {"Out": "out"}, {}), kind="conv2d_transpose"),
    SmallProgram(
        "shuffle_channel",
        {"x": IMAGE},
        {},
        [
            ("reshape2", {"X": "x"}, {"Out": "r"}, {"shape": [-1, 2, 2, 6, 6]}),
            ("transpose2", {"X": "r"}, {"Out": "t"}, {"axis": [0, 2, 1, 3, 4]}),
            ("reshape2", {"X": "t"}, {"Out": "out"}, {"shape": [-1, 4, 6, 6]}),
        ],
    ),
    SmallProgram(
        "linear-relu",
        {"x": IMAGE},
        {"w": RANDOM.normal(size=(6, 3)).astype(np.float32), "b": np.array([1, -2, 3], np.float32)},
        [
            ("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "m"}, {"trans_x": False, "trans_y": False}),
            ("elementwise_add", {"X": "m", "Y": "b"}, {"Out": "a"}, {"axis": -1}),
            ("relu", {"X": "a"}, {"Out": "out"}, {}),
        ],
    ),
    SmallProgram(
        "flatten-linear",
        {"x": IMAGE},
        {"w": RANDOM.normal(size=(3, 144)).astype(np.float32), "b": np.array([1, -2, 3], np.float32)},
        [
            ("flatten_contiguous_range", {"X": "x"}, {"Out": "f"}, {"start_axis": 1, "stop_axis": -1}),
            ("matmul_v2", {"X": "f", "Y": "w"}, {"Out": "m"}, {"trans_x": False, "trans_y": True}),
            ("elementwise_add", {"X": "m", "Y": "b"}, {"Out": "out"}, {"axis": -1}),
        ],
    ),
    SmallProgram(
        "scales",
        {"x": MATRIX},
        {"two": np.array([2], np.float32)},
        [
            ("elementwise_mul", {"X": "x", "Y": "two"}, {"Out": "a"}, {}),
            ("elementwise_sub", {"X": "two", "Y": "a"}, {"Out": "b"}, {}),
            ("elementwise_div", {"X": "b", "Y": "two"}, {"Out": "out"}, {}),
        ],
    ),
    # Loops and conditionals.
    SmallProgram(
        "if",
        {"x": MATRIX},
        {"zero": np.zeros((1,), np.float32)},
        [
            ("reduce_sum", {"X": "x"}, {"Out": "s"}, {"dim": [], "reduce_all": True}),
            ("greater_than", {"X": "s", "Y": "zero"}, {"Out": "c:bool"}, {}),
            (
                "if",
                {"Cond": "c"},
                {"Out": ["out", "other"]},
                {},
                ("", [("scale", {"X": "x"}, {"Out": "a:float32"}, {"scale": 2.0, "bias": 1.0})], "a x"),
                (
                    "",
                    [("tanh", {"X": "x"}, {"Out": "t:float32"}, {}), ("exp", {"X": "t"}, {"Out": "e:float32"}, {})],
                    "t e",
                ),
            ),
        ],
        ("out", "other"),
    ),
    SmallProgram(
        "while",
        {"x": MATRIX},
        {"n": np.array([4], np.int64), "two": np.array([2], np.int64)},
        [
            ("fill_constant", {}, {"Out": "i"}, {"shape": [1], "dtype": "int64", "value": 0}),
            ("less_than", {"X": "i", "Y": "n"}, {"Out": "c:bool"}, {}),
            ("scale", {"X": "x"}, {"Out": "y"}, {"scale": 0.5, "bias": 0.0}),
            ("create_array", {}, {"Out": "kept:array"}, {}),
            (
                "while",
                {"Condition": "c", "X": ["i", "x", "y", "kept"]},
                {"Out": ["last", "out", "sum", "list:array"]},
                {},
                (
                    "j:int64 a:float32 b:float32 before:array",
                    [
                        ("write_to_array", {"X": "a", "I": "j", "Array": "before"}, {"Out": "after:array"}, {}),
                        ("elementwise_add", {"X": "a", "Y": "b"}, {"Out": "d:float32"}, {}),
                        ("increment", {"X": "j"}, {"Out": "k:int64"}, {"step": 1.0}),
                        ("less_than", {"X": "k", "Y": "n"}, {"Out": "more:bool"}, {}),
                    ],
                    "more k b d after",  # the two tensors are exchanged
                ),
            ),
            ("read_from_array", {"X": "list", "I": "two"}, {"Out": "third"}, {}),
        ],
        ("out", "sum", "third"),
    ),
]
