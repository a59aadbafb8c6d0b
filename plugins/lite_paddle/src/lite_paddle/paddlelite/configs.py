"""The configurations from which :func:`create_paddle_predictor` makes predictors.

Settings that choose among Paddle-Lite's own passes and drivers are kept and returned, and named once in the log: Lite
chooses its passes and kernels itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lite_core.checks import require
from lite_core.errors import InputError
from lite_core.processors import useful_threads
from lite_paddle.paddlelite.enums import CLPrecisionType, CLTuneMode, Place, PowerMode

__all__ = ["CxxConfig", "MobileConfig"]

logger = logging.getLogger("lite.paddlelite")


class _Config:
    """The settings of both configurations: threads, OpenCL, Metal and NNAdapter."""

    def __init__(self) -> None:
        self._model_dir = ""
        self._threads: int | None = None
        self._power_mode = PowerMode.LITE_POWER_NO_BIND
        self._tune = CLTuneMode.CL_TUNE_NONE
        self._precision = CLPrecisionType.CL_PRECISION_AUTO
        self._nnadapter: dict[str, Any] = {}
        #: Keeps the files of a model that was given as bytes.
        self._folder: TemporaryDirectory[str] | None = None

    # **** model ****

    def set_model_dir(self, path: str) -> None:
        """Set the folder of the model."""
        self._model_dir = str(path)

    def model_dir(self) -> str:
        """Return the folder of the model, empty if none is set."""
        return self._model_dir

    def is_model_from_memory(self) -> bool:
        """Return True if the model was given as bytes."""
        return self._folder is not None

    # **** processor ****

    def set_threads(self, threads: int) -> None:
        """Set the number of threads; by default one for each core that is of use."""
        require(isinstance(threads, int) and threads > 0, "threads", "a positive number", threads)
        self._threads = threads

    def threads(self) -> int:
        """Return the number of threads."""
        return self._threads or useful_threads()

    def chosen_threads(self) -> int | None:
        """Return the number of threads that was set, or None."""
        return self._threads

    def set_power_mode(self, mode: PowerMode) -> None:
        """Keep the mode. It changes nothing: the operating system places the threads."""
        require(isinstance(mode, PowerMode), "mode", "a PowerMode", mode)
        self._power_mode = mode

    def power_mode(self) -> PowerMode:
        """Return the mode that was set."""
        return self._power_mode

    # **** OpenCL ****

    def set_opencl_binary_path_name(self, path: str, name: str) -> None:
        """Change nothing: Lite keeps compiled OpenCL programs in its own cache, which needs no path."""
        _unused("set_opencl_binary_path_name", "compiled OpenCL programs are kept in Lite's cache")

    def set_opencl_tune(
        self, mode: CLTuneMode = CLTuneMode.CL_TUNE_NORMAL, path: str = "", name: str = "", repeats: int = 4
    ) -> None:
        """Measure the kernels of OpenCL on the first run, unless the mode is CL_TUNE_NONE.

        The result is kept in Lite's cache; ``path``, ``name`` and ``repeats`` change nothing.
        """
        require(isinstance(mode, CLTuneMode), "mode", "a CLTuneMode", mode)
        self._tune = mode

    def set_opencl_precision(self, precision: CLPrecisionType) -> None:
        """Set the arithmetic of OpenCL: float16 for CL_PRECISION_FP16, otherwise float32."""
        require(isinstance(precision, CLPrecisionType), "precision", "a CLPrecisionType", precision)
        self._precision = precision

    def opencl_tune(self) -> CLTuneMode:
        """Return the mode that was set."""
        return self._tune

    def opencl_precision(self) -> CLPrecisionType:
        """Return the precision that was set."""
        return self._precision

    # **** Metal and NNAdapter: drivers that Lite reaches through plugins of their own ****

    def set_metal_lib_path(self, path: str) -> None:
        """Change nothing: no installed package of Lite uses Metal."""
        _unused("set_metal_lib_path", "Lite has no backend for Metal")

    def set_metal_use_mps(self, flag: bool = True) -> None:
        """Change nothing: no installed package of Lite uses Metal."""
        _unused("set_metal_use_mps", "Lite has no backend for Metal")

    def set_metal_use_memory_reuse(self, flag: bool) -> None:
        """Change nothing: no installed package of Lite uses Metal."""
        _unused("set_metal_use_memory_reuse", "Lite has no backend for Metal")

    def set_nnadapter_device_names(self, names: Sequence[str]) -> None:
        """Keep the names. They choose nothing: Lite has no NNAdapter; a plugin brings each device."""
        self._keep("device_names", [str(name) for name in names])

    def set_nnadapter_context_properties(self, properties: str) -> None:
        """Keep the properties, without effect."""
        self._keep("context_properties", str(properties))

    def set_nnadapter_model_cache_dir(self, path: str) -> None:
        """Keep the folder, without effect."""
        self._keep("model_cache_dir", str(path))

    def _keep(self, name: str, value: Any) -> None:
        _unused(f"set_nnadapter_{name}", "Lite has no NNAdapter; `lite backends` lists the devices")
        self._nnadapter[name] = value

    def _stored(self, files: Mapping[str, str | bytes]) -> Path:
        """Write a model that is given as bytes into a folder that lives as long as the configuration."""
        self._folder = TemporaryDirectory(prefix="lite-paddlelite-")
        for name, content in files.items():
            # Paddle-Lite's own binding takes bytes where it says str.
            data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else bytes(content)
            Path(self._folder.name, name).write_bytes(data)
        return Path(self._folder.name)


class CxxConfig(_Config):
    """The configuration of a predictor that reads a Paddle model: legacy files, or the JSON of Paddle 3."""

    def __init__(self) -> None:
        super().__init__()
        self._model_file = self._param_file = ""
        self._places: tuple[Place, ...] = ()

    def set_model_file(self, path: str) -> None:
        """Set the file of the program."""
        self._model_file = str(path)

    def model_file(self) -> str:
        """Return the file of the program, empty if none is set."""
        return self._model_file

    def set_param_file(self, path: str) -> None:
        """Set the file of the parameters."""
        self._param_file = str(path)

    def param_file(self) -> str:
        """Return the file of the parameters, empty if none is set."""
        return self._param_file

    def set_model_buffer(self, model: str | bytes, model_size: int, params: str | bytes, params_size: int) -> None:
        """Set the model as the content of its two files.

        Raises:
            InputError: a size is greater than the bytes that are given.
        """
        for name, content, size in (("model", model, model_size), ("params", params, params_size)):
            if size > len(content):
                raise InputError(f"set_model_buffer: {name} has {len(content)} bytes, and its size is given as {size}")
        folder = self._stored({"model": model[:model_size], "params": params[:params_size]})
        self._model_file, self._param_file = str(folder / "model"), str(folder / "params")

    def set_valid_places(self, wanted: Iterable[Place]) -> None:
        """Set the devices that the predictor may use, the preferred one first.

        A device that this machine does not have is left out, which the log says.
        """
        listed = tuple(wanted)
        fits = all(isinstance(place, Place) for place in listed)
        require(fits and bool(listed), "the argument of set_valid_places", "a list of at least one Place", listed)
        self._places = listed

    def valid_places(self) -> tuple[Place, ...]:
        """Return the places that were set."""
        return self._places

    def model_location(self) -> tuple[str, str]:
        """Return the path of the model, and that of its parameters, empty if they are beside it.

        Raises:
            InputError: no model is set.
        """
        if not self._model_file and not self._model_dir:
            raise InputError(
                "the configuration names no model: call set_model_file(path) and set_param_file(path), or "
                "set_model_dir(folder)"
            )
        return (self._model_file, self._param_file) if self._model_file else (self._model_dir, "")

    def set_passes_internal(self, passes: Sequence[str] = ()) -> None:
        """Change nothing: Lite chooses the passes over the graph."""
        _unused("set_passes_internal", "Lite chooses the passes over the graph")

    def add_discarded_pass(self, name: str) -> None:
        """Change nothing: Lite chooses the passes over the graph."""
        _unused("add_discarded_pass", "Lite chooses the passes over the graph")

    def nnadapter_device_names(self) -> list[str]:
        """Return the names that were set."""
        return list(self._nnadapter.get("device_names", []))

    def nnadapter_context_properties(self) -> str:
        """Return the properties that were set."""
        return str(self._nnadapter.get("context_properties", ""))

    def nnadapter_model_cache_dir(self) -> str:
        """Return the folder that was set."""
        return str(self._nnadapter.get("model_cache_dir", ""))

    def set_nnadapter_subgraph_partition_config_path(self, path: str) -> None:
        """Keep the path, without effect."""
        self._keep("subgraph_partition_config_path", str(path))

    def nnadapter_subgraph_partition_config_path(self) -> str:
        """Return the path that was set."""
        return str(self._nnadapter.get("subgraph_partition_config_path", ""))

    def set_nnadapter_mixed_precision_quantization_config_path(self, path: str) -> None:
        """Keep the path, without effect."""
        self._keep("mixed_precision_quantization_config_path", str(path))

    def nnadapter_mixed_precision_quantization_config_path(self) -> str:
        """Return the path that was set."""
        return str(self._nnadapter.get("mixed_precision_quantization_config_path", ""))


class MobileConfig(_Config):
    """The configuration of a predictor that reads a file of Paddle-Lite's converter (``.nb``), or a .lite file."""

    def __init__(self) -> None:
        super().__init__()
        self._file = ""

    def set_model_from_file(self, path: str) -> None:
        """Set the file of the model."""
        self._file = str(path)

    def set_model_from_buffer(self, content: str | bytes) -> None:
        """Set the model as the content of its file."""
        self._file = str(self._stored({"model.nb": content}) / "model.nb")

    def set_model_buffer(self, model: str | bytes, model_size: int, params: str | bytes, params_size: int) -> None:
        """Set a model of Paddle-Lite before 2.3 as the content of its two files."""
        self._stored({"__model__.nb": model[:model_size], "param.nb": params[:params_size]})
        assert self._folder is not None
        self._model_dir = self._folder.name

    def model_location(self) -> tuple[str, str]:
        """Return the path of the model, and an empty string: its parameters are in the same file or folder.

        Raises:
            InputError: no model is set.
        """
        path = self._file or self._model_dir
        if not path:
            raise InputError("the configuration names no model: call set_model_from_file(path)")
        return path, ""

    def set_nnadapter_dynamic_shape_info(self, shapes: Mapping[str, Sequence[Sequence[int]]]) -> None:
        """Keep the shapes, without effect: Lite takes any shape."""
        self._keep("dynamic_shape_info", dict(shapes))

    def set_nnadapter_model_cache_buffers(self, token: str, buffers: Sequence[Any]) -> None:
        """Keep the buffers, without effect."""
        self._keep("model_cache_buffers", (token, list(buffers)))


_named: set[str] = set()


def _unused(setting: str, why: str) -> None:
    """Log, once in a process, that a setting changes nothing."""
    if setting not in _named:
        _named.add(setting)
        logger.info("%s changes nothing: %s", setting, why)
