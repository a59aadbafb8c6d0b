"""Operators of the domain com.microsoft on float16, as in models for GPUs, compared with their float32 results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, numbers

_CASES: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "FastGelu": ([(2, 3, 8), (8,)], {}),
    "QuickGelu": ([(2, 3, 8)], {}),
    "FusedMatMul": ([(2, 3, 8), (2, 4, 8)], {"transB": 1, "alpha": 0.5}),
    "SkipLayerNormalization": ([(2, 3, 16), (2, 3, 16), (16,), (16,), (16,)], {"epsilon": 1e-5}),
    "SkipSimplifiedLayerNormalization": ([(2, 3, 16), (2, 3, 16), (16,)], {"epsilon": 1e-5}),
    "Attention": ([(2, 3, 16), (16, 48), (48,)], {"num_heads": 2, "unidirectional": 1}),
    "MultiHeadAttention": ([(2, 3, 16), (2, 5, 16), (2, 5, 16), (48,)], {"num_heads": 2}),
}


@pytest.mark.parametrize("op", _CASES)
def test_float16(tmp_path: Path, op: str) -> None:
    models = RuntimeModels(tmp_path)
    shapes, attributes = _CASES[op]
    inputs = [numbers(*shape, seed=i, scale=0.5) for i, shape in enumerate(shapes)]
    found = models.compare(op, inputs, **attributes)
    expected = {name: array.astype(np.float16) for name, array in found.items()}
    models.compare(op, [a.astype(np.float16) for a in inputs], expected=expected, tolerance=1e-2, **attributes)
