"""Parameters of requests that ask for extensions of Triton's which Lite does not have."""

from __future__ import annotations

from collections.abc import Mapping

from lite_serve.protocol.errors import UnsupportedError
from lite_serve.protocol.messages import Parameter
from lite_serve.protocol.tensors import shortened

__all__ = ["check_repository_parameters", "check_tensor_parameters"]


def check_tensor_parameters(what: str, parameters: Mapping[str, Parameter]) -> None:
    """Check the parameters of an input or output.

    Raises:
        UnsupportedError: one of them asks for shared memory or classification.
    """
    for name in parameters:
        if name.startswith("shared_memory"):
            raise UnsupportedError(f"{what}: shared memory is not supported, send tensors in requests and answers")
    if parameters.get("classification"):
        raise UnsupportedError(f"{what}: classification is not supported, ask for the output and sort it")


def check_repository_parameters(parameters: Mapping[str, Parameter]) -> None:
    """Check the parameters of a request to load or unload a model.

    Raises:
        UnsupportedError: the request brings a configuration or files of its own.
    """
    for name in parameters:
        if name == "config" or name.startswith("file:"):
            raise UnsupportedError(
                f"the parameter {shortened(name)} is not supported: models and settings are those of the server"
            )
