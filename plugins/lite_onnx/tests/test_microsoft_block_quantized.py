"""MatMulNBits and GatherBlockQuantized of the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, node_model, numbers, quantized

from lite_core.errors import UnsupportedOperatorError

Array = np.ndarray[Any, Any]

_ROWS = 12


def _weights(depth: int, block: int, bits: int, *, zeros: str = "") -> list[Array | None]:
    """Return activations, packed weights, scales and zero points: none, packed integers, or floats."""
    blocks = -(-depth // block)
    scales = np.random.default_rng(1).uniform(0.01, 0.03, (_ROWS, blocks)).astype(np.float32)
    found: list[Array | None] = [numbers(2, 3, depth), quantized(_ROWS, blocks, block * bits // 8, seed=2), scales]
    if zeros == "packed":
        found.append(quantized(_ROWS, -(-blocks * bits // 8), seed=3))
    elif zeros:
        found.append(np.random.default_rng(4).uniform(0, 1 << bits, (_ROWS, blocks)).astype(np.float32))
    return found


@pytest.mark.parametrize("zeros", ["", "packed"])
@pytest.mark.parametrize(("depth", "block"), [(32, 16), (64, 32), (80, 32)])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_product(models: RuntimeModels, bits: int, depth: int, block: int, zeros: str) -> None:
    inputs = _weights(depth, block, bits, zeros=zeros)
    attributes = {"N": _ROWS, "K": depth, "bits": bits, "block_size": block, "constants": (1, 2, 3)}
    dims = {0: ("batch", "sequence", depth)}
    models.compare("MatMulNBits", inputs, dims=dims, **attributes)


@pytest.mark.parametrize("zeros", ["", "packed", "real"])
def test_product_with_flat_scales_and_a_bias(models: RuntimeModels, zeros: str) -> None:
    """Compare with scales and zero points in one row, ``accuracy_level``, and a bias."""
    inputs = _weights(64, 16, 4, zeros=zeros)
    if zeros != "real":
        inputs[2:] = [a.reshape(-1) for a in inputs[2:] if a is not None]
    inputs += [None] * (5 - len(inputs)) + [numbers(_ROWS, seed=5)]
    attributes = {"N": _ROWS, "K": 64, "bits": 4, "block_size": 16, "accuracy_level": 1}
    models.compare("MatMulNBits", inputs, constants=(1, 2, 3, 5), **attributes)


def test_product_with_reordered_columns(models: RuntimeModels) -> None:
    order = (np.random.default_rng(6).permutation(64) // 16).astype(np.int32)
    inputs = [*_weights(64, 16, 4, zeros="real"), order]
    attributes = {"N": _ROWS, "K": 64, "bits": 4, "block_size": 16}
    models.compare("MatMulNBits", inputs, constants=(1, 2, 3, 4), **attributes)


def test_product_in_float16(models: RuntimeModels) -> None:
    inputs = [a if a is None or a.dtype == np.uint8 else a.astype(np.float16) for a in _weights(64, 32, 4)]
    attributes = {"N": _ROWS, "K": 64, "bits": 4, "block_size": 32, "tolerance": 4e-3}
    models.compare("MatMulNBits", inputs, constants=(1, 2), **attributes)


def test_computed_weights_are_refused(models: RuntimeModels) -> None:
    attributes = {"N": _ROWS, "K": 64, "bits": 4, "block_size": 32}
    with pytest.raises(UnsupportedOperatorError, match="input B"):
        models.load(node_model("MatMulNBits", _weights(64, 32, 4), attributes, outputs=["output"]))


@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_gather_from_a_quantized_table(models: RuntimeModels, bits: int, with_zeros: bool) -> None:
    table, scales = quantized(20, 64 * bits // 8), np.abs(numbers(20, 4)) * 0.01
    zeros = [quantized(20, 4 * bits // 8, seed=3)] if with_zeros else []
    inputs = [table, np.array([[3, 19, 0]]), scales, *zeros]
    attributes = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1, "constants": (0, 2, 3)}
    models.compare("GatherBlockQuantized", inputs, dims={1: ("batch", "sequence")}, **attributes)
