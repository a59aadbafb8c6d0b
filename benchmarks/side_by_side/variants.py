"""Variants of the models: larger batches, and larger images or longer lines."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from side_by_side import models
from side_by_side.models import Inputs, Model

__all__ = ["SEPARATOR", "variants"]

#: Between a model's name and its variant: ``resnet50,batch=4``, ``pp_ocrv4_det,large``.
SEPARATOR = ","

#: The sizes of the large variant: of Paddle's models by rows and columns, of ONNX models by the names of their sizes.
#: The classifiers are exported for one size of pictures.
_LARGE_PADDLE = MappingProxyType({"pp_ocrv4_det": (1280, 1280), "pp_ocrv4_rec": (48, 1280)})
_LARGE_ONNX: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "onnx_rapidocr_det": {"height": 1280, "width": 1280},
        "onnx_rapidocr_rec": {"width": 1280},
        "onnx_ppocr_v2_rec": {"width": 1280},
        "onnx_ppocr_v3_det": {"height": 1280, "width": 1280},
        "onnx_ddddocr": {"width": 640},
        "onnx_ddddocr_int8": {"width": 640},
        "onnx_nudenet": {"height": 640, "width": 640},
    }
)


def variants(model: Model, batches: Sequence[int], large: bool) -> list[Model]:
    """Return a model at each batch size it can have, and in addition on large images if it has a larger size.

    The smallest batch is the model as it is. A model that has no batch, such as one of a stream, has only this variant.
    """
    found = [own for batch in batches if (own := _with_batch(model, batch)) is not None]
    return [*found, *([_large(model)] if large and (model.name in _LARGE_PADDLE or model.name in _LARGE_ONNX) else [])]


def _with_batch(model: Model, batch: int) -> Model | None:
    if batch == 1:
        return model
    name, title = f"{model.name}{SEPARATOR}batch={batch}", f"{model.title}, batch {batch}"
    if model.name not in models.GROUPS["onnx"]:
        return replace(model, name=name, title=title, inputs=lambda: _repeat(model.inputs(), batch))
    inputs = model.inputs
    if isinstance(inputs, partial) and "batch" in inspect.signature(inputs.func).parameters:
        return replace(model, name=name, title=title, inputs=partial(inputs, batch=batch))
    return None


def _large(model: Model) -> Model:
    name, title = f"{model.name}{SEPARATOR}large", f"{model.title}, large"
    if model.name in _LARGE_ONNX:
        inputs = model.inputs
        assert isinstance(inputs, partial)
        return replace(model, name=name, title=title, inputs=partial(inputs.func, **_LARGE_ONNX[model.name]))
    return replace(model, name=name, title=title, inputs=lambda: _tile(model.inputs(), *_LARGE_PADDLE[model.name]))


def _repeat(inputs: Inputs, batch: int) -> dict[str, Any]:
    """Return a batch of pictures: the first one, shifted by some columns in each copy."""
    return {
        name: np.concatenate([np.roll(array, 7 * copy, axis=-1) for copy in range(batch)])
        for name, array in inputs.items()
    }


def _tile(inputs: Inputs, rows: int, columns: int) -> dict[str, Any]:
    """Return pictures of this size, filled with copies of the given ones."""
    tiled = {}
    for name, array in inputs.items():
        height, width = array.shape[2:]
        copies = np.tile(array, (1, 1, -(-rows // height), -(-columns // width)))
        tiled[name] = np.ascontiguousarray(copies[:, :, :rows, :columns])
    return tiled
