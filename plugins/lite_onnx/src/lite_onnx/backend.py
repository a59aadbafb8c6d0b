"""Lite as a backend in the sense of ``onnx.backend.base``, for whoever has tests or tools that take one.

The module stands for the backend, as those of other runtimes do::

    import lite_onnx.backend as backend

    rep = backend.prepare(model)  # device="CPU": any device of Lite's; "opencl", "x86:0" ... name one
    outputs = rep.run([x, y])
"""

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
from lite_core.ir import DType
from lite_onnx.lowering.interface import Given, element_name
from lite_onnx.lowering.model import lower

__all__ = ["LiteBackend", "LiteRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

Array = np.ndarray[Any, Any]


#: Scalars, and inputs of whole numbers with no more elements than this, become constants where a model cannot be
#: lowered otherwise.
_FEW_ELEMENTS = 64


class LiteRep(BackendRep):
    """A model that is ready to run.

    Some models cannot be lowered before it is known how long their sequences are, which optionals are there, or how
    often a loop runs: they are prepared when they are run, for each set of these.
    """

    def __init__(self, model: onnx.ModelProto, backend: str | Sequence[str], **options: Any) -> None:
        self._model = model
        self._load: Callable[[lite.Graph], lite.Session] = partial(lite.load, backend=backend, **options)
        self._names = [value.name for value in model.graph.input]
        self._defaults = {tensor.name for tensor in model.graph.initializer}.intersection(self._names)
        self._sessions: dict[Hashable, lite.Session] = {}
        try:
            self._session(Given())
            self._is_general = True
        except lite.UnsupportedOperatorError:
            if not any(_tells(value) for value in model.graph.input):
                raise
            self._is_general = False

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, also to be had by their names; a sequence is a list, an empty optional None.

        Args:
            inputs: arrays in the model's order, or by name; one array for a model with one input. Those that have
                defaults may be left out.
            kwargs: none; the signature is ONNX's.
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
            named = {n: a for n, a in arrays.items() if n in self._names and a.size <= _FEW_ELEMENTS}
            constants.update((n, arrays.pop(n)) for n, a in named.items() if a.ndim == 0 or a.dtype.kind in "iub")
            shapes = {name: array.shape for name, array in arrays.items()}
        session = self._session(Given(lengths, constants, shapes))
        types = {name: type_.dtype.numpy for name, type_ in session.inputs.items()}
        results = session.run({name: _as_lite(array, types[name]) for name, array in arrays.items() if name in types})
        shown = {name: _as_onnx(array) for name, array in results.items()}
        collected = [_collected(output, shown) for output in self._model.graph.output]
        kind: Any = namedtupledict("Outputs", [output.name for output in self._model.graph.output])
        made: tuple[Any, ...] = kind(*collected)
        return made

    def _session(self, given: Given) -> lite.Session:
        fixed = tuple((name, a.shape, a.tobytes()) for name, a in sorted(given.constants.items()))
        key = (tuple(sorted(given.lengths.items())), fixed, tuple(sorted(given.shapes.items())))
        if key not in self._sessions:
            graph = lower(self._model, Path(Path(self._model.graph.name).name or "model"), given)
            self._sessions[key] = self._load(graph)
        return self._sessions[key]


def _tells(value: onnx.ValueInfoProto) -> bool:
    """Whether more can be known of an input when the model runs: its length, its elements or its shape."""
    if value.type.WhichOneof("value") != "tensor_type":
        return True
    type_ = value.type.tensor_type
    is_open = not type_.HasField("shape") or not all(d.HasField("dim_value") for d in type_.shape.dim)
    return is_open or helper.tensor_dtype_to_np_dtype(type_.elem_type).kind in "iub"


def _as_lite(array: Array, dtype: np.dtype[Any]) -> Array:
    """Bits of a type that NumPy has not, which onnx hands out as integers, as that type."""
    kind = DType.of(dtype)
    is_foreign = kind.is_narrow or kind is DType.BFLOAT16
    return (
        array.view(dtype) if is_foreign and array.dtype != dtype and array.dtype.itemsize == dtype.itemsize else array
    )


def _as_onnx(array: Array) -> Array:
    """The way back: onnx before 1.18 has types of its own for these."""
    kind = DType.of(array.dtype)
    custom = getattr(getattr(onnx, "_custom_element_types", None), str(kind), None)
    if custom is None:
        return array
    # NOTE: a view of 4-bit integers would not extend their sign.
    return (array.astype(np.int8) if kind is DType.INT4 else array).view(custom)


def _collected(output: onnx.ValueInfoProto, results: Mapping[str, Array]) -> Array | list[Array] | None:
    """An output of the model from those of the session."""
    if output.name in results:
        return results[output.name]
    elements = list(
        itertools.takewhile(results.__contains__, (element_name(output.name, i) for i in itertools.count()))
    )
    type_ = output.type.optional_type.elem_type if output.type.HasField("optional_type") else output.type
    return [results[name] for name in elements] if elements or type_.HasField("sequence_type") else None


class LiteBackend(Backend):
    """Prepares and runs models with Lite. ``lite_backend`` says on which of Lite's backends; subclasses may."""

    lite_backend: str | Sequence[str] = "auto"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether every operator of the model can be lowered."""
        try:
            lower(model, Path(Path(model.graph.name).name or "model"))
        except lite.LiteError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> LiteRep:
        """A model that is ready to run; ``kwargs`` are those of :func:`lite_core.load`.

        Raises:
            LiteError: it cannot be lowered, or not run on the device.
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
        """Run one operator on arrays, of the newest opset or ``opset_version``."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        given = [name for name in node.input if name]
        arrays = inputs.values() if isinstance(inputs, Mapping) else inputs
        kinds = [helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype) for a in arrays]
        declared = [
            helper.make_tensor_value_info(name, kind, np.shape(a)) for name, kind, a in zip(given, kinds, arrays)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type, declared, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.prepare(model, device, **kwargs).run(dict(zip(given, map(np.asarray, arrays))))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """``CPU`` always; otherwise whether a backend of Lite's with this name has the device."""
        from lite_core.plugins import default_plugins

        return device == "CPU" or any(b.name == device.split(":")[0] for _, b in default_plugins().ask("lite_backends"))


is_compatible = LiteBackend.is_compatible
prepare = LiteBackend.prepare
run_model = LiteBackend.run_model
run_node = LiteBackend.run_node
supports_device = LiteBackend.supports_device
