"""Drawing with NumPy only: a bitmap font, rotated and scaled glyphs, filled shapes, noise.

Pixels are float32 from 0 to 1. All random numbers come from a generator that the caller seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ALPHABET", "GLYPH_HEIGHT", "GLYPH_WIDTH", "SHAPES", "add_noise", "bitmaps", "sample_bitmaps", "shape_mask"]

Array = np.ndarray[Any, Any]

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
GLYPH_HEIGHT, GLYPH_WIDTH = 7, 5

#: The names of the shapes that :func:`shape_mask` draws, by their number.
SHAPES = ("circle", "square", "triangle")

# Seven rows of five cells for each glyph, from the top.
_FONT = {
    "0": ".###. #...# #..## #.#.# ##..# #...# .###.",
    "1": "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.",
    "2": ".###. #...# ....# ..##. .#... #.... #####",
    "3": "####. ....# ....# .###. ....# ....# ####.",
    "4": "...#. ..##. .#.#. #..#. ##### ...#. ...#.",
    "5": "##### #.... ####. ....# ....# #...# .###.",
    "6": "..##. .#... #.... ####. #...# #...# .###.",
    "7": "##### ....# ...#. ..#.. ..#.. .#... .#...",
    "8": ".###. #...# #...# .###. #...# #...# .###.",
    "9": ".###. #...# #...# .#### ....# ...#. .##..",
    "A": "..#.. .#.#. #...# #...# ##### #...# #...#",
    "B": "####. #...# #...# ####. #...# #...# ####.",
    "C": ".#### #.... #.... #.... #.... #.... .####",
    "D": "###.. #..#. #...# #...# #...# #..#. ###..",
    "E": "##### #.... #.... ####. #.... #.... #####",
    "F": "##### #.... #.... ####. #.... #.... #....",
    "G": ".#### #.... #.... #.### #...# #...# .####",
    "H": "#...# #...# #...# ##### #...# #...# #...#",
    "I": "##### ..#.. ..#.. ..#.. ..#.. ..#.. #####",
    "J": "..### ...#. ...#. ...#. ...#. #..#. .##..",
    "K": "#...# #..#. #.#.. ##... #.#.. #..#. #...#",
    "L": "#.... #.... #.... #.... #.... #.... #####",
    "M": "#...# ##.## #.#.# #.#.# #...# #...# #...#",
    "N": "#...# ##..# ##..# #.#.# #..## #..## #...#",
    "O": ".###. #...# #...# #...# #...# #...# .###.",
    "P": "####. #...# #...# ####. #.... #.... #....",
    "Q": ".###. #...# #...# #...# #.#.# #..#. .##.#",
    "R": "####. #...# #...# ####. #.#.. #..#. #...#",
    "S": ".#### #.... #.... .###. ....# ....# ####.",
    "T": "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..",
    "U": "#...# #...# #...# #...# #...# #...# .###.",
    "V": "#...# #...# #...# #...# .#.#. .#.#. ..#..",
    "W": "#...# #...# #...# #.#.# #.#.# ##.## #...#",
    "X": "#...# #...# .#.#. ..#.. .#.#. #...# #...#",
    "Y": "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#..",
    "Z": "##### ....# ...#. ..#.. .#... #.... #####",
}


def bitmaps() -> Array:
    """Return the glyphs of :data:`ALPHABET`, 1 where there is ink: [36, 7, 5]."""
    rows = [[[cell == "#" for cell in row] for row in _FONT[letter].split()] for letter in ALPHABET]
    return np.array(rows, dtype=np.float32)


def sample_bitmaps(images: Array, y: Array, x: Array) -> Array:
    """Sample images bilinearly; the images are 0 outside their borders.

    Args:
        images: [N, H, W].
        y: rows of the samples, [N, h, w], in cells; the centre of the first cell is at 0.
        x: columns of the samples, in the same form.

    Returns:
        The samples, [N, h, w].
    """
    # Padded by one empty cell before and two behind, so that clipped samples have two empty neighbours.
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2)))
    height, width = images.shape[1:]
    y, x = np.clip(y + 1, 0, height + 1), np.clip(x + 1, 0, width + 1)
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    down, right = y - top, x - left
    number = np.arange(len(images))[:, None, None]
    above = padded[number, top, left] * (1 - right) + padded[number, top, left + 1] * right
    below = padded[number, top + 1, left] * (1 - right) + padded[number, top + 1, left + 1] * right
    samples: Array = above * (1 - down) + below * down
    return samples


def shape_mask(kind: int, centre: tuple[float, float], radius: float, height: int, width: int) -> Array:
    """Return the share of each pixel that a shape covers: [height, width].

    Args:
        kind: the number of the shape in :data:`SHAPES`.
        centre: row and column of its bounding box's centre, in pixels; the first pixel reaches from 0 to 1.
        radius: half the side of the bounding box.
        height: of the image.
        width: of the image.
    """
    y = np.arange(height)[:, None] + 0.5 - centre[0]
    x = np.arange(width)[None, :] + 0.5 - centre[1]
    if SHAPES[kind] == "circle":
        distance = np.hypot(y, x) - radius
    elif SHAPES[kind] == "square":
        distance = np.maximum(np.abs(y), np.abs(x)) - radius
    else:
        # The slanted sides run from the middle of the top edge to the lower corners.
        slanted = (2 * np.abs(x) - (y + radius)) / np.sqrt(5)
        distance = np.maximum(slanted, np.abs(y) - radius)
    mask: Array = np.clip(0.5 - distance, 0, 1)
    return mask


def add_noise(images: Array, deviation: Array | float, generator: np.random.Generator) -> Array:
    """Add normal noise to images, clip them to 0 to 1, and return them as float32."""
    noisy = images + deviation * generator.standard_normal(images.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)
