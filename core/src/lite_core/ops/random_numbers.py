"""Random operators. A seed makes the values the same in every run; without one they differ from run to run.

ONNX defines the distributions, not the generator: these are NumPy's PCG64, so other runtimes draw other values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, TensorType
from lite_core.ops.dtypes import ALL, FLOATS, INDICES
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, optional, required
from lite_core.ops.shape_checks import check_rank

Array = np.ndarray[Any, Any]


def _generator(seed: float | None) -> np.random.Generator:
    """Return a generator; the same one for equal seeds, which are numbers of float32 in ONNX."""
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))


# **** normal and uniform numbers ****


def _infer_of_shape(inference: Inference) -> list[TensorType]:
    shape, dtype = inference.attributes["shape"], inference.attributes["dtype"]
    if any(size < 0 for size in shape):
        raise fail(f"the shape {list(shape)} has a negative size")
    return [TensorType(_float_type(dtype), shape)]


def _infer_like(inference: Inference) -> list[TensorType]:
    return [TensorType(_float_type(inference.attributes["dtype"] or inference.dtype(0)), inference.shape(0))]


def _float_type(dtype: DType) -> DType:
    if dtype not in FLOATS:
        raise fail(f"random numbers are of a floating type, not {dtype}; the attribute dtype chooses it")
    return dtype


def _declare(name: str, attributes: dict[str, float], draw: Callable[..., Array]) -> None:
    """Declare the operator ``name`` with the attribute ``shape``, and ``nameLike`` with the shape of its input."""

    def of_shape(*, shape: tuple[int, ...], dtype: DType, seed: float | None, **numbers: float) -> Array:
        return draw(_generator(seed), shape, **numbers)

    def like(x: Array, *, dtype: DType | None, seed: float | None, **numbers: float) -> Array:
        return draw(_generator(seed), x.shape, **numbers)

    of_shape.__doc__ = draw.__doc__
    like.__doc__ = f"{draw.__doc__} The shape is that of the input, and so is the type unless ``dtype`` is given."
    op(
        name,
        "-> output: T",
        types={"T": FLOATS},
        attributes={"shape": required("ints"), "dtype": DType.FLOAT32, "seed": optional("float"), **attributes},
        infer=_infer_of_shape,
    )(of_shape)
    op(
        f"{name}Like",
        "input: T1 -> output: T2",
        types={"T1": ALL, "T2": FLOATS},
        attributes={"dtype": optional("dtype"), "seed": optional("float"), **attributes},
        infer=_infer_like,
    )(like)


def _normal(generator: np.random.Generator, shape: tuple[int, ...], *, mean: float, scale: float) -> Array:
    """Random numbers of a normal distribution with the given mean and standard deviation (``scale``)."""
    return generator.normal(mean, scale, shape)


def _uniform(generator: np.random.Generator, shape: tuple[int, ...], *, low: float, high: float) -> Array:
    """Random numbers distributed evenly from ``low`` to ``high``."""
    return generator.uniform(low, high, shape)


_declare("RandomNormal", {"mean": 0.0, "scale": 1.0}, _normal)
_declare("RandomUniform", {"low": 0.0, "high": 1.0}, _uniform)


# **** drawing by probabilities ****


@op(
    "Bernoulli",
    "input: T1 -> output: T2",
    types={"T1": FLOATS, "T2": ALL},
    attributes={"dtype": optional("dtype"), "seed": optional("float")},
    infer=lambda inference: [TensorType(inference.attributes["dtype"] or inference.dtype(0), inference.shape(0))],
)
def bernoulli(x: Array, *, dtype: DType | None, seed: float | None) -> Array:
    """1 with the probability that each element states, else 0."""
    return np.asarray(_generator(seed).random(x.shape) < x)


def _infer_multinomial(inference: Inference) -> list[TensorType]:
    shape, count = inference.shape(0), inference.attributes["sample_size"]
    check_rank(shape, 2, "the input")
    dtype = inference.attributes["dtype"]
    if count < 1 or dtype not in INDICES:
        raise fail(f"sample_size must be at least 1 and dtype int32 or int64; they are {count} and {dtype}")
    rows: Shape | None = None if shape is None else (shape[0], count)
    return [TensorType(dtype, rows)]


@op(
    "Multinomial",
    "input: T1 -> output: T2",
    types={"T1": FLOATS, "T2": INDICES},
    attributes={"dtype": DType.INT32, "sample_size": 1, "seed": optional("float")},
    infer=_infer_multinomial,
)
def multinomial(x: Array, *, dtype: DType, sample_size: int, seed: float | None) -> Array:
    """Classes drawn ``sample_size`` times for each row of logarithms of probabilities, which need not sum to 1."""
    if not x.shape[1]:
        raise fail("the input has no classes to draw")
    weights = np.exp(x - x.max(axis=1, keepdims=True)).astype(np.float64)
    bounds = np.cumsum(weights, axis=1)
    draws = _generator(seed).random((x.shape[0], sample_size)) * bounds[:, -1:]
    rows = [np.searchsorted(row[:-1], drawn, side="right") for row, drawn in zip(bounds, draws)]
    return np.array(rows, np.int64).reshape(x.shape[0], sample_size)
