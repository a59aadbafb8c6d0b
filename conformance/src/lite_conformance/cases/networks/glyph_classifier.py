"""A MobileNetV3-like classifier of single glyphs, 0 to 9 and A to Z, on 32 x 32 grey images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_conformance.cases.networks import drawing
from lite_conformance.cases.networks.layers import Layers
from lite_conformance.cases.networks.network import Network
from lite_core.ir import Graph, Value

__all__ = ["BLOCKS", "GLYPH_CLASSIFIER", "render"]

Array = np.ndarray[Any, Any]

NAME = "glyph_classifier"
SIZE = 32
#: The inverted residual blocks: input channels, expanded channels, output channels, kernel, stride.
BLOCKS = ((16, 32, 24, 3, 2), (24, 64, 24, 3, 1), (24, 72, 40, 5, 2), (40, 120, 40, 5, 1))


def render(count: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Render glyphs that are rotated, slanted, scaled, moved and noisy, dark on light or light on dark.

    Returns:
        Images [count, 1, 32, 32] and the numbers of their glyphs [count].
    """
    labels = generator.integers(0, len(drawing.ALPHABET), count)

    def drawn(low: float, high: float) -> Array:
        return generator.uniform(low, high, (count, 1, 1))

    angle, slant = drawn(-0.3, 0.3), drawn(-0.2, 0.2)
    pitch_y, pitch_x = drawn(2.6, 3.8), drawn(2.8, 4.2)  # pixels for each cell of the font
    y = (np.arange(SIZE)[None, :, None] - (SIZE - 1) / 2) - drawn(-3, 3)
    x = (np.arange(SIZE)[None, None, :] - (SIZE - 1) / 2) - drawn(-3, 3)
    turned_y = (np.cos(angle) * y + np.sin(angle) * x) / pitch_y
    turned_x = (np.cos(angle) * x - np.sin(angle) * y) / pitch_x + slant * turned_y
    ink = drawing.sample_bitmaps(
        drawing.bitmaps()[labels],
        turned_y + (drawing.GLYPH_HEIGHT - 1) / 2,
        turned_x + (drawing.GLYPH_WIDTH - 1) / 2,
    )
    ink = np.clip((ink - drawn(0.3, 0.5)) * 4 + 0.5, 0, 1)
    background, contrast = drawn(0.0, 0.3), drawn(0.4, 0.7)
    images = background + contrast * ink
    images = np.where(drawn(0, 1) < 0.5, images, 1 - images)
    return drawing.add_noise(images, drawn(0.02, 0.1), generator)[:, None], labels


def build() -> Graph:
    """Build the graph: image [batch, 1, 32, 32] -> probabilities [batch, 36]."""
    layers = Layers(NAME)
    builder = layers.builder
    x = builder.input("image", "float32", ["batch", 1, SIZE, SIZE])
    x = layers.apply(layers.conv(x, "stem.conv", batch_norm="stem.norm"), "HardSwish")
    for number, (inputs, _, outputs, _, stride) in enumerate(BLOCKS):
        y = _block(layers, x, f"blocks.{number}", stride)
        x = builder.add("Add", [x, y]) if inputs == outputs and stride == 1 else y
    x = layers.apply(layers.conv(x, "head.conv", batch_norm="head.norm"), "HardSwish")
    x = layers.apply(layers.apply(x, "GlobalAveragePool"), "Flatten", axis=1)
    x = layers.apply(layers.gemm(x, "hidden"), "HardSwish")
    builder.output(layers.apply(layers.gemm(x, "classify"), "Softmax", axis=-1), "probabilities")
    return layers.build()


def _block(layers: Layers, x: Value, name: str, stride: int) -> Value:
    """Add an inverted residual block: expand, depthwise convolution, squeeze and excite, project."""
    x = layers.apply(layers.conv(x, f"{name}.expand", batch_norm=f"{name}.expand_norm"), "HardSwish")
    channels = len(layers.weight(f"{name}.depthwise.weight"))
    x = layers.conv(x, f"{name}.depthwise", stride=stride, group=channels, batch_norm=f"{name}.depthwise_norm")
    x = layers.apply(x, "HardSwish")
    gate = layers.apply(x, "GlobalAveragePool")
    gate = layers.apply(layers.conv(gate, f"{name}.squeeze"), "Relu")
    gate = layers.apply(layers.conv(gate, f"{name}.excite"), "HardSigmoid", alpha=1 / 6, beta=0.5)
    return layers.conv(layers.builder.add("Mul", [x, gate]), f"{name}.project", batch_norm=f"{name}.project_norm")


def _drawn(seed: int) -> tuple[Array, Array]:
    return render(4 + seed % 3, np.random.default_rng([1, seed]))


def _examples(seed: int) -> dict[str, Array]:
    return {"image": _drawn(seed)[0]}


def _task_error(seed: int, outputs: Mapping[str, Array]) -> str | None:
    labels = _drawn(seed)[1]
    found = outputs["probabilities"].argmax(axis=-1)
    right = int((found == labels).sum())
    # One wrong glyph is allowed in so few: the network's accuracy is about 99 %.
    if right >= len(labels) - 1:
        return None
    said, wanted = ("".join(drawing.ALPHABET[i] for i in numbers) for numbers in (found, labels))
    return f"{right} of {len(labels)} glyphs are right, at least {len(labels) - 1} must be: read {said}, drawn {wanted}"


GLYPH_CLASSIFIER = Network(
    NAME,
    "MobileNetV3-like convolutional network (depthwise, squeeze-and-excite, hard-swish) for rendered glyphs",
    build,
    _examples,
    _task_error,
)
