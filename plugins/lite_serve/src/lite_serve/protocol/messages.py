"""Requests and answers, independent of how they travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Array", "InferRequest", "InferResponse", "ModelMetadata", "Parameter", "RequestedOutput", "TensorMetadata"]

Array = np.ndarray[Any, Any]
#: The value of a parameter of the protocol.
Parameter = bool | int | float | str


class RequestedOutput(NamedTuple):
    """An output that a request names.

    Attributes:
        name: the name of the output.
        binary: whether its content follows the JSON as bytes (the binary tensor data extension); by gRPC always true.
    """

    name: str
    binary: bool = False


@dataclass(slots=True)
class InferRequest:
    """A request to run a model.

    Attributes:
        model: the model's name.
        version: the model's version; empty for the one that the server chooses.
        id: identifies the request; empty if the client gave none.
        inputs: an array for each named input. Arrays may be read-only views of the request's bytes. Strings are arrays
            of ``str`` objects, as Lite's operators use them; bytes in them that are not UTF-8 are surrogates, as with
            ``errors="surrogateescape"``.
        outputs: the outputs to return; None for all.
        parameters: other parameters of the request.
        binary_outputs: whether outputs that are not named separately are returned as bytes.
    """

    model: str
    version: str = ""
    id: str = ""
    inputs: dict[str, Array] = field(default_factory=dict)
    outputs: tuple[RequestedOutput, ...] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    binary_outputs: bool = False


@dataclass(slots=True)
class InferResponse:
    """The answer to a request.

    Attributes:
        model: the model's name.
        version: the version that ran.
        id: that of the request.
        outputs: an array for each output, in the order of the request, else of the model.
        parameters: what the server says about the run.
    """

    model: str
    version: str
    id: str
    outputs: dict[str, Array]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


class TensorMetadata(NamedTuple):
    """An input or output of a model.

    Attributes:
        name: its name.
        datatype: its element type, as the protocol calls it: ``FP32``.
        shape: its dimensions; -1 for those that requests choose.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """Facts about a model.

    Attributes:
        name: its name.
        versions: the versions that answer requests, as text.
        platform: what the model is: ``lite_onnx``, ``lite_paddle``, ``lite_lite`` after its format.
        inputs: its inputs.
        outputs: its outputs.
        properties: other facts, such as how it is batched.
    """

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
