"""Adapter that makes Lite a backend as defined by ``onnx.backend.base``, which ONNX's own tests run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import lite_core as lite
from lite_core.ir import DType, TensorType
from lite_onnx.lowering.interface import InputOptions, element_name
from lite_onnx.lowering.model import lower

__all__ = ["LiteBackend", "LiteRep"]

Array = np.ndarray[Any, Any]


#: Scalars, and integer inputs of at most this many elements, become constants if a model cannot be lowered otherwise.
_MAX_CONSTANT_ELEMENTS = 64


class LiteRep(BackendRep):
    """A model that is ready to run.

    Some models can only be lowered when the lengths of sequences, the presence of optionals, or the number of
    iterations of loops are known. Such a model is lowered when it is run, for each new set of these.
    """

    def __init__(self, model: onnx.ModelProto, backend: str | Sequence[str], **options: Any) -> None:
        self._model = model
        self._load: Callable[[lite.Graph], lite.Session] = partial(lite.load, backend=backend, **options)
        self._names = [value.name for value in model.graph.input]
        self._defaults = {tensor.name for tensor in model.graph.initializer}.intersection(self._names)
        self._sessions: dict[Hashable, lite.Session] = {}
        try:
            self._session(InputOptions())
            self._is_general = True
        except lite.UnsupportedOperatorError:
            if not any(_is_open(value) for value in model.graph.input):
                raise
            self._is_general = False

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model and return a named tuple of outputs; a sequence is a list, an empty optional is None.

        Args:
            inputs: arrays in the model's order, or by name; or a single array. Inputs with defaults may be omitted.
            kwargs: unused; the signature is ONNX's.
        """
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            needed = [name for name in self._names if name not in self._defaults]
            inputs = dict(zip(self._names if len(inputs) == len(self._names) else needed, inputs))
        lengths = {n: None if a is None else len(a) for n, a in inputs.items() if a is None or isinstance(a, list)}
        arrays: dict[str, Array] = {}
        for name, content in inputs.items():
            if isinstance(content, list):
                arrays.update((element_name(name, i), np.asarray(a)) for i, a in enumerate(content))
            elif content is not None:
                arrays[name] = np.asarray(content)
        constants = {name: arrays.pop(name) for name in self._defaults.intersection(arrays)}
        shapes: dict[str, tuple[int, ...]] = {}
        if not self._is_general:
            named = {n: a for n, a in arrays.items() if n in self._names and a.size <= _MAX_CONSTANT_ELEMENTS}
            constants.update((n, arrays.pop(n)) for n, a in named.items() if a.ndim == 0 or a.dtype.kind in "iub")
            shapes = {name: array.shape for name, array in arrays.items()}
        session = self._session(InputOptions(lengths, constants, shapes))
        types = {name: type_.dtype.numpy for name, type_ in session.inputs.items()}
        results = session.run({name: _as_lite(array, types[name]) for name, array in arrays.items() if name in types})
        shown = {name: _as_onnx(array) for name, array in results.items()}
        collected = [_collected(output, shown) for output in self._model.graph.output]
        output_type: Any = namedtupledict("Outputs", [output.name for output in self._model.graph.output])
        outputs: tuple[Any, ...] = output_type(*collected)
        return outputs

    def _session(self, options: InputOptions) -> lite.Session:
        fixed = tuple((name, a.shape, a.tobytes()) for name, a in sorted(options.constants.items()))
        key = (tuple(sorted(options.lengths.items())), fixed, tuple(sorted(options.shapes.items())))
        if key not in self._sessions:
            graph = lower(self._model, Path(Path(self._model.graph.name).name or "model"), options)
            self._sessions[key] = self._load(graph)
        return self._sessions[key]


def _is_open(value: onnx.ValueInfoProto) -> bool:
    """Return True if a run adds information about an input: its length, its elements or its shape."""
    if value.type.WhichOneof("value") != "tensor_type":
        return True
    type_ = value.type.tensor_type
    has_open_shape = not type_.HasField("shape") or not all(d.HasField("dim_value") for d in type_.shape.dim)
    return has_open_shape or helper.tensor_dtype_to_np_dtype(type_.elem_type).kind in "iub"


def _as_lite(array: Array, dtype: np.dtype[Any]) -> Array:
    """View integers as the type that they are the bits of: onnx uses them for types that NumPy does not have."""
    if dtype.hasobject:
        return array
    kind = DType.of(dtype)
    is_foreign = kind.is_narrow or kind is DType.BFLOAT16
    return (
        array.view(dtype) if is_foreign and array.dtype != dtype and array.dtype.itemsize == dtype.itemsize else array
    )


def _as_onnx(array: Array) -> Array:
    """View such a type as onnx's own type: onnx before 1.18 defines custom types for them."""
    kind = TensorType.of_array(array).dtype
    custom = getattr(getattr(onnx, "_custom_element_types", None), str(kind), None)
    if custom is None:
        return array
    # NOTE: a view of 4-bit integers would lose their sign.
    return (array.astype(np.int8) if kind is DType.INT4 else array).view(custom)


def _collected(output: onnx.ValueInfoProto, results: Mapping[str, Array]) -> Array | list[Array] | None:
    """Assemble an output of the model from outputs of the session."""
    if output.name in results:
        return results[output.name]
    shapes = results.get(element_name(output.name, "shapes"))
    if shapes is not None:  # a sequence whose length depends on data
        pieces = np.split(results[element_name(output.name, "elements")], np.cumsum(shapes.prod(axis=1))[:-1])
        return [piece.reshape(shape) for piece, shape in zip(pieces, shapes)]
    elements = list(
        itertools.takewhile(results.__contains__, (element_name(output.name, i) for i in itertools.count()))
    )
    type_ = output.type.optional_type.elem_type if output.type.HasField("optional_type") else output.type
    return [results[name] for name in elements] if elements or type_.HasField("sequence_type") else None


class LiteBackend(Backend):
    """Prepares and runs models with Lite, on the backend named by ``lite_backend``, which subclasses may override."""

    lite_backend: str | Sequence[str] = "auto"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return True if every operator of the model can be lowered."""
        try:
            lower(model, Path(Path(model.graph.name).name or "model"))
        except lite.LiteError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> LiteRep:
        """Prepare a model; ``kwargs`` are those of :func:`lite_core.load`.

        Raises:
            LiteError: it cannot be lowered, or cannot run on the device.
        """
        return LiteRep(model, cls.lite_backend if device == "CPU" else device, **kwargs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on arrays, by default in the newest opset; ``opset_version`` selects another."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        arrays = inputs.values() if isinstance(inputs, Mapping) else inputs
        kinds = [helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype) for a in arrays]
        declared = [
            helper.make_tensor_value_info(name, kind, np.shape(a)) for name, kind, a in zip(names, kinds, arrays)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type, declared, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.prepare(model, device, **kwargs).run(dict(zip(names, map(np.asarray, arrays))))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True for ``CPU``, and for devices of Lite's backends, such as ``x86:0``."""
        from lite_core.plugins import default_plugins

        return device == "CPU" or any(b.name == device.split(":")[0] for _, b in default_plugins().ask("lite_backends"))
