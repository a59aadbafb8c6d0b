"""Operating systems on which a CPU backend is tested, and answers for those on which it is not.

The kernels themselves are the same everywhere. What depends on the system is listed in the README of lite-x86.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lite_core.backend import Unavailable

__all__ = ["TestedSystems"]

_TESTED = "linux"
_TITLES = {"win32": "Windows", "cygwin": "Cygwin", "darwin": "macOS"}
_OTHERS = "lite-onnxruntime and lite-opencl are backends for this system"
_LINUX = {"win32": ", in WSL 2 it is tested Linux", "darwin": ", in a Linux container it is tested Linux"}


@dataclass(frozen=True)
class TestedSystems:
    """A backend that is tested on Linux only. Systems have the names of ``sys.platform``.

    Attributes:
        distribution: the backend's distribution.
        variable: the environment variable that, if it is ``1``, makes the backend available on all systems.
        known: what is known of the backend on other systems.
    """

    distribution: str
    variable: str
    known: Mapping[str, str]

    def untested(self, name: str, environment: Mapping[str, str]) -> Unavailable | None:
        """Return the reason why the backend is not used on a system, or None if it is used.

        Args:
            name: the system.
            environment: the environment variables.
        """
        if name == _TESTED or environment.get(self.variable) == "1":
            return None
        remedy = f"{_OTHERS}{_LINUX.get(name, '')}; to try it all the same, set {self.variable}=1"
        return Unavailable(self._state(name), remedy)

    def experimental(self, name: str) -> str:
        """Return a description of the backend's state on a system on which it is not tested; empty on a tested one."""
        return "" if name == _TESTED else f"experimental: {self._state(name)}"

    def _state(self, name: str) -> str:
        known = f"; {self.known[name]}" if name in self.known else ""
        return f"{self.distribution} is tested on Linux only, and never ran on {_TITLES.get(name, name)}{known}"
