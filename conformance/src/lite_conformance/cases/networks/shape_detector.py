"""A one-stage detector of circles, squares and triangles: anchor-free (FCOS, Tian et al., 2019), with its NMS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_conformance.cases.networks import drawing
from lite_conformance.cases.networks.layers import Layers
from lite_conformance.cases.networks.network import Network
from lite_core.ir import DType, Graph, Value

__all__ = ["LARGEST_DISTANCE", "SHAPE_DETECTOR", "STRIDE", "DrawnShape", "iou", "matches", "render"]

Array = np.ndarray[Any, Any]

NAME = "shape_detector"
#: Distance in pixels of the cells, each of which predicts a box. Image sizes are multiples of 16 pixels.
STRIDE = 4
#: The logarithm of the largest distance of a side from its cell's centre, in strides.
LARGEST_DISTANCE = 3.0

_SLOPE = 0.1
_MAX_BOXES, _IOU_THRESHOLD, _SCORE_THRESHOLD = 20, 0.4, 0.4
_RECALL, _PRECISION = 0.75, 0.75


@dataclass(frozen=True)
class DrawnShape:
    """A shape in an image: its number in ``drawing.SHAPES`` and its box (y1, x1, y2, x2) in pixels."""

    kind: int
    box: tuple[float, float, float, float]


def render(count: int, height: int, width: int, generator: np.random.Generator) -> tuple[Array, list[list[DrawnShape]]]:
    """Render images [count, 3, height, width] with one to four shapes that hardly overlap; also return the shapes."""
    images = np.zeros((count, 3, height, width))
    drawn: list[list[DrawnShape]] = []
    y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None, :]
    for image in images:
        ground = generator.uniform(0.2, 0.8, 3)
        slope = generator.uniform(-0.15, 0.15, (3, 2))
        image[...] = ground[:, None, None] + slope[:, 0, None, None] * y + slope[:, 1, None, None] * x
        shapes: list[DrawnShape] = []
        for _ in range(int(generator.integers(1, 5))):
            radius = generator.uniform(6, 13)
            row, column = generator.uniform(radius, height - radius), generator.uniform(radius, width - radius)
            box = (row - radius, column - radius, row + radius, column + radius)
            if any(iou(box, other.box) > 0.05 for other in shapes):
                continue
            kind = int(generator.integers(len(drawing.SHAPES)))
            mask = drawing.shape_mask(kind, (row, column), radius, height, width)
            image[...] += mask * (_colour(ground, generator)[:, None, None] - image)
            shapes.append(DrawnShape(kind, box))
        drawn.append(shapes)
    return drawing.add_noise(images, 0.04, generator), drawn


def _colour(ground: Array, generator: np.random.Generator) -> Array:
    """Return a colour that differs from the background."""
    while True:
        colour: Array = generator.uniform(0, 1, 3)
        if np.abs(colour - ground).max() > 0.4:
            return colour


def iou(a: Any, b: Any) -> float:
    """Return the intersection over union of two boxes (y1, x1, y2, x2)."""
    overlap = max(min(a[2], b[2]) - max(a[0], b[0]), 0.0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - overlap
    return float(overlap / union) if union > 0 else 0.0


def matches(drawn: list[list[DrawnShape]], outputs: Mapping[str, Array], least: float = 0.5) -> tuple[int, int, int]:
    """Return the numbers of shapes found (correct kind, IoU of at least ``least``), shapes drawn, and boxes given."""
    found = 0
    for image, shapes in enumerate(drawn):
        mine = outputs["image"] == image
        boxes, kinds = outputs["boxes"][mine], outputs["kind"][mine]
        for shape in shapes:
            found += any(kind == shape.kind and iou(box, shape.box) >= least for box, kind in zip(boxes, kinds))
    return found, sum(map(len, drawn)), len(outputs["boxes"])


def build() -> Graph:
    """Build the graph: picture [batch, 3, height, width] -> boxes [n, 4], scores [n], kind [n] and image [n]."""
    layers = Layers(NAME)
    builder = layers.builder
    picture = builder.input("picture", "float32", ["batch", 3, "height", "width"])
    x = _conv(layers, _conv(layers, picture, "stem", 2), "fine.0", 2)
    fine = _conv(layers, x, "fine.1")
    middle = _conv(layers, _conv(layers, fine, "middle.0", 2), "middle.1")
    coarse = _conv(layers, _conv(layers, middle, "coarse.0", 2), "coarse.1")
    middle = _conv(layers, builder.add("Concat", [_doubled(layers, coarse), middle], {"axis": 1}), "middle_neck")
    fine = _conv(layers, builder.add("Concat", [_doubled(layers, middle), fine], {"axis": 1}), "fine_neck")
    x = _conv(layers, fine, "head")
    scores = layers.apply(layers.conv(x, "kind"), "Sigmoid")
    scores = builder.add("Reshape", [scores, builder.ints(0, 0, -1)])
    boxes = _boxes(layers, layers.conv(x, "sides"))
    _keep_best(layers, boxes, scores)
    return layers.build()


def _conv(layers: Layers, x: Value, name: str, stride: int = 1) -> Value:
    y = layers.conv(x, f"{name}.conv", stride=stride, batch_norm=f"{name}.norm")
    return layers.apply(y, "LeakyRelu", alpha=_SLOPE)


def _doubled(layers: Layers, x: Value) -> Value:
    scales = layers.builder.constant([1, 1, 2, 2], dtype="float32")
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return layers.builder.add("Resize", [x, None, scales], modes)


def _boxes(layers: Layers, sides: Value) -> Value:
    """Add the decoding of boxes: log distances up, left, down, right [batch, 4, h, w] -> boxes [batch, h w, 4]."""
    builder = layers.builder
    limited = builder.add("Min", [sides, builder.constant(LARGEST_DISTANCE, dtype="float32")])
    pixels = builder.add("Mul", [layers.apply(limited, "Exp"), builder.constant(STRIDE, dtype="float32")])
    distances = builder.add("Reshape", [pixels, builder.ints(0, 0, -1)])
    distances = layers.apply(distances, "Transpose", perm=(0, 2, 1))
    before, after = builder.add_node("Split", [distances], {"axis": 2, "num_outputs": 2}, outputs=2)
    centres = _centres(layers, sides)
    corners = [builder.add("Sub", [centres, before]), builder.add("Add", [centres, after])]
    return builder.add("Concat", corners, {"axis": 2})


def _centres(layers: Layers, cells: Value) -> Value:
    """Add the centres (y, x) of a map's cells in pixels: [h w, 2]."""
    builder = layers.builder
    size = builder.add("Shape", [cells], {"start": 2})
    zero, one = (builder.constant(i, dtype="int64") for i in (0, 1))
    half, stride = (builder.constant(c, dtype="float32") for c in (0.5, STRIDE))
    columns = []
    for axis in range(2):
        count = builder.add("Gather", [size, builder.constant(axis, dtype="int64")])
        index = layers.apply(builder.add("Range", [zero, count, one]), "Cast", to=DType.FLOAT32)
        position = builder.add("Mul", [builder.add("Add", [index, half]), stride])
        plane = builder.add("Expand", [builder.add("Unsqueeze", [position, builder.ints(1 - axis)]), size])
        columns.append(builder.add("Reshape", [plane, builder.ints(-1, 1)]))
    return builder.add("Concat", columns, {"axis": 1})


def _keep_best(layers: Layers, boxes: Value, scores: Value) -> None:
    """Add the outputs: non-maximum suppression of boxes [batch, n, 4] with scores [batch, kinds, n]."""
    builder = layers.builder
    limits = [
        builder.constant([_MAX_BOXES], dtype="int64"),
        builder.constant([_IOU_THRESHOLD], dtype="float32"),
        builder.constant([_SCORE_THRESHOLD], dtype="float32"),
    ]
    kept = builder.add("NonMaxSuppression", [boxes, scores, *limits])
    image_and_box = builder.add("Gather", [kept, builder.ints(0, 2)], {"axis": 1})
    builder.output(builder.add("GatherND", [boxes, image_and_box]), "boxes")
    builder.output(builder.add("GatherND", [scores, kept]), "scores")
    for column, name in ((1, "kind"), (0, "image")):
        index = builder.constant(column, dtype="int64")
        builder.output(builder.add("Gather", [kept, index], {"axis": 1}), name)


def _drawn(seed: int) -> tuple[Array, list[list[DrawnShape]]]:
    return render(2 + seed % 3, 64 + 16 * (seed % 2), 64 + 16 * (seed % 3), np.random.default_rng([7, seed]))


def _examples(seed: int) -> dict[str, Array]:
    return {"picture": _drawn(seed)[0]}


def _task_error(seed: int, outputs: Mapping[str, Array]) -> str | None:
    found, drawn, given = matches(_drawn(seed)[1], outputs)
    if found >= _RECALL * drawn and found >= _PRECISION * given:
        return None
    return (
        f"{found} of {drawn} shapes are found with {given} boxes, at least {_RECALL:.0%} of the shapes must be, "
        f"and {_PRECISION:.0%} of the boxes must be right"
    )


SHAPE_DETECTOR = Network(
    NAME,
    "one-stage detector of coloured shapes: joined scales, boxes decoded and suppressed in the graph",
    build,
    _examples,
    _task_error,
)
