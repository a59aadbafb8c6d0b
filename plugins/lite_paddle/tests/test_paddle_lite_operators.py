"""Operators that only Paddle-Lite has, against the real Paddle-Lite: programs of one operator, most with LoD."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run_single
from legacy_writer import FLOAT32, Writer

from lite_core import load

Array = np.ndarray[Any, Any]
Levels = list[list[int]]

RNG = np.random.default_rng(4)
#: Offsets of the sequences of a query and a title in each of three samples.
QUERY, TITLE = [0, 2, 3, 7], [0, 3, 5, 6]


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Program:
    """A program of one operator: slots with their array and offsets, and the slots that are compared."""

    name: str
    type: str
    feeds: Mapping[str, tuple[Array, Levels]]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[str] = ("Out",)
    unread: Sequence[str] = ()

    def write(self, folder: Path) -> Path:
        """Write the program and its inputs to a folder of its own."""
        own = folder / self.name
        own.mkdir()
        writer = Writer(version=2_000_000)
        for column, (slot, (array, levels)) in enumerate(self.feeds.items()):
            writer.feed(f"in_{slot}", column, dims=(-1, *array.shape[1:]) if levels else array.shape)
            tensor = writer.program.blocks[0].vars[-1].type.dense_tensor
            tensor.tensor.data_type, tensor.lod_level = FLOAT32, len(levels)
        for slot in (*self.outputs, *self.unread):
            writer.variable(f"out_{slot}", dims=(-1, 1))
        slots = ({s: [f"in_{s}"] for s in self.feeds}, {s: [f"out_{s}"] for s in (*self.outputs, *self.unread)})
        writer.op(self.type, *slots, dict(self.attrs))
        for column, slot in enumerate(self.outputs):
            writer.fetch(f"out_{slot}", column)
        (own / "__model__").write_bytes(writer.program.SerializeToString())
        np.savez(own / "feeds.npz", **{f"in_{slot}": array for slot, (array, _) in self.feeds.items()})
        (own / "offsets.json").write_text(
            json.dumps({f"in_{slot}": levels for slot, (_, levels) in self.feeds.items()})
        )
        return own


QUERY_ROWS = {"ROW": (floats(7, 1), [QUERY]), "COLUMN": (floats(6, 1), [TITLE])}
AREAS = np.cumsum([0, *(np.diff(QUERY) * np.diff(TITLE))])


def pictures(channels: int) -> tuple[Array, Levels]:
    offsets = (AREAS * channels).tolist()
    return RNG.permutation(offsets[-1]).astype(np.float32)[:, None] / 8, [offsets, QUERY, TITLE]


def convolution(name: str, kernel: tuple[int, int], strides: tuple[int, int], channels: int, results: int) -> Program:
    feeds = {"X": pictures(channels), **QUERY_ROWS, "W": (floats(results, channels * kernel[0] * kernel[1]), [])}
    names = ("KernelH", "KernelW", "StrideH", "StrideW", "InputChannel", "OutputChannel")
    attrs = dict(zip(names, (*kernel, *strides, channels, results)))
    return Program(name, "var_conv_2d", feeds, attrs, unread=["Col"])


def matrices(transpose_x: bool, transpose_y: bool) -> Program:
    x, y = (floats(8, 3) if transpose_x else floats(6, 4)), (floats(10, 4) if transpose_y else floats(8, 5))
    feeds = {"X": (x, [[0, len(x) // 2, len(x)]]), "Y": (y, [[0, len(y) // 2, len(y)]])}
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": 0.5}
    return Program(f"matrices{int(transpose_x)}{int(transpose_y)}", "search_aligned_mat_mul", feeds, attrs)


PADDED_WORDS = np.array([1, 7, 3, 7, 7, 7, 2, 7, 7, 7], np.float32)[:, None]
ROWS, OTHER = (floats(7, 4), [QUERY]), (floats(6, 4), [TITLE])
FC = {"X": ROWS, "W": (floats(5, 4), []), "b": (floats(5), [])}
PROGRAMS = [
    Program("sampling", "sampling_id", {"X": (np.eye(5, dtype=np.float32)[[2, 0, 4, 3, 3, 1]], [])},
            {"min": 0.0, "max": 1.0, "seed": 3}),
    Program("relu_clipped", "relu_clipped", {"X": (floats(5, 3), [])}, {"Relu_clipped_coef": 0.5}),
    Program("cos_sim", "cos_sim", {"X": (floats(5, 3), []), "Y": (floats(5, 3), [])}, {}, ["Out", "XNorm", "YNorm"]),
    Program("cos_sim_of_one", "cos_sim", {"X": (floats(5, 3), []), "Y": (floats(1, 3), [])}, {},
            ["Out", "XNorm", "YNorm"]),
    Program("fc", "search_fc", FC, {"out_size": 5}),
    Program("seq_fc", "search_seq_fc", FC, {"out_size": 5, "has_bias": True}),
    Program("softmax", "search_seq_softmax", {"X": ROWS}),
    *(Program(f"arithmetic{n}", "search_seq_arithmetic", {"X": ROWS, "Y": (floats(7, 4), [QUERY])}, {"op_type": n})
      for n in (1, 2, 3)),
    *(Program(f"sequences{n}", "sequence_arithmetic", {"X": ROWS, "Y": OTHER}, {"op_type": n}) for n in (1, 2, 3)),
    Program("gru", "search_grnn", {"X": ROWS, "Wi": (floats(3, 5, 4), []), "Wh": (floats(3, 5, 5), [])},
            {"num_input": 4, "num_hidden": 5}, unread=["tmp_buffer", "idx_sorted_by_width", "layout_input"]),
    Program("padding", "search_group_padding", {"X": ROWS}, {"pad_id": 9},
            ["Out_emb_padding", "Out_new", "Out_padding"]),
    Program("depadding", "search_seq_depadding", {"Pad": (floats(12, 4), [[0, 4, 8, 12]]), "Src": ROWS}),
    Program("mask", "search_attention_padding_mask",
            {"X": (floats(20, 5), [[0, 5, 10, 15, 20]]), "Y": (PADDED_WORDS, [[0, 5, 10]])},
            {"pad_id": 7, "mask": -9.0}, ["Out", "pad_begin"]),
    *(matrices(x, y) for x in (False, True) for y in (False, True)),
    Program("match", "match_matrix_tensor", {"X": ROWS, "W": (floats(4, 3, 4), []), "Y": OTHER}, {"dim_t": 3},
            ["Out", "Tmp"]),
    Program("averages", "sequence_topk_avg_pooling", {"X": pictures(2), **QUERY_ROWS},
            {"channel_num": 2, "topks": [1, 2, 5]}, unread=["pos"]),
    convolution("conv_3x3", (3, 3), (1, 1), 1, 2),
    convolution("conv_2x4", (2, 4), (2, 1), 2, 3),
    convolution("conv_5x3", (5, 3), (1, 2), 3, 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(paddle_lite_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all programs, after Paddle-Lite has run them."""
    folder = tmp_path_factory.mktemp("operators")
    script = Path(__file__).with_name("lod_paddle_lite.py")
    command = [paddle_lite_python, script, *(program.write(folder) for program in PROGRAMS)]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    return folder


@pytest.mark.full("models")
@pytest.mark.parametrize("backend", ["host", "x86"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_operator_computes_what_paddle_lite_computes(program: Program, backend: str, folders: Path) -> None:
    own = folders / program.name
    has_levels = any(levels for _, levels in program.feeds.values())
    session = load(own, backend, reader_options={"lod": True} if has_levels else None)
    feeds = {}
    for slot, (array, levels) in program.feeds.items():
        name = f"in_{slot}"
        feeds[name] = array
        for number, offsets in enumerate(levels):
            feeds[f"{name}.lod" if len(levels) == 1 else f"{name}.lod{number}"] = np.array(offsets)
    found = session.run(feeds)
    expected_levels = json.loads((own / "levels.json").read_text())
    with np.load(own / "results.npz") as results:
        for number, slot in enumerate(program.outputs):
            name = f"out_{slot}"
            np.testing.assert_allclose(found[name], results[str(number)], rtol=1e-5, atol=1e-6, err_msg=name)
            if f"{name}.lod" in found:
                assert found[f"{name}.lod"].tolist() == expected_levels[number][0], name


def test_functions_without_a_kernel_for_x86() -> None:
    x, scale = (RNG.integers(-9, 9, shape).astype(np.float32) for shape in ((2, 3, 4, 5), (2, 3, 1, 1)))
    np.testing.assert_array_equal(run_single("negative", {"X": x}), -x)
    np.testing.assert_array_equal(run_single("axpy", {"Scale": scale, "X": x, "Bias": x + 1}), scale * x + x + 1)
