"""Lite: run trained neural networks on the hardware of this machine.

::

    import lite_core as lite

    session = lite.load("inference.pdmodel", backend="auto", threads=2)
    outputs = session.run({"x": image})     # name -> array that the caller owns

Names are imported on first use, so that ``import lite_core`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lite_core.collector import collector_paused
from lite_core.log import configure_from_environment
from lite_core.version import __version__

if TYPE_CHECKING:
    from lite_core.backend import API_VERSION, Device, No, Unavailable, Yes
    from lite_core.builder import GraphBuilder
    from lite_core.errors import (
        BackendUnavailableError,
        ConversionError,
        ExecutionError,
        GraphError,
        InputError,
        LiteError,
        ModelFormatError,
        PassError,
        PluginError,
        UnsupportedOperatorError,
    )
    from lite_core.formats import read_model
    from lite_core.ir import DType, Graph, TensorType
    from lite_core.kernel_backend import KernelBackend
    from lite_core.launcher import convert
    from lite_core.plugins import hookimpl
    from lite_core.session import RunProfile, Session, load

# The modules of the public names; the names that are not listed here are errors, in the module `errors`.
_NAMES_IN = {
    "backend": ("API_VERSION", "Device", "No", "Unavailable", "Yes"),
    "builder": ("GraphBuilder",),
    "formats": ("read_model",),
    "ir": ("DType", "Graph", "TensorType"),
    "kernel_backend": ("KernelBackend",),
    "launcher": ("convert",),
    "plugins": ("hookimpl",),
    "session": ("RunProfile", "Session", "load"),
}

__all__ = [
    "API_VERSION",
    "BackendUnavailableError",
    "ConversionError",
    "DType",
    "Device",
    "ExecutionError",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "InputError",
    "KernelBackend",
    "LiteError",
    "ModelFormatError",
    "No",
    "PassError",
    "PluginError",
    "RunProfile",
    "Session",
    "TensorType",
    "Unavailable",
    "UnsupportedOperatorError",
    "Yes",
    "__version__",
    "convert",
    "hookimpl",
    "load",
    "read_model",
]

configure_from_environment()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lite_core' has no attribute {name!r}")
    home = next((module for module, names in _NAMES_IN.items() if name in names), "errors")
    with collector_paused(for_life=True):
        value = getattr(import_module(f"lite_core.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
