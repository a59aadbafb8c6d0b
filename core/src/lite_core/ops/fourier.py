"""DFT: the discrete Fourier transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.dtypes import FLOATS, INDICES
from lite_core.ops.inference import Inference, fail, normalize_axis
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]


def _infer_dft(inference: Inference) -> list[Shape | None]:
    x, attributes = inference.shape(0), inference.attributes
    if attributes["inverse"] and attributes["onesided"]:
        raise fail("an inverse transform cannot be one-sided")
    if x is None:
        return [None]
    if len(x) < 2 or x[-1] not in (1, 2):
        raise fail(f"the last axis of the input {format_shape(x)} must have 1 element, or 2 of complex numbers")
    if attributes["onesided"] and x[-1] == 2:
        raise fail("a one-sided transform needs real numbers, the input has complex ones")
    length, axis = inference.dims(1) if inference.has(1) else None, (-2,)
    if inference.has(2):
        known = inference.ints(2)
        if known is None:
            return [(*(fresh_dim() for _ in x[:-1]), 2)]
        axis = (known[0],)
    along = normalize_axis(axis[0], len(x))
    if along == len(x) - 1:
        raise fail("the axis must not be the last one, which has the parts of the numbers")
    size: Dim = x[along]
    if inference.has(1):
        size = fresh_dim("frequencies") if length is None else length[0]
    if isinstance(size, int) and size < 1:
        raise fail(f"the transform has {size} elements, expected at least 1")
    if attributes["onesided"]:
        size = size // 2 + 1 if isinstance(size, int) else fresh_dim("frequencies")
    return [(*x[:along], size, *x[along + 1 : -1], 2)]


@op(
    "DFT",
    "input: T, dft_length: T2?, axis: int64? -> output: T",
    types={"T": FLOATS, "T2": INDICES},
    attributes={"inverse": 0, "onesided": 0},
    infer=_infer_dft,
    numbers=("dft_length", "axis"),
)
def dft(x: Array, length: Array | None, axis: Array | None, *, inverse: int, onesided: int) -> Array:
    """``X[k] = sum over n of x[n] exp(-2 pi i n k / N)`` along ``axis``, the one before the last if it is left out.

    The last axis has the real and the imaginary part, or the real part alone. The input is cut or padded with zeros to
    ``dft_length`` elements N. With ``inverse`` the exponent is positive, and the sum is divided by N. With ``onesided``
    only the N // 2 + 1 frequencies that determine the others are returned.
    """
    along = -2 if axis is None else int(axis.reshape(-1)[0])
    along = along % x.ndim
    n = x.shape[along] if length is None else int(length.reshape(-1)[0])
    wide = x.astype(np.float64)
    if onesided:
        spectrum = np.fft.rfft(wide[..., 0], n, along)
    else:
        numbers = wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]
        spectrum = (np.fft.ifft if inverse else np.fft.fft)(numbers, n, along)
    return np.stack([spectrum.real, spectrum.imag], axis=-1).astype(x.dtype)
