"""Installing the backend ``faulty`` for commands, which run in processes of their own."""

from __future__ import annotations

from pathlib import Path

from installed_plugins import install

__all__ = ["install_planted"]

_TESTS = Path(__file__).parents[1]


def install_planted(folder: Path, fault: str, node: str = "", fused: bool = True) -> None:
    """Install a :class:`~faulty_backend.FaultyPlugin` in ``folder``, as pip would.

    ``installed_plugins.lite(folder, ...)`` then runs a command that finds it beside the installed plugins.
    """
    source = f"""
import sys
sys.path.append({str(_TESTS)!r})
from faulty_backend import FaultyPlugin

LITE_API_VERSION = 1
plugin = FaultyPlugin({fault!r}, {node!r}, {fused!r})
lite_backends, lite_passes = plugin.lite_backends, plugin.lite_passes
"""
    install(folder, "faulty", source)
