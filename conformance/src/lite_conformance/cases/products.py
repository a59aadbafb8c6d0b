"""Cases that tell rounding from bugs in products of few bits: sums of 1 to 65,536 terms, signs, scales of channels.

They are part of the suite only under a precision level other than float32. A sum of terms of one sign makes an error
of one sign visible: truncated operands, a wrong zero point, sums in the low type, sums that saturate.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Context, Example, Settings
from lite_conformance.cases.op_cases import OpCase, table_of
from lite_conformance.cases.op_runner import example_of, run_op_case
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.tensors import Array, Initializer, Tensor, const, normal, t, uniform
from lite_conformance.judge.outcome import Outcome
from lite_core.ir import DType

__all__ = ["cases"]

_LENGTHS = (1, 2, 3, 8, 32, 128, 512, 1024, 4096, 16384, 65536)
_SIGNS: dict[str, Initializer] = {"positive": uniform(0.5, 2), "negative": uniform(-2, -0.5), "mixed": normal}


def cases(settings: Settings) -> Iterator[Case]:
    """Yield the cases; none in float32."""
    if settings.precision == "float32":
        return
    all_tables()
    for case in _op_cases():
        run, examples = partial(_run, case=case), partial(_examples, case=case)
        name = f"precision[{case.op},{case.label}]"
        yield Case(name, 2, "precision", run, case.op, DType.FLOAT32.value, examples=examples)


def _run(context: Context, case: OpCase) -> Outcome:
    return run_op_case(context.subject, case, DType.FLOAT32, context.allowance, context.settings.seed)


def _examples(settings: Settings, case: OpCase) -> Iterator[Example]:
    yield example_of(case, DType.FLOAT32, settings.seed)


def _op_cases() -> Iterator[OpCase]:
    for length in _LENGTHS:
        for sign, init in _SIGNS.items():
            yield _case(
                "MatMul", f"k{length},{sign}", t(9, length, init=init), const(length, 7, init=_SIGNS["positive"])
            )
    yield _case("MatMul", "k1024,all-at-run-time", t(9, 1024, init=uniform(0.5, 2)), t(1024, 7, init=uniform(0.5, 2)))
    yield _case("MatMul", "k512,scales-of-channels", t(9, 512), const(512, 33, init=_channels(-1)))
    yield _case("MatMul", "k512,near-the-largest", t(9, 512, init=uniform(1.9, 2)), const(512, 7, init=uniform(1.9, 2)))
    yield _case("MatMul", "k256,far-from-zero", t(9, 256, init=uniform(100, 101)), const(256, 7))
    yield _case("Gemm", "k1024,trans-b,factors", t(9, 1024, init=uniform(0.5, 2)), const(7, 1024, init=uniform(0.5, 2)),
                const(7), transB=1, alpha=0.25, beta=-3.0)  # fmt: skip
    yield _case("Gemm", "k256,trans-b,scales-of-channels", t(9, 256), const(33, 256, init=_channels(0)), const(33),
                transB=1)  # fmt: skip
    yield _case("Conv", "c1024,k1", t(1, 1024, 5, 5, init=uniform(0.5, 2)), const(7, 1024, 1, 1, init=uniform(0.5, 2)))
    yield _case("Conv", "c256,k3,padded", t(1, 256, 6, 7, init=uniform(0.5, 2)),
                const(5, 256, 3, 3, init=uniform(0.5, 2)), const(5), pads=(1, 1, 1, 1))  # fmt: skip
    yield _case("Conv", "c32,k3,scales-of-channels", t(1, 32, 6, 7), const(33, 32, 3, 3, init=_channels(0)), const(33))
    yield _case("Conv", "c16,k7,depthwise", t(1, 16, 12, 13, init=uniform(0.5, 2)),
                const(16, 1, 7, 7, init=uniform(0.5, 2)), group=16)  # fmt: skip
    yield _case("ConvTranspose", "c256,k3", t(1, 256, 5, 5, init=uniform(0.5, 2)),
                const(256, 5, 3, 3, init=uniform(0.5, 2)), strides=(2, 2))  # fmt: skip
    yield _case("Einsum", "k1024", t(3, 5, 1024, init=uniform(0.5, 2)), t(3, 6, 1024, init=uniform(0.5, 2)),
                equation="bik,bjk->bij")  # fmt: skip


def _case(op: str, label: str, *inputs: Tensor, **attributes: Any) -> OpCase:
    return table_of(op).case(*inputs, label=label, **attributes)


def _channels(axis: int) -> Initializer:
    """Return an initializer whose numbers differ in size by up to 1,000 between the positions of an axis."""

    def channels(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        sizes = 10.0 ** random.uniform(-1.5, 1.5, shape[axis])
        wide = sizes.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])
        return (random.standard_normal(shape) * wide).astype(dtype.numpy)

    return channels
