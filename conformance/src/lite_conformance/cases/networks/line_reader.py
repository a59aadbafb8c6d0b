"""A convolutional recurrent network that reads lines of text: CRNN with CTC (Shi et al., 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_conformance.cases.networks import drawing
from lite_conformance.cases.networks.layers import Layers
from lite_conformance.cases.networks.network import Network
from lite_core.ir import Graph, Value

__all__ = ["BLANK", "CHANNELS", "HEIGHT", "HIDDEN", "LINE_READER", "edit_distance", "greedy_decode", "render"]

Array = np.ndarray[Any, Any]

NAME = "line_reader"
HEIGHT = 16
#: Channels of the three convolutions, each followed by a pooling: 2 x 2, 2 x 2, 4 x 1 rows and columns.
CHANNELS = (16, 32, 48)
HIDDEN = 48
#: The blank class of CTC; letter i of the alphabet is class i + 1.
BLANK = 0

_SHORTEST, _LONGEST = 4, 8
_RIGHT_CHARACTERS = 0.9


def render(count: int, width: int, generator: np.random.Generator) -> tuple[Array, list[Array]]:
    """Render lines of random letters whose size, pitch, height and slant vary, on a noisy background.

    Args:
        count: number of images.
        width: width of the images in pixels; lines that do not fit get fewer letters.
        generator: generator of all random numbers.

    Returns:
        Images [count, 1, 16, width] and, for each line, the numbers of its letters.
    """
    glyphs = drawing.bitmaps()
    images = np.zeros((count, HEIGHT, width))
    lines = []
    for image in images:
        cell_y, cell_x = generator.uniform(1.5, 1.9), generator.uniform(1.4, 2.0)
        gap = generator.uniform(1.0, 2.2)
        pitch = cell_x * drawing.GLYPH_WIDTH + gap
        margin = generator.uniform(1.0, 5.0)
        longest = int((width - margin - 1) // pitch)
        length = min(int(generator.integers(_SHORTEST, _LONGEST + 1)), longest)
        letters = generator.integers(0, len(glyphs), length)
        text = np.concatenate([np.pad(glyphs[i], ((0, 0), (0, 1))) for i in letters], axis=1)
        # Columns of the text have equal widths in the image, except the empty ones, which have the width of the gap.
        column = np.arange(width) - margin
        letter, inside = np.divmod(column, pitch)
        ink_width = drawing.GLYPH_WIDTH * cell_x
        in_cells = np.where(inside < ink_width, inside / cell_x, drawing.GLYPH_WIDTH + (inside - ink_width) / gap)
        slant = generator.uniform(-0.15, 0.15)
        y = (np.arange(HEIGHT) - (HEIGHT - 1) / 2 - generator.uniform(-1, 1)) / cell_y
        x = (letter * (drawing.GLYPH_WIDTH + 1) + in_cells - 0.5)[None, :] + slant * y[:, None]
        rows = np.broadcast_to(y[:, None] + (drawing.GLYPH_HEIGHT - 1) / 2, x.shape)
        image[...] = drawing.sample_bitmaps(text[None], rows[None], x[None])[0]
        lines.append(letters)
    background = generator.uniform(0, 0.3, (count, 1, 1))
    contrast = generator.uniform(0.5, 0.7, (count, 1, 1))
    images = background + contrast * np.clip(1.3 * images, 0, 1)
    images = np.where(generator.uniform(size=(count, 1, 1)) < 0.5, images, 1 - images)
    return drawing.add_noise(images, generator.uniform(0.02, 0.08, (count, 1, 1)), generator)[:, None], lines


def greedy_decode(log_probabilities: Array) -> list[list[int]]:
    """Return the numbers of the letters of each line, from the most probable class of each step.

    Repeated classes count as one letter, and blanks separate letters.

    Args:
        log_probabilities: [steps, batch, classes].
    """
    lines = []
    for classes in log_probabilities.argmax(axis=-1).T:
        changes = np.concatenate([[True], classes[1:] != classes[:-1]])
        lines.append([int(c) - 1 for c in classes[changes] if c != BLANK])
    return lines


def edit_distance(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the number of insertions, deletions and replacements between two sequences (Levenshtein, 1966)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def build() -> Graph:
    """Build the graph: image [batch, 1, 16, width] -> log probabilities [width / 4, batch, 37]."""
    layers = Layers(NAME)
    builder = layers.builder
    x = builder.input("image", "float32", ["batch", 1, HEIGHT, "width"])
    for number, pool in enumerate(((2, 2), (2, 2), (4, 1))):
        x = layers.apply(layers.conv(x, f"convs.{number}", batch_norm=f"norms.{number}"), "Relu")
        x = layers.apply(x, "MaxPool", kernel_shape=pool, strides=pool)
    # [batch, channels, 1, steps] -> [steps, batch, channels]
    x = builder.add("Squeeze", [x, builder.ints(2)])
    x = layers.apply(x, "Transpose", perm=(2, 0, 1))
    x = _bidirectional_lstm(layers, x, "lstm")
    x = layers.linear(x, "classify")
    builder.output(layers.apply(x, "LogSoftmax", axis=-1), "log_probabilities")
    return layers.build()


def _bidirectional_lstm(layers: Layers, x: Value, name: str) -> Value:
    """Add a bidirectional LSTM: [steps, batch, inputs] -> [steps, batch, 2 * hidden]."""
    builder = layers.builder

    def stacked(kind: str) -> Array:
        return np.stack([_reordered(layers.weight(f"{name}.{kind}_l0{end}")) for end in ("", "_reverse")])

    weights = [builder.constant(stacked(kind), f"{name}.{kind}") for kind in ("weight_ih", "weight_hh")]
    bias = builder.constant(np.concatenate([stacked("bias_ih"), stacked("bias_hh")], axis=1), f"{name}.bias")
    whole = builder.add("LSTM", [x, *weights, bias], {"hidden_size": HIDDEN, "direction": "bidirectional"}, name=name)
    # [steps, directions, batch, hidden]
    whole = layers.apply(whole, "Transpose", perm=(0, 2, 1, 3))
    return builder.add("Reshape", [whole, builder.ints(0, 0, -1)])


def _reordered(gates: Array) -> Array:
    """Reorder gates from PyTorch's order (input, forget, cell, output) to ONNX's (input, output, forget, cell)."""
    i, f, g, o = np.split(gates, 4)
    return np.concatenate([i, o, f, g])


def _drawn(seed: int) -> tuple[Array, list[Array]]:
    return render(2 + seed % 3, 96 + 16 * (seed % 4), np.random.default_rng([3, seed]))


def _examples(seed: int) -> dict[str, Array]:
    return {"image": _drawn(seed)[0]}


def _task_error(seed: int, outputs: Mapping[str, Array]) -> str | None:
    lines = [[int(i) for i in line] for line in _drawn(seed)[1]]
    found = greedy_decode(outputs["log_probabilities"])
    total = sum(map(len, lines))
    wrong = sum(edit_distance(a, b) for a, b in zip(found, lines))
    if len(found) == len(lines) and wrong <= (1 - _RIGHT_CHARACTERS) * total:
        return None
    read, drawn = (" ".join("".join(drawing.ALPHABET[i] for i in line) for line in text) for text in (found, lines))
    return (
        f"{1 - wrong / total:.0%} of {total} characters are right, at least {_RIGHT_CHARACTERS:.0%} must be: "
        f"read {read}, drawn {drawn}"
    )


LINE_READER = Network(
    NAME,
    "CRNN: convolutions, a bidirectional LSTM and CTC that read rendered lines of any width",
    build,
    _examples,
    _task_error,
)
