"""The operator ImageDecoder. Pillow reads the files, so it is an operator of this plugin, not of the core."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import Shape, fresh_dim
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import choice, define

__all__ = ["DOMAIN", "IMAGE_DECODER"]

Array = np.ndarray[Any, Any]

#: The domain of this plugin's operators.
DOMAIN = "lite_onnx"
_CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}


def _infer(inference: Inference) -> list[Shape]:
    shape = inference.shape(0)
    if shape is not None and len(shape) != 1:
        raise fail(f"the encoded image must be a vector of bytes, has {len(shape)} dimensions")
    return [(fresh_dim("height"), fresh_dim("width"), _CHANNELS[inference.attributes["pixel_format"]])]


def image_decoder(encoded_stream: Array, *, pixel_format: str) -> Array:
    """The pixels [height, width, channels] of an image file, such as JPEG or PNG, that the input holds as bytes.

    Lossy formats leave decoders some freedom: other libraries may return pixels that differ by a few steps.
    """
    try:
        from PIL import Image, UnidentifiedImageError  # optional: few models decode images
    except ImportError:
        raise ExecutionError(
            'decoding images needs the package Pillow, which is not installed: pip install "lite-onnx[images]"'
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)  # a short file can hold any size
            with Image.open(io.BytesIO(encoded_stream.tobytes())) as image:
                pixels = np.asarray(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    except UnidentifiedImageError:  # its message has the address of an object
        beginning = encoded_stream[:8].tobytes()
        raise ExecutionError(
            f"the {encoded_stream.size} bytes, which begin with {beginning!r}, are in no image format that Pillow reads"
        ) from None
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise ExecutionError(f"Pillow cannot read the image of {encoded_stream.size} bytes: {error}") from None
    except Image.DecompressionBombWarning as error:
        raise ExecutionError(f"the image is too large for Pillow's limit: {error}") from None
    if pixel_format == "Grayscale":
        return pixels[:, :, np.newaxis]
    return pixels[:, :, ::-1] if pixel_format == "BGR" else pixels


IMAGE_DECODER = define(
    image_decoder,
    "ImageDecoder",
    "encoded_stream: uint8 -> image: uint8",
    domain=DOMAIN,
    attributes={"pixel_format": choice("RGB", "BGR", "Grayscale")},
    infer=_infer,
)
