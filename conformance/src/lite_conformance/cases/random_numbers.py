"""The distributions of random operators: mean, spread and range, and what a seed and its absence mean.

Seeds make runs repeatable, but backends may draw other numbers than the references do. The limits are six times the
standard error of each statistic, which a correct backend exceeds once in 500 million cases, or in 40 million where a
probability is near 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.outcome import Failure, Outcome
from lite_core.builder import GraphBuilder
from lite_core.ir import DType

__all__ = ["cases"]

_SHAPE = (150, 500)
_SEED = 7.0
_ERRORS = 6
_WEIGHTS = np.array([0.1, 0.2, 0.7])
#: Added to logarithms of probabilities: float16 has no halves there, and its exponential is infinite.
_LARGE = 1000
#: Of the first columns and of the others; bfloat16 has no number between the second one and 1.
_PROBABILITIES = np.array([0.3, 511 / 512])
_COLUMNS_OF_FIRST = 250


def cases() -> Iterator[Case]:
    """Yield the cases, named ``random[RandomNormal,seed]`` and ``random[RandomNormal,no-seed]``."""
    for op in _CHECKS:
        for label, seed in (("seed", _SEED), ("no-seed", None)):
            run = partial(_run, op=op, seed=seed)
            yield Case(f"random[{op},{label}]", 2, "random numbers", run, op, DType.FLOAT32.value)


def _run(context: Context, op: str, seed: float | None) -> Outcome:
    first, second, _ = (_drawn(context, op, seed) for _ in range(3))
    _CHECKS[op](first.astype(np.float64))
    if np.array_equal(first[0], first[1]):
        raise Failure("two rows of a result have the same random numbers")
    if np.array_equal(first, second) is not (seed is not None):
        text = "two runs with one seed must return the same" if seed is not None else "two runs returned the same"
        raise Failure(f"{text} random numbers")
    if seed is not None and np.array_equal(first, _drawn(context, op, seed + 1)):
        raise Failure("another seed returned the same random numbers")
    return Outcome(examples=3)


def _drawn(context: Context, op: str, seed: float | None) -> Array:
    """Compile the operator and run it once."""
    builder = GraphBuilder("random")
    attributes = {**_ATTRIBUTES[op], **({} if seed is None else {"seed": seed})}
    arrays = [_INPUTS[op]] if op in _INPUTS else []
    inputs = [builder.input("x", array.dtype, array.shape) for array in arrays]
    builder.output(builder.add(op, inputs, attributes, output="y"))
    (result,) = context.subject.compile(builder.build()).run(arrays)
    return result


_ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "RandomNormal": {"shape": _SHAPE, "mean": 1.5, "scale": 3.0},
    "RandomNormalLike": {"mean": 1.5, "scale": 3.0},
    "RandomUniform": {"shape": _SHAPE, "low": -2.0, "high": 6.0},
    "RandomUniformLike": {"low": -2.0, "high": 6.0},
    "Bernoulli": {},
    "Multinomial": {"sample_size": _SHAPE[1]},
}
_INPUTS = {
    "RandomNormalLike": np.zeros(_SHAPE, np.float32),
    "RandomUniformLike": np.zeros(_SHAPE, np.float32),
    "Bernoulli": np.repeat(_PROBABILITIES, _COLUMNS_OF_FIRST)[None].repeat(_SHAPE[0], 0).astype(np.float32),
    "Multinomial": np.tile(np.log(_WEIGHTS) + _LARGE, (_SHAPE[0], 1)).astype(np.float32),
}


def _check_normal(x: Array) -> None:
    _require_mean(x, 1.5, 3.0)
    _require_mean((x - 1.5) ** 2, 9.0, 9.0 * 2**0.5)
    _require_mean((x > 1.5 + 3.0).astype(float), 0.158655, (0.158655 * 0.841345) ** 0.5)


def _check_uniform(x: Array) -> None:
    if x.min() < -2 or x.max() > 6:
        raise Failure(f"random numbers from -2 to 6 reach from {x.min():.6g} to {x.max():.6g}")
    _require_mean(x, 2.0, 8 / 12**0.5)
    _require_mean((x < 0).astype(float), 0.25, (0.25 * 0.75) ** 0.5)


def _check_bernoulli(x: Array) -> None:
    if not np.isin(x, (0, 1)).all():
        raise Failure(f"results must be 0 or 1, and there are {np.unique(x)[:5].tolist()}")
    for columns, p in zip((x[:, :_COLUMNS_OF_FIRST], x[:, _COLUMNS_OF_FIRST:]), _PROBABILITIES):
        _require_mean(columns, p, (p * (1 - p)) ** 0.5)


def _check_multinomial(x: Array) -> None:
    for index, share in enumerate(_WEIGHTS):
        _require_mean((x == index).astype(float), share, (share * (1 - share)) ** 0.5)


_CHECKS = {
    "RandomNormal": _check_normal,
    "RandomNormalLike": _check_normal,
    "RandomUniform": _check_uniform,
    "RandomUniformLike": _check_uniform,
    "Bernoulli": _check_bernoulli,
    "Multinomial": _check_multinomial,
}


def _require_mean(x: Array, expected: float, deviation: float) -> None:
    """Require the mean of independent numbers with a standard deviation."""
    limit = _ERRORS * deviation / x.size**0.5
    if not abs(x.mean() - expected) <= limit:
        raise Failure(f"a mean of {x.size} random numbers must be {expected:.6g} +- {limit:.2g}, is {x.mean():.6g}")
