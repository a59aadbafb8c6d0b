"""The operating systems: which one this is, and what is known of those on which the backend is not tested."""

from __future__ import annotations

import sys

from lite_cpu.systems import TestedSystems

__all__ = ["VARIABLE", "experimental", "system", "untested"]

#: The variable that, if it is ``1``, makes the backend available on systems on which it is not tested.
VARIABLE = "LITE_ARM_EXPERIMENTAL"

_SYSTEMS = TestedSystems(
    "lite-arm",
    VARIABLE,
    {
        "win32": "it has one thread there, and detects nothing beyond ARMv8.0",
        "darwin": "the system may refuse memory for code, and threads are not placed on fast cores",
    },
)
untested, experimental = _SYSTEMS.untested, _SYSTEMS.experimental


def system() -> str:
    """Return the name of this operating system as in ``sys.platform``; the backend asks for it here only."""
    return sys.platform
