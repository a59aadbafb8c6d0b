"""Fourier transforms, complex numbers and frames of signals, against Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hand_made import program_of, run
from paddle_cases import Case, check, fixed_and_open, parametrize_cases

from lite_core.errors import LiteError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.source import SourceOp, SourceValue

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 3, 12)).astype(np.float32)
Y = RNG.standard_normal((2, 3, 12)).astype(np.float32)
SIGNAL = RNG.standard_normal((2, 50)).astype(np.float32)
FRAMES = RNG.standard_normal((2, 8, 5)).astype(np.float32)
PIR = ("pir",)


def as_real(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return real and imaginary parts of what a function of (paddle, tensors) gives."""
    return lambda p: lambda *tensors: p.as_real(build(p)(*tensors))


def transform(name: str, **options: Any) -> Callable[[Any], Any]:
    return as_real(lambda p: lambda x: getattr(p.fft, name)(x, **options))


def of_complex(build: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a function of two real tensors, of the complex number that they make."""
    return lambda p: lambda x, y: build(p, p.complex(x, y))


CASES = [
    Case("rfft", transform("rfft"), [X], kinds=PIR),
    Case("rfft_odd", transform("rfft", axis=1), [X], kinds=PIR),
    Case("rfft_cut", transform("rfft", n=7), [X], kinds=PIR),
    Case("rfft_padded", transform("rfft", n=16, norm="ortho"), [X], kinds=PIR),
    Case("rfft_by_n", transform("rfft", norm="forward"), [X], kinds=PIR),
    Case("rfft2", transform("rfft2"), [X], kinds=PIR),
    Case("fft_of_real", transform("fft", axis=0), [X], kinds=PIR),
    Case("ihfft", transform("ihfft"), [X], kinds=PIR),
    Case("fft", of_complex(lambda p, z: p.as_real(p.fft.fft(z))), [X, Y], kinds=PIR),
    Case("ifft", of_complex(lambda p, z: p.as_real(p.fft.ifft(z, axis=1))), [X, Y], kinds=PIR),
    Case("ifft_ortho", of_complex(lambda p, z: p.as_real(p.fft.ifft(z, norm="ortho"))), [X, Y], kinds=PIR),
    Case("fft2", of_complex(lambda p, z: p.as_real(p.fft.fft2(z, norm="forward"))), [X, Y], kinds=PIR),
    Case("irfft", of_complex(lambda p, z: p.fft.irfft(z)), [X, Y], kinds=PIR),
    Case("irfft_odd", of_complex(lambda p, z: p.fft.irfft(z, n=9, axis=1)), [X, Y], kinds=PIR),
    Case("irfft2", of_complex(lambda p, z: p.fft.irfft2(z)), [X, Y], kinds=PIR),
    Case("hfft", of_complex(lambda p, z: p.fft.hfft(z)), [X, Y], kinds=PIR),
    Case("parts", of_complex(lambda p, z: (p.real(z), p.imag(z), p.abs(z), p.angle(z), p.as_real(p.conj(z)))), [X, Y]),
    *fixed_and_open("angle_of_real", lambda p: lambda x: p.angle(x), X),
    Case("as_complex", lambda p: lambda x: p.abs(p.as_complex(x)), [X[..., :2].copy()]),
    Case("broadcast", lambda p: lambda x, y: p.as_real(p.complex(x, y)), [X, Y[:1, :, :1].copy()]),
    Case("products", of_complex(lambda p, z: (
        p.as_real(z * p.conj(z)), p.as_real(z / (z + 2.0)), p.as_real(z - z * 3.0))), [X, Y]),
    Case("with_real", lambda p: lambda x, y: p.as_real(p.complex(x, y) * x + x), [X, Y], kinds=PIR),
    Case("moves", of_complex(lambda p, z: (
        p.as_real(p.transpose(z, [2, 0, 1])), p.as_real(p.reshape(z, [-1, 4])), p.as_real(z.unsqueeze([-1])[1]),
        p.as_real(p.concat([z, z], axis=-1)), p.as_real(p.stack([z, z], axis=1)),
        p.as_real(z.unsqueeze(0).squeeze(0)))), [X, Y]),
    *fixed_and_open("frame", lambda p: lambda x: p.signal.frame(x, 8, 3), SIGNAL),
    *fixed_and_open("frame_first", lambda p: lambda x: p.signal.frame(x, 8, 3, axis=0), SIGNAL.T.copy()),
    Case("overlap_add", lambda p: lambda x: p.signal.overlap_add(x, 3), [FRAMES]),
    Case("overlap_add_first", lambda p: lambda x: p.signal.overlap_add(x, 3, axis=0), [FRAMES.T.copy()]),
    Case("overlap_add_vector", lambda p: lambda x: p.signal.overlap_add(x, 8), [FRAMES[0]]),
    Case("stft", lambda p: lambda x: p.abs(p.signal.stft(x, 16)), [SIGNAL]),
    Case("stft_steps", as_real(lambda p: lambda x: p.signal.stft(x, 16, hop_length=5, center=False, normalized=True)),
         [SIGNAL]),
    Case("istft", lambda p: lambda x: p.signal.istft(p.signal.stft(x, 16), 16), [SIGNAL]),
]  # fmt: skip


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Any) -> None:
    check(case, paddle_models(kind), kind)


def test_complex_outputs_are_refused() -> None:
    attrs = {"axes": [-1], "normalization": "backward", "forward": True, "onesided": True}
    with pytest.raises(LiteError, match=r"(?s)complex numbers, and is an output.*as_real\(\)"):
        run("fft_r2c", {"X": X}, attrs)


def test_legacy_attributes() -> None:
    """Paddle 3 can no longer export transforms as legacy files, whose attributes are the same."""
    attrs = {"axes": [1], "normalization": "ortho", "forward": True, "onesided": True}
    program, feeds = program_of("fft_r2c", {"X": X}, attrs)
    program.block.ops.append(
        SourceOp("as_real", {"X": [program.outputs[0][1]]}, {"Out": [SourceValue("pairs")]}, {}),
    )
    program.outputs[:] = [("pairs", program.block.ops[-1].outputs["Out"][0])]
    (pairs,) = evaluate_graph(lower(program), feeds)
    expected = np.fft.rfft(X, axis=1, norm="ortho")
    np.testing.assert_allclose(pairs, np.stack([expected.real, expected.imag], -1), rtol=1e-5, atol=1e-6)


def test_operators_of_real_numbers_name_complex_ones() -> None:
    program, _ = program_of("as_complex", {"X": X[..., :2]})
    value = program.outputs[0][1]
    program.block.ops.append(SourceOp("relu", {"X": [value]}, {"Out": [SourceValue("result")]}, {}))
    program.outputs[:] = [("result", program.block.ops[-1].outputs["Out"][0])]
    with pytest.raises(LiteError, match=r"(?s)relu.*reads complex numbers.*for real numbers only"):
        lower(program)
