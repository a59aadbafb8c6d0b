"""Operators of detectors, from suppression to deformable convolution and pyramids, beside Paddle and ONNX Runtime.

    python benchmarks/detection.py [--cases NAME ...] [--threads 1,2] [--seconds 2]

Each case is one operator on random inputs; weights are constants where the engine has constants. Lite and the engine
run in turns in one process, and the medians count. The last column is the engine's time divided by Lite's. A case of
Paddle is left out where Paddle is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import lite_core as lite
from lite_x86.backend import X86Backend

Array = np.ndarray[Any, Any]
Run = Callable[[], Any]
_RANDOM = np.random.default_rng(0)
_BOXES, _CLASSES = 8400, 80


class Operator(NamedTuple):
    """An operator of Lite on arrays: those that are None are left out, the last ``constants`` are constants."""

    op: str
    arrays: Sequence[Array | None]
    attributes: dict[str, Any]
    outputs: int = 1
    domain: str = ""
    constants: int = 0

    def run(self, threads: int) -> Run:
        builder, values, inputs = lite.GraphBuilder(self.op), [], {}
        for number, array in enumerate(self.arrays):
            if array is None:
                values.append(None)
            elif number >= len(self.arrays) - self.constants:
                values.append(builder.constant(array))
            else:
                values.append(builder.input(f"x{number}", str(array.dtype), array.shape))
                inputs[f"x{number}"] = array
        for number, value in enumerate(
            builder.add_node(self.op, values, self.attributes, outputs=self.outputs, domain=self.domain)
        ):
            builder.output(value, f"y{number}")
        session = lite.load(builder.build(), backend="x86", threads=threads, fallback="never")
        return lambda: session.run(inputs)

    def run_onnxruntime(self, threads: int) -> Run:
        names = ["" if array is None else f"x{number}" for number, array in enumerate(self.arrays)]
        given = {name: array for name, array in zip(names, self.arrays) if array is not None}
        fixed = names[len(names) - self.constants :]
        inputs = {name: array for name, array in given.items() if name not in fixed}
        types = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ]
        constants = [numpy_helper.from_array(given[name], name) for name in fixed if name]
        node = helper.make_node(self.op, names, ["y"], **self.attributes)
        graph = helper.make_graph([node], self.op, types, [helper.make_empty_tensor_value_info("y")], constants)
        opset = [helper.make_opsetid("", 22 if self.op == "DeformConv" else 16)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Engines run in turns: a thread that spins would take time from the next one.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, inputs)


class Case(NamedTuple):
    """A case: an operator of Lite, and the engine beside it, whose run a number of threads makes."""

    name: str
    operator: Operator
    engine: str
    make: Callable[[int], Run]


def _candidates(power: float = 1.0) -> tuple[Array, Array]:
    """Return boxes and scores of one image; the higher the power, the fewer scores are above a threshold."""
    center, size = _RANDOM.uniform(0, 640, (1, _BOXES, 2)), _RANDOM.uniform(5, 160, (1, _BOXES, 2))
    boxes = np.concatenate([center - size / 2, center + size / 2], axis=-1)
    scores = _RANDOM.uniform(0, 1, (1, _CLASSES, _BOXES)) ** power
    return boxes.astype(np.float32), scores.astype(np.float32)


def _suppression(paddle: Any) -> Iterator[Case]:
    for label, power in (("most scores count", 1.0), ("one in nine scores counts", 40.0)):
        boxes, scores = _candidates(power)
        limits = [np.array([100], np.int64), np.array([0.6], np.float32), np.array([0.01], np.float32)]
        operator = Operator("NonMaxSuppression", [boxes, scores, *limits], {}, constants=3)
        yield Case(f"NonMaxSuppression, {label}", operator, "ONNX Runtime", operator.run_onnxruntime)
        if not paddle:
            continue
        attributes = {"score_threshold": 0.01, "nms_top_k": 1000, "keep_top_k": 100, "background_label": -1}
        p_boxes, p_scores = paddle.to_tensor(boxes), paddle.to_tensor(scores)

        def multiclass(threads: int, b: Any = p_boxes, s: Any = p_scores) -> Run:
            return lambda: paddle._C_ops.multiclass_nms3(b, s, None, 0.01, 1000, 100, 0.6, True, 1.0, -1)

        def matrix(threads: int, b: Any = p_boxes, s: Any = p_scores) -> Run:
            function = paddle.vision.ops.matrix_nms
            return lambda: function(b, s, 0.01, 0.0, 1000, 100, background_label=-1, return_index=True)

        found = [boxes, scores]
        kept = Operator("MulticlassNms", found, {**attributes, "nms_threshold": 0.6}, 3, "lite")
        yield Case(f"multiclass_nms3, {label}", kept, "Paddle", multiclass)
        yield Case(f"matrix_nms, {label}", Operator("MatrixNms", found, attributes, 3, "lite"), "Paddle", matrix)


def _regions(paddle: Any) -> Iterator[Case]:
    x = _RANDOM.standard_normal((1, 256, 50, 68)).astype(np.float32)
    corner, size = _RANDOM.uniform(0, 700, (300, 2)), _RANDOM.uniform(16, 300, (300, 2))
    rois, images = np.concatenate([corner, corner + size], axis=1).astype(np.float32), np.zeros(300, np.int64)
    for mode, ratio in (("avg", 2), ("avg", 0), ("max", 2)):
        attributes = {
            "output_height": 7, "output_width": 7, "sampling_ratio": ratio, "spatial_scale": 1 / 16, "mode": mode,
            "coordinate_transformation_mode": "half_pixel",
        }  # fmt: skip
        operator = Operator("RoiAlign", [x, rois, images], attributes)
        name = f"RoiAlign 256x50x68, 300 regions, {mode}, {f'{ratio}x{ratio}' if ratio else 'adaptive'} samples"
        yield Case(name, operator, "ONNX Runtime", operator.run_onnxruntime)
        if paddle and mode == "avg":
            given = [paddle.to_tensor(a) for a in (x, rois, np.array([300], np.int32))]

            def align(threads: int, given: Any = given, ratio: int = ratio) -> Run:
                return lambda: paddle.vision.ops.roi_align(*given, 7, 1 / 16, ratio or -1, True)

            yield Case(name, operator, "Paddle", align)


def _deformable(paddle: Any) -> Iterator[Case]:
    for channels, size in ((256, 20), (64, 80)):
        x = _RANDOM.standard_normal((1, channels, size, size)).astype(np.float32)
        offset = (2 * _RANDOM.standard_normal((1, 18, size, size))).astype(np.float32)
        mask = _RANDOM.uniform(0, 1, (1, 9, size, size)).astype(np.float32)
        weights = _RANDOM.standard_normal((channels, channels, 3, 3)).astype(np.float32)
        bias = _RANDOM.standard_normal(channels).astype(np.float32)
        attributes = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
        operator = Operator("DeformConv", [x, weights, offset, bias, mask], attributes)
        name = f"DeformConv {channels}x{size}x{size}, 3x3"
        yield Case(name, operator, "ONNX Runtime", operator.run_onnxruntime)
        if paddle:
            given = [paddle.to_tensor(a) for a in (x, offset, weights, bias, mask)]

            def convolve(threads: int, given: Any = given) -> Run:
                return lambda: paddle.vision.ops.deform_conv2d(*given[:4], 1, 1, mask=given[4])

            yield Case(name, operator, "Paddle", convolve)


def _heads(paddle: Any) -> Iterator[Case]:
    anchors = (10, 13, 16, 30, 33, 23)
    for size in (20, 80) if paddle else ():
        x = _RANDOM.standard_normal((1, 3 * (5 + _CLASSES), size, size)).astype(np.float32)
        images = np.array([[640, 640]], np.int32)
        attributes = {
            "anchors": anchors, "class_num": _CLASSES, "conf_thresh": 0.01, "downsample_ratio": 640 // size,
        }  # fmt: skip
        given = [paddle.to_tensor(a) for a in (x, images)]

        def decode(threads: int, given: Any = given, size: int = size) -> Run:
            return lambda: paddle.vision.ops.yolo_box(*given, list(anchors), _CLASSES, 0.01, 640 // size)

        yield Case(f"yolo_box {size}x{size}", Operator("YoloBox", [x, images], attributes, 2, "lite"), "Paddle", decode)


def _proposals(paddle: Any) -> Iterator[Case]:
    for height, width in ((50, 68), (200, 272)) if paddle else ():
        scores = _RANDOM.uniform(0, 1, (1, 3, height, width)).astype(np.float32)
        deltas = _RANDOM.standard_normal((1, 12, height, width)).astype(np.float32)
        images = np.array([[800, 1088]], np.float32)
        low, size = _RANDOM.uniform(0, 800, (height, width, 3, 2)), _RANDOM.uniform(16, 200, (height, width, 3, 2))
        anchors = np.concatenate([low, low + size], axis=-1).astype(np.float32)
        variances = np.full_like(anchors, 0.1)
        arrays = [scores, deltas, images, anchors, variances]
        attributes = {
            "pre_nms_top_n": 2000, "post_nms_top_n": 1000, "nms_thresh": 0.7, "min_size": 0.0, "pixel_offset": 0,
        }  # fmt: skip
        given = [paddle.to_tensor(a) for a in arrays]

        def propose(threads: int, given: Any = given) -> Run:
            function = paddle.vision.ops.generate_proposals
            return lambda: function(*given, 2000, 1000, 0.7, 0.0, return_rois_num=True)

        operator = Operator("GenerateProposals", arrays, attributes, 3, "lite")
        yield Case(f"generate_proposals {3 * height * width:,} anchors", operator, "Paddle", propose)


def _pyramid(paddle: Any) -> Iterator[Case]:
    levels, many = (2, 3, 4, 5), 1000
    for images in (1, 4) if paddle else ():
        low, size = _RANDOM.uniform(0, 800, (many, 2)), np.exp2(_RANDOM.uniform(3, 9, (many, 2)))
        regions = np.concatenate([low, low + size], axis=1).astype(np.float32)
        counts = np.full(images, many // images, np.int32)
        attributes: dict[str, Any] = {
            "min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 224, "pixel_offset": 0,
        }  # fmt: skip
        given = [paddle.to_tensor(a) for a in (regions, counts)]

        def distribute(threads: int, given: Any = given) -> Run:
            function = paddle.vision.ops.distribute_fpn_proposals
            return lambda: function(given[0], 2, 5, 4, 224, rois_num=given[1])

        operator = Operator("DistributeFpnProposals", [regions, counts], attributes, 9, "lite")
        yield Case(f"distribute_fpn_proposals {many} regions, {images} image(s)", operator, "Paddle", distribute)
        scores = [_RANDOM.uniform(0, 1, (many, 1)).astype(np.float32) for _ in levels]
        groups = [[regions] * len(levels), scores, [counts] * len(levels)]
        tensors = [[paddle.to_tensor(a) for a in group] for group in groups]

        def collect(threads: int, tensors: Any = tensors) -> Run:
            return lambda: paddle._C_ops.collect_fpn_proposals(*tensors, many)

        arrays = [array for group in groups for array in group]
        operator = Operator("CollectFpnProposals", arrays, {"post_nms_top_n": many}, 2, "lite")
        yield Case(f"collect_fpn_proposals 4 x {many} regions, {images} image(s)", operator, "Paddle", collect)


CASES = {
    "suppression": _suppression,
    "regions": _regions,
    "deformable": _deformable,
    "heads": _heads,
    "proposals": _proposals,
    "pyramid": _pyramid,
}


def measure(case: Case, threads: int, seconds: float) -> tuple[float, float]:
    """Return the median seconds of Lite and of the engine, which run in turns."""
    runs = case.operator.run(threads), case.make(threads)
    times: tuple[list[float], list[float]] = ([], [])
    for run in runs:
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for run, found in zip(runs, times):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--threads", type=lambda text: [*map(int, text.split(","))], default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args(arguments)
    paddle = None
    if importlib.util.find_spec("paddle"):
        os.environ["OMP_NUM_THREADS"] = str(max(given.threads))  # read when Paddle is imported
        import paddle  # type: ignore[no-redef]
    print(X86Backend().machine().name)
    print("| operator | threads | Lite | engine | its time | its time / Lite's |")
    print("| --- | --- | --- | --- | --- | --- |")
    for threads in given.threads:
        if paddle:
            paddle.base.core.set_num_threads(threads)
        for case in (case for name in given.cases for case in CASES[name](paddle)):
            own, other = measure(case, threads, given.seconds)
            words = (
                case.name,
                threads,
                f"{own * 1e3:.2f} ms",
                case.engine,
                f"{other * 1e3:.2f} ms",
                f"{other / own:.2f}",
            )
            print(f"| {' | '.join(map(str, words))} |", flush=True)


if __name__ == "__main__":
    main()
