"""Operators that no installed Paddle runs, and that share their lowering with operators which the scan covers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hand_made import Array, graph_of, program_of, run, run_single

from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.paddle_lite.program import KERNEL_ATTRIBUTE
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue

RNG = np.random.default_rng(3)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def test_operators_without_results() -> None:
    for operator, slot in (("nop", "X"), ("assert", "Cond")):
        graph = graph_of(operator, {slot: np.array([True])}, outputs=())
        assert (graph.nodes, graph.outputs) == ([], [])


def test_conversions_within_a_program() -> None:
    for operator in ("calib_once", "calib_inplace"):
        given = {KERNEL_ATTRIBUTE: f"{operator}/int64_to_fp32/2/2/1", "scale": 1.0}
        result = run_single(operator, {"Input": np.array([1, -2])}, given)
        np.testing.assert_array_equal(result, np.array([1, -2], np.float32))


def test_convolution_with_a_residual_of_gpus() -> None:
    x, w, bias, residual = floats(1, 2, 4, 4), floats(3, 2, 1, 1), floats(3), floats(1, 3, 4, 4)
    inputs = {"Input": x, "Filter": w, "Bias": bias, "ResidualData": residual}
    (y,) = run("fused_conv2d_add_act", inputs, {"activation": "relu"}, outputs=["Output"])
    plain = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + bias[:, None, None] + residual
    np.testing.assert_allclose(y, np.maximum(plain, 0), rtol=1e-4, atol=1e-5)


def test_maximum_pool_with_its_own_slots() -> None:
    x = floats(1, 2, 4, 4)
    attrs = {"kernel_size": [2, 2], "strides": [2, 2], "paddings": [0, 0]}
    (y,) = run("max_pool2d_v2", {"x": x}, attrs, outputs=["out"])
    np.testing.assert_array_equal(y, x.reshape(1, 2, 2, 2, 2, 2).max((3, 5)))


def test_repeats_of_each_row() -> None:
    x = floats(3, 2)
    inputs = {"X": x, "RepeatsTensor": np.array([2, 0, 3])}
    found = run_single("repeat_interleave_with_tensor_index", inputs, {"dim": 0})
    np.testing.assert_array_equal(found, np.repeat(x, [2, 0, 3], axis=0))


def test_frames_of_signals() -> None:
    """The result is complex: its parts are the outputs of the model."""
    x, window = floats(2, 12), floats(4)
    attrs = {"n_fft": 4, "hop_length": 2, "normalized": False, "onesided": True}
    program, feeds = program_of("stft", {"X": x, "Window": window}, attrs)
    ((_, result),) = program.outputs
    pairs = SourceValue("pairs")
    program.block.ops.append(SourceOp("as_real", {"X": [result]}, {"Out": [pairs]}, {}))
    program.outputs[:] = [("pairs", pairs)]
    (found,) = evaluate_graph(lower(program), feeds)
    frames = np.lib.stride_tricks.sliding_window_view(x, 4, axis=1)[:, ::2]
    expected = np.fft.rfft(frames * window).transpose(0, 2, 1)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, rtol=1e-4, atol=1e-5)


def test_parts_of_arrays_in_pir() -> None:
    x = floats(2, 2)
    block = SourceBlock()
    given = SourceValue("x", SourceType("float32", x.shape))

    def add(operator: str, inputs: dict[str, list[SourceValue]], slot: str = "0", **attrs: object) -> SourceValue:
        out = SourceValue(f"{operator}_{len(block.ops)}")
        block.ops.append(SourceOp(operator, inputs, {slot: [out]}, attrs))
        return out

    def number(value: int) -> SourceValue:
        return add("fill_constant", {}, "Out", shape=[1], dtype="int64", value=value)

    array = add("create_array", {}, "Out", dtype="float32")
    for place in range(3):
        scaled = add("scale", {"X": [given]}, "Out", scale=float(place), bias=0.0, bias_after_scale=True)
        array = add("write_to_array", {"Array": [array], "X": [scaled], "I": [number(place)]}, "Out")
    last = add("slice_array_dense", {"0": [array], "1": [number(2)]})
    rest = add("slice_array", {"0": [array], "1": [number(1)], "2": [number(3)]})
    second = add("slice_array_dense", {"0": [rest], "1": [number(0)]})
    outputs = [("last", last), ("second", second)]
    program = SourceProgram("pir", 3_003_000, [("x", given)], outputs, {}, {}, block, Path("hand_made"))
    found = evaluate_graph(lower(program), [x])
    np.testing.assert_allclose(found, [2 * x, x], rtol=1e-6)
