"""Installed plugins for tests: the files that pip leaves after it has installed a wheel, in a temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest

from lite_core.plugins import ENTRY_POINT_GROUP, PluginManager

GOOD = """
import numpy as np
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

backend = KernelBackend("{name}")

@backend.kernel("Relu", dtypes=["float32"])
def relu(x, *, out):
    np.maximum(x, 0, out=out)

@hookimpl
def lite_backends():
    return [backend]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on ``sys.path`` to install plugins into; modules imported from it are unloaded at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("LITE_STRICT_PLUGINS", raising=False)
    yield tmp_path
    for name in [n for n, m in sys.modules.items() if str(tmp_path) in (getattr(m, "__file__", None) or "")]:
        del sys.modules[name]


def install(
    folder: Path, name: str, source: str, *, distribution: str = "", version: str = "1.0", requires: Sequence[str] = ()
) -> None:
    """Write the files that pip leaves in ``folder``: a module, and a dist-info folder with an entry point."""
    distribution = distribution or f"lite-{name.replace('_', '-')}"
    module = f"{distribution.replace('-', '_')}_plugin"
    (folder / f"{module}.py").write_text(source.replace("{name}", name))
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {module}\n")


def plugins_of(site: Path) -> PluginManager:
    """Return a plugin manager that finds only the plugins installed in ``site``."""

    def entry_points() -> list[metadata.EntryPoint]:
        found = metadata.distributions(path=[str(site)])
        return [e for d in found for e in d.entry_points if e.group == ENTRY_POINT_GROUP]

    return PluginManager(entry_points)


def lite(site: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with the plugins of ``site`` in addition to those installed, and a cache of its own."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "lite_core", *arguments]
    variables = {**os.environ, "PYTHONPATH": path, "LITE_CACHE_DIR": str(site / "cache"), **environment}
    return subprocess.run(command, capture_output=True, text=True, env=variables)
