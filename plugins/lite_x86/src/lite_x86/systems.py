"""The operating systems: which one this is, and what is known of those on which the backend is not tested."""

from __future__ import annotations

import sys

from lite_cpu.systems import TestedSystems

__all__ = ["VARIABLE", "experimental", "system", "untested"]

#: The variable that, if it is ``1``, makes the backend available on systems on which it is not tested.
VARIABLE = "LITE_X86_EXPERIMENTAL"

_SYSTEMS = TestedSystems(
    "lite-x86",
    VARIABLE,
    {
        "win32": "it has one thread there, and kernels use memory below the stack pointer, which Windows may overwrite",
        "darwin": "threads are not placed on processors, and the sizes of the caches are not detected",
    },
)
untested, experimental = _SYSTEMS.untested, _SYSTEMS.experimental


def system() -> str:
    """Return the name of this operating system as in ``sys.platform``; the backend asks for it here only."""
    return sys.platform
