"""Benchmark of a detector of two stages whose number of regions differs from image to image, beside Paddle Inference.

    python benchmarks/two_stages.py [--threads 1 2] [--images 40] [--channels 64]

Paddle exports the model, with random weights: a pyramid of features, a region proposal network, which keeps other
numbers of regions on each level of every image, their pooling by RoiAlign, and a head that scores and refines them
before the last suppression. The engines run in turns. A row has the medians of all images but the first ones, from
which Lite records its templates; for Lite also those of the second run of each image. The ratio is Paddle's time
divided by Lite's for a new image. The last columns are the images whose results agree with Paddle's, the numbers of
results, the number of images that differ in the regions of a level, and for how many images, after the first ones, Lite
compiled or recorded anything.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import lite_core as lite

Array = np.ndarray[Any, Any]
#: Returns the results for an image, and the number of regions of each level.
Run = Callable[[Array], list[Array]]

#: Images that come before those that are measured; the size of an image; the levels of the pyramid.
FIRST, SIZE, LEVELS = 6, 320, (2, 3, 4, 5)


def export(folder: Path, channels: int) -> Path:
    """Export the detector, and return the path of its files without the ending."""
    import paddle
    from paddle import nn
    from paddle.vision import ops

    class Detector(nn.Layer):
        """A detector whose regions come from all levels of a pyramid."""

        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2D(3, channels, 7, stride=4, padding=3)
            self.down = nn.LayerList([nn.Conv2D(channels, channels, 3, stride=2, padding=1) for _ in LEVELS[1:]])
            self.rpn, self.score = nn.Conv2D(channels, channels, 3, padding=1), nn.Conv2D(channels, 3, 1)
            self.delta = nn.Conv2D(channels, 12, 1, weight_attr=nn.initializer.Normal(0, 0.1))
            self.hidden = nn.LayerList([nn.Linear(channels * 49, 256), nn.Linear(256, 256)])
            self.label, self.box = nn.Linear(256, 11), nn.Linear(256, 4)
            for level in LEVELS:
                cells = SIZE >> level
                rows, columns = np.meshgrid(*[np.arange(cells) * 2.0**level] * 2, indexing="ij")
                sides = 2.0 ** (level + 2) * np.array([[0.7, 1.4], [1, 1], [1.4, 0.7]])
                center = np.stack([columns, rows], axis=-1)[:, :, None]
                anchors = np.concatenate([center - sides / 2, center + sides / 2], axis=-1).astype(np.float32)
                self.register_buffer(f"anchors{level}", paddle.to_tensor(anchors))

        def forward(self, image: Any, size: Any) -> Any:
            relu, features = nn.functional.relu, [nn.functional.relu(self.stem(image))]
            for down in self.down:
                features.append(relu(down(features[-1])))
            found = []
            for level, feature in zip(LEVELS, features):
                shared, anchors = relu(self.rpn(feature)), getattr(self, f"anchors{level}")
                scores, deltas = nn.functional.sigmoid(self.score(shared)), self.delta(shared)
                found.append(
                    ops.generate_proposals(
                        scores, deltas, size, anchors, paddle.ones_like(anchors), 1000, 300, 0.5, 8.0,
                        return_rois_num=True,
                    )
                )  # fmt: skip
            regions, counts = paddle._C_ops.collect_fpn_proposals(*map(list, zip(*found)), 300)
            levels, restore, numbers = ops.distribute_fpn_proposals(regions, 2, 5, 4, 56, rois_num=counts)
            pooled = [
                ops.roi_align(feature, own, number, 7, 0.5**level, 2)
                for level, feature, own, number in zip(LEVELS, features, levels, numbers)
            ]
            x = paddle.gather(paddle.concat(pooled), restore.flatten()).flatten(1)
            for layer in self.hidden:
                x = relu(layer(x))
            scores = nn.functional.softmax(self.label(x))[:, 1:].t().unsqueeze(0)
            corners = (regions + self.box(x)).unsqueeze(0)
            kept = paddle._C_ops.multiclass_nms3(corners, scores, None, 0.2, 200, 100, 0.5, True, 1.0, -1)[0]
            return kept, paddle.concat(numbers)

    paddle.seed(3)
    model = Detector()
    model.eval()
    specification = [
        paddle.static.InputSpec([1, 3, SIZE, SIZE], "float32", "image"),
        paddle.static.InputSpec([1, 2], "float32", "size"),
    ]
    paddle.jit.save(model, str(folder / "detector"), input_spec=specification)
    return folder / "detector"


def image(seed: int) -> Array:
    """Return an image of blocks of noise, of another contrast each time, so that other regions suppress each other."""
    random = np.random.default_rng(seed)
    coarse = random.standard_normal((1, 3, 20, 20)) * random.uniform(0.2, 3)
    return np.kron(coarse, np.ones((16, 16))).astype(np.float32)


def paddle_runner(model: Path, threads: int) -> Run:
    from paddle import inference

    suffix = ".json" if model.with_suffix(".json").exists() else ".pdmodel"
    config = inference.Config(str(model.with_suffix(suffix)), str(model.with_suffix(".pdiparams")))
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(threads)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    image, size = (predictor.get_input_handle(name) for name in ("image", "size"))
    results = [predictor.get_output_handle(name) for name in predictor.get_output_names()]

    def run(array: Array) -> list[Array]:
        image.copy_from_cpu(array)
        size.copy_from_cpu(np.full((1, 2), SIZE, np.float32))
        predictor.run()
        return [result.copy_to_cpu() for result in results]

    return run


def lite_runner(model: Path, threads: int) -> Run:
    suffix = ".json" if model.with_suffix(".json").exists() else ".pdmodel"
    session = lite.load(model.with_suffix(suffix), backend="x86", threads=threads)
    size = np.full((1, 2), SIZE, np.float32)
    return lambda array: [*session.run({"image": array, "size": size}).values()]


class Lowered(logging.Handler):
    """Counts the groups of nodes that Lite compiles or records."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


def compiled_images(model: Path, images: int) -> int:
    """Return for how many images behind the first ones anything is compiled or recorded."""
    logger, handler, compiled = logging.getLogger("lite.cpu.kernels"), Lowered(), 0
    run = lite_runner(model, 1)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    for number in range(images):
        before = handler.count
        run(image(number))
        compiled += number >= FIRST and handler.count > before
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    return compiled


def timed(run: Run, array: Array) -> tuple[float, list[Array]]:
    start = time.perf_counter()
    found = run(array)
    return time.perf_counter() - start, found


def is_close(found: Array, expected: Array) -> bool:
    """Return True if results agree; rounding may exchange two that have almost the same score."""
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-3, atol=1e-2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--channels", type=int, default=64)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(max(options.threads))  # read when Paddle is imported
    print(
        "| threads | Lite, new image | Lite, again | Paddle | its time / Lite's | agree | results | differ | compiled |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        model = export(Path(folder), options.channels)
        compiled = compiled_images(model, options.images)
        for threads in options.threads:
            ours, theirs = lite_runner(model, threads), paddle_runner(model, threads)
            times: list[tuple[float, float, float]] = []
            results, splits, agree = set(), set(), 0
            for number in range(options.images):
                array = image(number)
                new, found = timed(ours, array)
                other, expected = timed(theirs, array)
                again, _ = timed(ours, array)
                agree += all(map(is_close, found, expected))
                results.add(len(found[0]))
                splits.add(tuple(found[1].tolist()))
                times.append((new, again, other))
            new, again, other = (median(own) for own in zip(*times[FIRST:]))
            words = (
                threads,
                f"{new * 1e3:.2f} ms",
                f"{again * 1e3:.2f} ms",
                f"{other * 1e3:.2f} ms",
                f"{other / new:.2f}",
                f"{agree} of {options.images}",
                f"{min(results)} to {max(results)}",
                len(splits),
                compiled,
            )
            print(f"| {' | '.join(map(str, words))} |", flush=True)


if __name__ == "__main__":
    main()
