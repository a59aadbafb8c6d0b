"""The plugin's hook implementations. The format is imported when Lite asks for the list of formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    from lite_core.ops import OpDef
    from lite_onnx.format import OnnxFormat
    from lite_onnx.passes import DecoderFusion

LITE_API_VERSION = 1


@hookimpl
def lite_formats() -> list[OnnxFormat]:
    from lite_onnx.format import OnnxFormat

    return [OnnxFormat()]


@hookimpl
def lite_ops() -> list[OpDef]:
    from lite_onnx.image_decoder import IMAGE_DECODER

    return [IMAGE_DECODER]


@hookimpl
def lite_passes() -> list[DecoderFusion]:
    from lite_onnx.passes import DecoderFusion

    return [DecoderFusion()]
