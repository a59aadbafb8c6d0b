"""Inputs and outputs of a model in the words of the protocol, and the checks of a request before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from lite_core import DType, InputError, Session, TensorType
from lite_core.ir import SymbolicDim
from lite_core.session.arguments import to_arrays
from lite_serve.protocol.element_types import datatype_of
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError
from lite_serve.protocol.messages import Array, InferRequest, TensorMetadata

__all__ = ["ModelSignature"]

_PlainInput = tuple[str, np.dtype[Any], tuple[int | str, ...]]
#: The largest product of the other dimensions of an array without elements.
_MOST_BESIDE_EMPTY = 1 << 24


class ModelSignature:
    """The inputs and outputs of a model in the protocol's words.

    Args:
        model: the model's name.
        session: its session.

    Raises:
        InputError: the protocol has no such element type.
    """

    def __init__(self, model: str, session: Session) -> None:
        self._model = model
        self._values = list(session.graph.inputs)
        self.inputs = tuple(_metadata("input", name, type.dtype, type.shape) for name, type in session.inputs.items())
        self.outputs = tuple(
            _metadata("output", name, type.dtype, type.shape) for name, type in session.outputs.items()
        )
        #: Name, element type and dimensions of each input: sizes, or names of symbols. None if some are not so simple.
        self._plain: list[_PlainInput] | None = []
        for name, type_ in session.inputs.items():
            dims = _plain_dims(type_)
            if self._plain is not None and dims is not None and type_.dtype is not DType.STRING:
                self._plain.append((name, type_.dtype.numpy, dims))
            else:
                self._plain = None
        self._datatypes = {tensor.name: tensor.datatype for tensor in self.inputs}
        self._outputs = [tensor.name for tensor in self.outputs]

    def checked_inputs(self, request: InferRequest) -> dict[str, Array]:
        """Return the arrays of a request in the order of the model's inputs.

        Raises:
            InvalidRequestError: an input is missing, unknown, of another type or shape; names all of them.
        """
        given = request.inputs
        if (ready := self._ready(given)) is not None:
            return ready
        problems = [
            f"input {name!r} must be {wanted}, is {datatype_of(given[name].dtype)}"
            for name, wanted in self._datatypes.items()
            if name in given and datatype_of(given[name].dtype) != wanted
        ]
        for name, array in given.items():
            # No bytes must be sent for such an array, but the model might make a larger one of it.
            if not array.size and prod([dim for dim in array.shape if dim]) > _MOST_BESIDE_EMPTY:
                problems.append(f"input {name!r} is empty, and its other dimensions are too large: {list(array.shape)}")
        if problems:
            raise InvalidRequestError(f"model {self._model!r} cannot run: {'; '.join(problems)}")
        try:
            return to_arrays(self._model, self._values, given, {})
        except InputError as error:
            raise InvalidRequestError(str(error)) from None

    def _ready(self, given: Mapping[str, Array]) -> dict[str, Array] | None:
        """Return the arrays in order if they fit as they are, or None if they must be looked at more closely."""
        if self._plain is None or len(given) != len(self._plain):
            return None
        ready: dict[str, Array] = {}
        sizes: dict[str, int] = {}
        for name, dtype, dims in self._plain:
            array = given.get(name)
            if array is None or array.dtype is not dtype or not array.size or array.ndim != len(dims):
                return None
            for size, dim in zip(array.shape, dims):
                if size != (sizes.setdefault(dim, size) if isinstance(dim, str) else dim):
                    return None
            if not array.flags.aligned:
                return None
            ready[name] = array
        return ready

    def wanted_outputs(self, request: InferRequest) -> list[str]:
        """Return the names of the outputs to return.

        Raises:
            InvalidRequestError: the model has no such output, or it is named twice.
        """
        if request.outputs is None:
            return self._outputs
        names = [output.name for output in request.outputs]
        for name in names:
            if name not in self._outputs:
                known = ", ".join(self._outputs)
                raise InvalidRequestError(f"model {self._model!r} has no output {name!r}, the outputs are: {known}")
            if names.count(name) > 1:
                raise InvalidRequestError(f"output {name!r} is requested twice")
        return names


def _plain_dims(type: TensorType) -> tuple[int | str, ...] | None:
    """Return the size or the symbol's name of each dimension; None if the rank is not known, or one is computed."""
    dims = [dim.name if isinstance(dim, SymbolicDim) else dim for dim in (type.shape or ())]
    return None if type.shape is None or None in dims else tuple(dim for dim in dims if dim is not None)


def _metadata(kind: str, name: str, dtype: DType, shape: object) -> TensorMetadata:
    try:
        datatype = datatype_of(dtype)
    except UnsupportedError as error:
        raise InputError(f"{kind} {name!r} is {dtype}: {error}") from None
    if not isinstance(shape, tuple):
        return TensorMetadata(name, datatype, (-1,))
    return TensorMetadata(name, datatype, tuple(dim if isinstance(dim, int) else -1 for dim in shape))
