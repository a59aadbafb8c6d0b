"""Interpolation, sampling and channel shuffles against Paddle and against formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


X = array(2, 3, 5, 7)
OPEN = [(None, 3, None, None)]
LAST = X.transpose(0, 2, 3, 1).copy()
CUBE = array(1, 2, 3, 4, 5)
LINE = array(2, 3, 7)


def to(**options: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x: p.nn.functional.interpolate(x, **options)


def _modes() -> list[Case]:
    cases = []
    for mode in ("nearest", "bilinear", "bicubic"):
        for corners in (False, True):
            if mode == "nearest" and corners:
                continue  # refused by Paddle
            for number, size_options in enumerate(
                ({"size": [9, 4]}, {"scale_factor": 2.0}, {"scale_factor": [1.7, 0.6]}, {"size": [1, 1]})
            ):
                for suffix, shapes in (("", None), ("_open", OPEN)):
                    options = {"mode": mode, "align_corners": corners, **size_options}
                    name = f"{mode}{'_corners' if corners else ''}_{number}{suffix}"
                    cases.append(Case(name, to(**options), [X], shapes=shapes, rtol=1e-3, atol=1e-4))
    return cases


def to_tensor_size(mode: str) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        return lambda x, size: p.nn.functional.interpolate(x, size=size, mode=mode)

    return build


def to_computed_size(p: Any) -> Any:
    """Resize to the size of another tensor, as feature pyramids do."""
    return lambda x, y: p.nn.functional.interpolate(x, size=p.shape(y)[2:4], mode="nearest")


def to_list_of_tensors(p: Any) -> Any:
    return lambda x, h, w: p.nn.functional.interpolate(x, size=[h, w], mode="bilinear")


SIZE = np.array([8, 3], np.int32)

CASES = [
    *_modes(),
    Case("align_mode_1", to(size=[9, 4], mode="bilinear", align_mode=1), [X]),
    Case("align_mode_1_scale", to(scale_factor=1.5, mode="bilinear", align_mode=1), [X]),
    Case("channels_last", to(size=[9, 4], mode="bilinear", data_format="NHWC"), [LAST]),
    Case("linear", to(size=[12], mode="linear", data_format="NCW"), [LINE]),
    Case("linear_corners", to(size=[12], mode="linear", align_corners=True, data_format="NCW"), [LINE]),
    Case("trilinear", to(size=[4, 3, 9], mode="trilinear", data_format="NCDHW"), [CUBE]),
    Case("trilinear_scale", to(scale_factor=[2, 1.5, 0.5], mode="trilinear", data_format="NCDHW"), [CUBE]),
    Case("nearest_three_axes", to(size=[4, 3, 9], mode="nearest", data_format="NCDHW"), [CUBE]),
    Case("size_tensor", to_tensor_size("bilinear"), [X, SIZE], shapes=[(2, 3, 5, 7), (2,)]),
    Case("size_tensor_open", to_tensor_size("nearest"), [X, SIZE], shapes=[(None, 3, None, None), (2,)]),
    Case("size_of_another", to_computed_size, [X, array(2, 3, 8, 9)], shapes=[OPEN[0], OPEN[0]]),
    Case("size_list", to_list_of_tensors, [X, np.array([8], np.int32), np.array([3], np.int32)]),
    Case("upsample", lambda p: p.nn.Upsample(scale_factor=3, mode="nearest"), [X], shapes=OPEN),
    *(
        Case(
            f"grid_{mode}_{padding}{'_corners' if corners else ''}",
            lambda p, m=mode, pad=padding, c=corners: (
                lambda x, g: p.nn.functional.grid_sample(x, g, m, pad, align_corners=c)
            ),
            [X, RNG.uniform(-1.4, 1.4, (2, 4, 6, 2)).astype(np.float32)],
        )
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
        for corners in (True, False)
    ),
    Case(
        "affine_grid",
        lambda p: lambda t: p.nn.functional.affine_grid(t, [2, 3, 4, 5], align_corners=True),
        [array(2, 2, 3)],
    ),
    Case(
        "affine_grid_centres",
        lambda p: lambda t: p.nn.functional.affine_grid(t, [2, 3, 4, 5], align_corners=False),
        [array(2, 2, 3)],
    ),
    Case("pixel_shuffle", lambda p: p.nn.PixelShuffle(2), [array(2, 8, 3, 5)], shapes=[(None, 8, None, None)]),
    Case("pixel_shuffle_last", lambda p: p.nn.PixelShuffle(2, data_format="NHWC"), [array(2, 3, 5, 8)]),
    Case("pixel_unshuffle", lambda p: p.nn.PixelUnshuffle(2), [array(2, 3, 4, 6)]),
    Case("pixel_unshuffle_open", lambda p: p.nn.PixelUnshuffle(2), [array(2, 3, 4, 6)], shapes=[(None, 3, 4, 6)]),
    Case("pixel_unshuffle_last", lambda p: p.nn.PixelUnshuffle(2, data_format="NHWC"), [array(2, 4, 6, 3)]),
    Case("channel_shuffle", lambda p: p.nn.ChannelShuffle(3), [array(2, 6, 3, 5)], shapes=[(None, 6, None, None)]),
    Case("channel_shuffle_last", lambda p: p.nn.ChannelShuffle(3, data_format="NHWC"), [array(2, 3, 5, 6)]),
    Case("temporal_shift", lambda p: lambda x: p.nn.functional.temporal_shift(x, 3, 0.2), [array(6, 10, 2, 3)]),
    Case(
        "temporal_shift_open",
        lambda p: lambda x: p.nn.functional.temporal_shift(x, 3, 0.3),
        [array(6, 10, 2, 3)],
        shapes=[(None, 10, None, None)],
    ),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def interpolated(x: np.ndarray[Any, Any], size: int, coordinate: Callable[[int], float]) -> np.ndarray[Any, Any]:
    """Interpolate a vector linearly at ``coordinate(i)``, with the last element repeated."""
    coordinates = [coordinate(i) for i in range(size)]
    lower = [int(s) for s in coordinates]
    upper = [min(k + 1, len(x) - 1) for k in lower]
    return np.array([x[a] * (1 - s + a) + x[b] * (s - a) for s, a, b in zip(coordinates, lower, upper)])


def test_first_generation_uses_the_ratio_of_the_sizes() -> None:
    """Scale 1.7 of 5 elements gives 8: the ratio is 5 / 8 in the first generation, 1 / 1.7 in the second."""
    x = array(1, 1, 5, 1)
    attrs = {"scale": 1.7, "align_corners": False, "align_mode": 1}
    (y,) = run("bilinear_interp", {"X": x}, attrs, version=1_008_000)
    np.testing.assert_allclose(y[0, 0, :, 0], interpolated(x.ravel(), 8, lambda i: i * 5 / 8), rtol=1e-5)
    (z,) = run("bilinear_interp", {"X": x}, attrs, version=1_008_000, shapes={"X": (1, 1, -1, -1)})
    np.testing.assert_array_equal(y, z)
    (y,) = run("bilinear_interp_v2", {"X": x}, {**attrs, "scale": [1.7, 1.0]})
    np.testing.assert_allclose(y[0, 0, :, 0], interpolated(x.ravel(), 8, lambda i: i / 1.7), rtol=1e-5)


def test_defaults_of_paddle_1_align_the_corners() -> None:
    x = array(1, 1, 5, 1)
    (y,) = run("bilinear_interp", {"X": x}, {"out_h": 9, "out_w": 1}, version=1_006_000)
    np.testing.assert_allclose(y[0, 0, :, 0], interpolated(x.ravel(), 9, lambda i: i * 4 / 8), rtol=1e-5)
    (y,) = run("nearest_interp", {"X": x}, {"out_h": 9, "out_w": 1}, version=1_006_000)
    np.testing.assert_array_equal(y[0, 0, :, 0], x.ravel()[[int(i * 0.5 + 0.5) for i in range(9)]])


def test_precedence_of_size_and_scale() -> None:
    attrs = {"out_h": 3, "out_w": 3, "scale": [2.0], "align_corners": True}
    assert run("bilinear_interp_v2", {"X": X}, attrs)[0].shape == (2, 3, 10, 14)
    assert run("bilinear_interp_v2", {"X": X, "OutSize": SIZE}, attrs, parameters=["OutSize"])[0].shape == (2, 3, 8, 3)
    assert run("bilinear_interp", {"X": X, "OutSize": SIZE}, {"scale": 2.0})[0].shape == (2, 3, 8, 3)


def test_a_scale_tensor() -> None:
    scale = np.array([2.0], np.float32)
    expected = X.repeat(2, 2).repeat(2, 3)
    attrs = {"align_corners": False}
    for options in ({}, {"parameters": ["Scale"]}):
        (y,) = run("nearest_interp_v2", {"X": X, "Scale": scale}, attrs, **options)
        np.testing.assert_array_equal(y, expected)
    (y,) = run("nearest_interp", {"X": X, "Scale": scale}, attrs)
    np.testing.assert_array_equal(y, expected)


def test_contradicting_size_and_scale_are_refused() -> None:
    attrs = {"scale": [2.0], "align_corners": False}
    with pytest.raises(UnsupportedOperatorError, match="both a scale and a size"):
        run("bilinear_interp_v2", {"X": X, "OutSize": SIZE}, attrs, parameters=["OutSize"])


def test_missing_size_and_scale_are_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="neither a scale nor sizes"):
        run("bilinear_interp_v2", {"X": X}, {"align_corners": False})


def test_doubling_is_one_node() -> None:
    graph = graph_of(
        "nearest_interp_v2", {"X": X}, {"scale": [2.0], "align_corners": False}, shapes={"X": (-1, 3, -1, -1)}
    )
    assert [n.op for n in graph.nodes] == ["Resize"]


def test_shuffle_channel_of_paddle_1() -> None:
    x = array(2, 6, 2, 2)
    (y,) = run("shuffle_channel", {"X": x}, {"group": 2}, version=1_008_000)
    np.testing.assert_array_equal(y, x.reshape(2, 2, 3, 2, 2).swapaxes(1, 2).reshape(x.shape))


def test_space_to_depth_has_darknets_order() -> None:
    """Compute element by element like the kernel of Paddle 1.x, with the index arithmetic of Darknet's reorg layer."""
    n, c, h, w, b = 2, 8, 4, 6, 2
    x = np.arange(n * c * h * w, dtype=np.float32).reshape(n, c, h, w)
    flat = np.zeros(x.size, np.float32)
    small = c // (b * b)
    for index, value in enumerate(x.ravel()):
        sample, rest = divmod(index, c * h * w)
        channel, rest = divmod(rest, h * w)
        row, column = divmod(rest, w)
        offset, target = divmod(channel, small)
        coordinate = (row * b + offset // b) * w * b + column * b + offset % b
        flat[(sample * small + target) * h * b * w * b + coordinate] = value
    (y,) = run("space_to_depth", {"X": x}, {"blocksize": b}, version=1_006_000)
    np.testing.assert_array_equal(y, flat.reshape(n, c * b * b, h // b, w // b))
