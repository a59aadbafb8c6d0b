"""A residual network that doubles the size of colour images (after ESPCN, Shi et al., 2016, and EDSR, 2017)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_conformance.cases.networks import drawing
from lite_conformance.cases.networks.layers import Layers
from lite_conformance.cases.networks.network import Network
from lite_core.ir import Graph, Value

__all__ = ["BLOCKS", "CHANNELS", "GROUPS", "UPSCALER", "bilinear", "psnr", "render", "shrink"]

Array = np.ndarray[Any, Any]

NAME = "upscaler"
CHANNELS, GROUPS = 32, 4
#: The normalisation of each residual block; most have none, because normalisation costs accuracy.
BLOCKS = ("", "InstanceNormalization", "", "GroupNormalization", "")

_LEAST_GAIN = 4.0  # decibels over bilinear interpolation


def render(count: int, height: int, width: int, generator: np.random.Generator) -> Array:
    """Render pictures of overlapping shapes and glyphs on a smooth background: [count, 3, height, width]."""
    pictures = np.zeros((count, 3, height, width))
    glyphs = drawing.bitmaps()
    y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None, :]
    for picture in pictures:
        slope = generator.uniform(-0.3, 0.3, (3, 2, 1, 1))
        picture[...] = generator.uniform(0.2, 0.8, (3, 1, 1)) + slope[:, 0] * y + slope[:, 1] * x
        for _ in range(int(generator.integers(3, 7))):
            centre = generator.uniform(0, height), generator.uniform(0, width)
            if generator.uniform() < 0.5:
                radius = generator.uniform(4, 16)
                mask = drawing.shape_mask(int(generator.integers(3)), centre, radius, height, width)
            else:
                mask = _glyph_mask(glyphs[generator.integers(len(glyphs))], centre, height, width, generator)
            colour: Array = generator.uniform(0, 1, (3, 1, 1))
            picture[...] += mask * (colour - picture)
    return np.clip(pictures, 0, 1).astype(np.float32)


def _glyph_mask(
    glyph: Array, centre: tuple[float, float], height: int, width: int, generator: np.random.Generator
) -> Array:
    angle, pitch = generator.uniform(-0.6, 0.6), generator.uniform(3.0, 6.0)
    y = (np.arange(height)[:, None] + 0.5 - centre[0]) / pitch
    x = (np.arange(width)[None, :] + 0.5 - centre[1]) / pitch
    rows = np.cos(angle) * y + np.sin(angle) * x + (drawing.GLYPH_HEIGHT - 1) / 2
    columns = np.cos(angle) * x - np.sin(angle) * y + (drawing.GLYPH_WIDTH - 1) / 2
    ink = drawing.sample_bitmaps(glyph[None], rows[None], columns[None])[0]
    mask: Array = np.clip((ink - 0.5) * pitch + 0.5, 0, 1)
    return mask


def shrink(pictures: Array) -> Array:
    """Halve the height and width of pictures; each pixel is the mean of four."""
    count, channels, height, width = pictures.shape
    small: Array = pictures.reshape(count, channels, height // 2, 2, width // 2, 2).mean(axis=(3, 5))
    return small.astype(np.float32)


def bilinear(pictures: Array) -> Array:
    """Double the height and width of pictures by bilinear interpolation between pixel centres."""
    for axis in (2, 3):
        padded = np.concatenate([pictures.take([0], axis), pictures, pictures.take([-1], axis)], axis)
        size = pictures.shape[axis]
        before, here, after = (padded.take(range(i, i + size), axis) for i in range(3))
        pair = np.stack([0.25 * before + 0.75 * here, 0.75 * here + 0.25 * after], axis + 1)
        pictures = pair.reshape(*pictures.shape[:axis], 2 * size, *pictures.shape[axis + 1 :])
    return pictures


def psnr(found: Array, wanted: Array) -> float:
    """Return the peak signal-to-noise ratio in decibels, for pixels from 0 to 1."""
    error = float(np.mean(np.square(found.astype(np.float64) - wanted)))
    return -10 * math.log10(max(error, 1e-12))


def build() -> Graph:
    """Build the graph: small [batch, 3, height, width] -> large [batch, 3, 2 height, 2 width]."""
    layers = Layers(NAME)
    builder = layers.builder
    small = builder.input("small", "float32", ["batch", 3, "height", "width"])
    x = features = _prelu(layers, layers.conv(small, "stem"), "stem_prelu")
    for number, norm in enumerate(BLOCKS):
        x = builder.add("Add", [x, _block(layers, x, f"blocks.{number}", norm)])
    x = layers.conv(builder.add("Add", [x, features]), "expand")
    details = layers.apply(x, "DepthToSpace", blocksize=2, mode="CRD")
    enlarged = layers.conv(small, "enlarge", stride=2, group=3, transposed=True)
    limits = [builder.constant(c, dtype="float32") for c in (0.0, 1.0)]
    builder.output(builder.add("Clip", [builder.add("Add", [enlarged, details]), *limits]), "large")
    return layers.build()


def _block(layers: Layers, x: Value, name: str, norm: str) -> Value:
    x = layers.conv(x, f"{name}.first")
    if norm:
        weights = [layers.constant(f"{name}.norm.{n}") for n in ("weight", "bias")]
        groups = {"num_groups": GROUPS} if norm == "GroupNormalization" else {}
        x = layers.builder.add(norm, [x, *weights], {"epsilon": 1e-5, **groups})
    return layers.conv(_prelu(layers, x, f"{name}.prelu"), f"{name}.second")


def _prelu(layers: Layers, x: Value, name: str) -> Value:
    slope = layers.weight(f"{name}.weight").reshape(-1, 1, 1)
    return layers.builder.add("PRelu", [x, layers.builder.constant(slope, f"{name}.slope")])


def _drawn(seed: int) -> Array:
    return render(2, 48 + 16 * (seed % 2), 64 - 8 * (seed % 3), np.random.default_rng([9, seed]))


def _examples(seed: int) -> dict[str, Array]:
    return {"small": shrink(_drawn(seed))}


def _task_error(seed: int, outputs: Mapping[str, Array]) -> str | None:
    wanted = _drawn(seed)
    simple, found = (psnr(p, wanted) for p in (bilinear(shrink(wanted)), outputs["large"]))
    if found >= simple + _LEAST_GAIN:
        return None
    return (
        f"the enlarged pictures have a PSNR of {found:.1f} dB, bilinear interpolation {simple:.1f} dB; "
        f"the network must be better by {_LEAST_GAIN} dB"
    )


UPSCALER = Network(
    NAME,
    "residual network (instance and group normalisation, PReLU, pixel shuffle) that doubles the size of images",
    build,
    _examples,
    _task_error,
)
