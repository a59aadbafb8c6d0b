"""The operating systems: which one this is, and what is known of those on which the backend is not tested.

The kernels themselves are the same everywhere. What depends on the system is listed in the README of this package.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from lite_core.backend import Unavailable

__all__ = ["VARIABLE", "experimental", "system", "untested"]

#: The variable that, if it is ``1``, makes the backend available on systems on which it is not tested.
VARIABLE = "LITE_X86_EXPERIMENTAL"

_TESTED = "linux"
_TITLES = {"win32": "Windows", "cygwin": "Cygwin", "darwin": "macOS"}
_KNOWN = {
    "win32": "it has one thread there, and kernels use memory below the stack pointer, which Windows may overwrite",
    "darwin": "threads are not placed on processors, and the sizes of the caches are not detected",
}
_OTHERS = "lite-onnxruntime and lite-opencl are backends for this system"
_LINUX = {"win32": ", in WSL 2 it is tested Linux", "darwin": ", in a Linux container it is tested Linux"}


def system() -> str:
    """Return the name of this operating system as in ``sys.platform``; the backend asks for it here only."""
    return sys.platform


def untested(name: str, environment: Mapping[str, str]) -> Unavailable | None:
    """Return the reason why the backend is not used on a system, or None if it is used.

    Args:
        name: the system, as :func:`system` returns it.
        environment: the environment variables.
    """
    if name == _TESTED or environment.get(VARIABLE) == "1":
        return None
    return Unavailable(_state(name), f"{_OTHERS}{_LINUX.get(name, '')}; to try it all the same, set {VARIABLE}=1")


def experimental(name: str) -> str:
    """Return a description of the state of a system on which the backend is not tested; empty for a tested one."""
    return "" if name == _TESTED else f"experimental: {_state(name)}"


def _state(name: str) -> str:
    known = f"; {_KNOWN[name]}" if name in _KNOWN else ""
    return f"lite-x86 is tested on Linux only, and never ran on {_TITLES.get(name, name)}{known}"
