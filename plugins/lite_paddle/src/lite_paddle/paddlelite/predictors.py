"""The predictors of Paddle-Lite, on Lite's sessions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_core import __version__
from lite_core.checks import require
from lite_core.errors import InputError
from lite_core.formats.choosing import find_model
from lite_core.session import load
from lite_paddle.lowering import lower
from lite_paddle.lowering.program import level_names
from lite_paddle.paddle_lite.placing import parse_targets
from lite_paddle.paddle_lite.writing import paddle_lite_program, write_naive_buffer, write_protobuf
from lite_paddle.paddlelite.configs import CxxConfig, MobileConfig
from lite_paddle.paddlelite.enums import CLPrecisionType, CLTuneMode, PrecisionType, TargetType
from lite_paddle.paddlelite.tensors import Tensor
from lite_paddle.reader import read

if TYPE_CHECKING:
    from lite_core.ir import Graph, Value
    from lite_core.session import Session
    from lite_paddle.paddle_lite.program import Program
    from lite_paddle.source import SourceProgram

__all__ = ["CxxPredictor", "LightPredictor", "create_paddle_predictor"]

logger = logging.getLogger("lite.paddlelite")


class _Predictor:
    """The tensors of inputs and outputs, and the run.

    The model is read and its operators are checked when the predictor is made. Kernels are compiled by the first run,
    so that a predictor may also convert a model for devices that this machine lacks.

    Args:
        config: threads, precision and tuning.
        path: file or folder of the model.
        params: file of the parameters, if it is not beside the program.
        targets: names of backends, the preferred one first; empty for those that a converted file names.
    """

    def __init__(
        self, config: CxxConfig | MobileConfig, path: str, params: str = "", targets: Sequence[str] = ()
    ) -> None:
        self._config, self._path, self._targets = config, path, list(dict.fromkeys(targets))
        self._source = None if find_model(path).is_lite_file else read(path, params or None)
        self._sessions: dict[bool, Session] = {}
        if self._source is None:
            graph = self._session().graph
            inputs, outputs = [(v.name, v) for v in graph.inputs], [(v.name, v) for v in graph.outputs]
        else:
            self._graph = self._lowered(self._source)
            # Offsets of sequences, which are no tensors in Paddle-Lite, are the last inputs and outputs.
            inputs = [(name, v) for (name, _), v in zip(self._source.inputs, self._graph.inputs)]
            outputs = [(name, v) for (name, _), v in zip(self._source.outputs, self._graph.outputs)]
        self._inputs, self._outputs = dict(map(_tensor, inputs)), dict(map(_tensor, outputs))

    def get_input(self, index: int) -> Tensor:
        """Return an input by its position.

        Raises:
            InputError: the model has no input at this position.
        """
        return _at(self._inputs, index, "input")

    def get_output(self, index: int) -> Tensor:
        """Return an output by its position.

        Raises:
            InputError: the model has no output at this position.
        """
        return _at(self._outputs, index, "output")

    def get_input_by_name(self, name: str) -> Tensor:
        """Return an input by its name.

        Raises:
            InputError: the model has no such input.
        """
        return _named(self._inputs, name, "input")

    def get_output_by_name(self, name: str) -> Tensor:
        """Return an output by its name.

        Raises:
            InputError: the model has no such output.
        """
        return _named(self._outputs, name, "output")

    def get_input_names(self) -> list[str]:
        """Return the names of the inputs, in the model's order."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs, in the model's order."""
        return list(self._outputs)

    def get_version(self) -> str:
        """Return the version of Lite."""
        return f"lite {__version__}"

    def run(self) -> None:
        """Run the model on the data of the inputs. Other Python threads go on meanwhile.

        Raises:
            InputError: an input has no data, or data of a wrong shape or element type.
        """
        arrays: dict[str, Any] = {name: tensor.numpy(zero_copy=True) for name, tensor in self._inputs.items()}
        offsets = self._offsets()
        results = list(self._session(with_offsets=bool(offsets)).run(arrays | offsets).items())
        levels: dict[str, list[list[int]]] = {}
        for name, array in results[len(self._outputs) :]:
            levels.setdefault(name.rpartition(".lod")[0], []).append(array.tolist())
        for tensor, (name, array) in zip(self._outputs.values(), results):
            tensor.hold(array)
            tensor.set_lod(levels.get(name, []))

    def _lowered(self, source: SourceProgram, *, with_offsets: bool = False) -> Graph:
        """Return the graph of a program; a session then chooses among the configuration's devices, and says so."""
        graph = lower(source, lod=with_offsets)
        # host is behind every other device.
        if targets := [name for name in self._targets if name != "host"] or self._targets:
            graph.metadata["targets"] = " ".join(targets)
        return graph

    def _session(self, *, with_offsets: bool = False) -> Session:
        """Return the session for one sequence in each input, or for several; made when it is first needed."""
        if with_offsets not in self._sessions:
            if self._source is None:
                model: str | Graph = self._path
            else:
                model = self._lowered(self._source, with_offsets=True) if with_offsets else self._graph
            config = self._config
            is_half = config.opencl_precision() is CLPrecisionType.CL_PRECISION_FP16 or _has_half_place(config)
            session = load(
                model,
                threads=config.chosen_threads(),
                precision="float16" if is_half else None,
                tune=config.opencl_tune() is not CLTuneMode.CL_TUNE_NONE,
            )
            logger.info("%s", session.describe())
            absent = {*session.targets} - {device.partition(":")[0] for device in session.devices}
            for line in session.selection_log:
                if line.partition(":")[0] in absent:
                    logger.warning("%s", line)
            self._sessions[with_offsets] = session
        return self._sessions[with_offsets]

    def _offsets(self) -> dict[str, Any]:
        """Return the offsets of the inputs' sequences, empty if each input is one sequence, or has none.

        Raises:
            InputError: an input whose rows are no sequences has offsets, or their number of levels is wrong.
        """
        given = {name: tensor.lod() for name, tensor in self._inputs.items()}
        if all(len(lod) <= 1 and all(len(level) <= 2 for level in lod) for lod in given.values()):
            return {}
        types = {name: value.type for name, value in self._source.inputs} if self._source else {}
        counts = {name: type_.lod_level if type_ else 0 for name, type_ in types.items()}
        offsets: dict[str, Any] = {}
        for name, lod in given.items():
            count = counts.get(name, 0)
            rows = self._inputs[name].shape()[:1]
            # An input without offsets is one sequence on every level.
            lod = lod or [[0, 1]] * (count - 1) + [[0, *rows]]
            if count != len(lod) and (count or given[name]):
                raise InputError(
                    f"set_lod of the input {name!r}: {len(lod)} levels of offsets are given, the model declares {count}"
                )
            if count:
                offsets |= {label: np.array(level, np.int64) for label, level in zip(level_names(name, count), lod)}
        return offsets


class CxxPredictor(_Predictor):
    """A predictor that reads a Paddle model and may convert it. Made by :func:`create_paddle_predictor`."""

    def save_optimized_model(self, path: str) -> None:
        """Write the model as a file for Paddle-Lite, with kernels for the configuration's places.

        Args:
            path: the file to write; ``.nb`` is appended where it is absent.

        Raises:
            InputError: Paddle-Lite files cannot be written for these places.
            UnsupportedOperatorError: Paddle-Lite has no kernel for some operators; all are listed.
        """
        write_naive_buffer(self._converted(), Path(str(path).removesuffix(".nb") + ".nb"))

    def save_optimized_pb_model(self, folder: str) -> None:
        """Write the model as a Paddle program with Paddle-Lite's kernels: the files ``model`` and ``params``.

        Raises:
            InputError: Paddle-Lite files cannot be written for these places.
            UnsupportedOperatorError: Paddle-Lite has no kernel for some operators; all are listed.
        """
        write_protobuf(self._converted(), Path(folder))

    def _converted(self) -> Program:
        if self._source is None:
            raise InputError("a .lite file cannot be converted: convert the Paddle model that it was made from")
        names = [name for name in self._targets if name != "host"] or ["host"]
        return paddle_lite_program(self._source, parse_targets(names, fp16=_has_half_place(self._config)))


class LightPredictor(_Predictor):
    """A predictor that runs a converted file. Made by :func:`create_paddle_predictor`."""


def create_paddle_predictor(config: CxxConfig | MobileConfig) -> CxxPredictor | LightPredictor:
    """Make a predictor: a :class:`CxxPredictor` for a CxxConfig, a :class:`LightPredictor` for a MobileConfig.

    Raises:
        InputError: the configuration names no model, or no place.
        ModelFormatError: the model is damaged, or of another format.
        UnsupportedOperatorError: operators cannot be run; all are listed.
    """
    require(isinstance(config, CxxConfig | MobileConfig), "config", "a CxxConfig or a MobileConfig", config)
    path, params = config.model_location()
    if isinstance(config, MobileConfig):
        return LightPredictor(config, path, params)
    if not config.valid_places():
        raise InputError(
            "the configuration has no places: call set_valid_places([Place(TargetType.X86, PrecisionType.FP32)]), or "
            "with the devices that the model is for"
        )
    # A backend has the name of its target in small letters.
    return CxxPredictor(config, path, params, [place.target.name.lower() for place in config.valid_places()])


def _tensor(named: tuple[str, Value]) -> tuple[str, Tensor]:
    name, value = named
    shape = () if value.type.shape is None else [size if isinstance(size, int) else -1 for size in value.type.shape]
    return name, Tensor(name, value.dtype.numpy.name, shape)


def _at(tensors: dict[str, Tensor], index: int, kind: str) -> Tensor:
    if not isinstance(index, int) or not 0 <= index < len(tensors):
        raise InputError(f"the model has no {kind} {index!r}: it has {len(tensors)} ({', '.join(tensors)})")
    return list(tensors.values())[index]


def _named(tensors: dict[str, Tensor], name: str, kind: str) -> Tensor:
    if name not in tensors:
        raise InputError(f"the model has no {kind} {name!r}: it has {', '.join(tensors)}")
    return tensors[name]


def _has_half_place(config: CxxConfig | MobileConfig) -> bool:
    wanted = config.valid_places() if isinstance(config, CxxConfig) else ()
    return any(place.precision is PrecisionType.FP16 for place in wanted if place.target is not TargetType.OpenCL)
