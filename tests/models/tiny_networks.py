"""Networks small enough to commit, with the layers of real vision, OCR and text models. Needs Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from export_vision import picture_like
from paddle import nn
from paddle.nn import functional

Specification = Callable[[], list[Any]]


def legacy_program() -> bool:
    """Return True if a legacy program is being recorded.

    NOTE: Paddle 3.3 can no longer add gelu, sigmoid, tanh and matmul to one, but models are full of them; so they
    are recorded here explicitly.
    """
    return not (paddle.in_dynamic_mode() or paddle.framework.in_pir_mode())


def record(kind: str, inputs: dict[str, Any], **attributes: Any) -> Any:
    """Append the operator ``kind`` to the legacy program that is being recorded; return its output."""
    helper = paddle.base.layer_helper.LayerHelper(kind)
    out = helper.create_variable_for_type_inference(inputs["X"].dtype)
    helper.append_op(type=kind, inputs=inputs, outputs={"Out": out}, attrs=attributes)
    return out


def gelu(x: Any) -> Any:
    """Return the Gaussian error linear unit of ``x``, in its exact form."""
    return record("gelu", {"X": x}, approximate=False) if legacy_program() else functional.gelu(x)


def sigmoid(x: Any) -> Any:
    """Return the logistic function of ``x``."""
    return record("sigmoid", {"X": x}) if legacy_program() else functional.sigmoid(x)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent of ``x``."""
    return record("tanh", {"X": x}) if legacy_program() else paddle.tanh(x)


def matmul(x: Any, y: Any, transpose_y: bool = False) -> Any:
    """Return the matrix product of ``x`` and ``y``."""
    if legacy_program():
        return record("matmul_v2", {"X": x, "Y": y}, trans_x=False, trans_y=transpose_y)
    return paddle.matmul(x, y, transpose_y=transpose_y)


class TinyConv(nn.Layer):  # type: ignore[misc]
    """A mobile classifier: strided and depthwise convolutions, squeeze-and-excitation, pooling."""

    def __init__(self) -> None:
        super().__init__()
        stem = nn.Conv2D(3, 8, 3, 2, 1, bias_attr=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2D(8), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2D(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2D(8), nn.ReLU6())
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2D(1), nn.Conv2D(8, 4, 1), nn.ReLU(), nn.Conv2D(4, 8, 1), nn.Hardsigmoid()
        )
        self.point = nn.Sequential(nn.Conv2D(8, 12, 1), nn.BatchNorm2D(12), nn.Swish())
        self.pool = nn.MaxPool2D(3, 2, 1, ceil_mode=True)
        self.average = nn.AvgPool2D(3, 2, 1, ceil_mode=True)
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(24 * 4 * 4, 10))

    def forward(self, x: Any) -> Any:
        """Map pictures [N, 3, 32, 32] to probabilities [N, 10]."""
        x = self.stem(x)
        mixed = self.depthwise(x)
        x = self.point(x + mixed * self.squeeze(mixed))
        x = paddle.concat([self.pool(x), self.average(x)], axis=1)
        x = functional.adaptive_avg_pool2d(x, 4)
        return functional.softmax(self.classify(x))


class TinyDetector(nn.Layer):  # type: ignore[misc]
    """A text detector: a pyramid that is resized and summed, transposed convolutions, a sigmoid map."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.LayerList(
            [nn.Sequential(nn.Conv2D(a, 6, 3, 2, 1), nn.BatchNorm2D(6), nn.LeakyReLU(0.1)) for a in (3, 6, 6)]
        )
        self.lateral = nn.LayerList([nn.Conv2D(6, 6, 1) for _ in range(3)])
        self.up = nn.Sequential(
            nn.Conv2DTranspose(12, 6, 2, 2), nn.BatchNorm2D(6), nn.ReLU(), nn.Conv2DTranspose(6, 1, 2, 2)
        )

    def forward(self, x: Any) -> Any:
        """Map pictures [N, 3, H, W], H and W multiples of 8, to a map [N, 1, 2H, 2W]."""
        levels = []
        for down in self.down:
            x = down(x)
            levels.append(x)
        top = self.lateral[2](levels[2])
        middle = self.lateral[1](levels[1]) + functional.interpolate(top, scale_factor=2, mode="nearest")
        bottom = functional.interpolate(middle, scale_factor=2, mode="bilinear", align_corners=False)
        merged = paddle.concat([self.lateral[0](levels[0]) + bottom, gelu(levels[0])], axis=1)
        return sigmoid(self.up(merged))


class TinyTransformer(nn.Layer):  # type: ignore[misc]
    """A text encoder: embeddings, masked attention, layer normalisation, GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(30, 16), nn.Embedding(12, 16)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.joint, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)
        self.classify = nn.Linear(16, 5)

    def forward(self, tokens: Any) -> Any:
        """Map tokens, int64 [N, T] with 0 for padding, to logits [N, 5] and states [N, T, 16]."""
        length = paddle.shape(tokens)[1]
        x = self.words(tokens) + self.positions(paddle.arange(length))
        mask = paddle.cast(tokens == 0, "float32").unsqueeze([1, 2]) * -1e4
        q, k, v = self.joint(self.first(x)).reshape([0, 0, 3, 4, 4]).transpose([2, 0, 3, 1, 4]).unbind(0)
        weights = functional.softmax(matmul(q * 0.5, k, transpose_y=True) + mask)
        x = x + self.out(matmul(weights, v).transpose([0, 2, 1, 3]).flatten(2))
        x = x + self.narrow(gelu(self.wide(self.second(x))))
        return tanh(self.classify(x[:, 0])), x


class TinyRecurrent(nn.Layer):  # type: ignore[misc]
    """A line recogniser: a convolution, a bidirectional LSTM of two layers, a GRU, class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = nn.Conv2D(1, 6, (8, 3), 1, (0, 1))
        self.lstm = nn.LSTM(6, 5, 2, direction="bidirect")
        self.gru = nn.GRU(10, 6)
        self.classify = nn.Linear(6, 9)
        for layer in (self.lstm, self.gru):
            # NOTE: Paddle 3.3 fails to store this state in a legacy program unless it has a value.
            layer._dropout_state = paddle.zeros([1], "uint8")

    def forward(self, x: Any) -> Any:
        """Map lines [N, 1, 8, W] to class probabilities [N, W, 9]."""
        x = self.columns(x).squeeze(2).transpose([0, 2, 1])
        x, _ = self.lstm(x)
        x, _ = self.gru(x)
        return functional.softmax(self.classify(x), axis=-1)


def networks() -> dict[str, tuple[Callable[[], Any], dict[str, np.ndarray], Specification]]:
    """Return for each network its constructor, its example inputs, and their description for Paddle."""
    spec = paddle.static.InputSpec
    tokens = np.array([[3, 17, 29, 4, 0, 0, 0], [8, 1, 1, 12, 25, 9, 2]], np.int64)
    return {
        "tiny_conv": (
            TinyConv,
            {"x": picture_like(2, 32, 3)},
            lambda: [spec([None, 3, 32, 32], "float32", "x")],
        ),
        "tiny_conv_detector": (
            TinyDetector,
            {"x": np.ascontiguousarray(picture_like(1, 40, 4)[:, :, :24])},
            lambda: [spec([None, 3, None, None], "float32", "x")],
        ),
        "tiny_transformer": (
            TinyTransformer,
            {"tokens": tokens},
            lambda: [spec([None, None], "int64", "tokens")],
        ),
        "tiny_recurrent": (
            TinyRecurrent,
            {"x": np.ascontiguousarray(picture_like(2, 20, 5)[:, :1, :8])},
            lambda: [spec([None, 1, 8, None], "float32", "x")],
        ),
    }
