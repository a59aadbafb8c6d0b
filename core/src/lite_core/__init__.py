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

from lite_core import errors
from lite_core.collector import collector_paused
from lite_core.log import configure_from_environment
from lite_core.version import __version__

if TYPE_CHECKING:
    from lite_core.backend import API_VERSION as API_VERSION
    from lite_core.backend import Device as Device
    from lite_core.backend import No as No
    from lite_core.backend import Unavailable as Unavailable
    from lite_core.backend import Yes as Yes
    from lite_core.builder import GraphBuilder as GraphBuilder
    from lite_core.errors import *
    from lite_core.formats import read_model as read_model
    from lite_core.ir import DType as DType
    from lite_core.ir import Graph as Graph
    from lite_core.ir import TensorType as TensorType
    from lite_core.kernel_backend import KernelBackend as KernelBackend
    from lite_core.launcher import convert as convert
    from lite_core.plugins import hookimpl as hookimpl
    from lite_core.schedule import BackendReport as BackendReport
    from lite_core.schedule import backends as backends
    from lite_core.session import RunProfile as RunProfile
    from lite_core.session import Session as Session
    from lite_core.session import load as load

# The public names by their modules.
_NAMES_IN = {
    "backend": ("API_VERSION", "Device", "No", "Unavailable", "Yes"),
    "builder": ("GraphBuilder",),
    "errors": errors.__all__,
    "formats": ("read_model",),
    "ir": ("DType", "Graph", "TensorType"),
    "kernel_backend": ("KernelBackend",),
    "launcher": ("convert",),
    "plugins": ("hookimpl",),
    "schedule": ("BackendReport", "backends"),
    "session": ("RunProfile", "Session", "load"),
}

__all__ = ["__version__", *(name for names in _NAMES_IN.values() for name in names)]

configure_from_environment()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lite_core' has no attribute {name!r}")
    home = next(module for module, names in _NAMES_IN.items() if name in names)
    with collector_paused(for_life=True):
        value = getattr(import_module(f"lite_core.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
