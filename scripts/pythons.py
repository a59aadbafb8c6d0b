"""The Python interpreters of this machine, by version: on the PATH, or installed by pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["find", "oldest"]

#: The versions that Lite supports, the oldest first.
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

_QUESTION = "import ensurepip, sys, venv; print(*sys.version_info[:2], sep='.')"


def find(version: str) -> str | None:
    """Return an interpreter of a version such as ``3.13`` that can make environments, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    # A command on the PATH may be a placeholder that does not run.
    for python in (shutil.which(f"python{version}"), *map(str, reversed(installed))):
        if python is not None and _version(python) == version:
            return python
    return None


def oldest() -> tuple[str, str]:
    """Return the oldest supported version that is found, and its interpreter.

    Raises:
        LookupError: there is none.
    """
    for version in VERSIONS:
        python = find(version)
        if python is not None:
            return version, python
    raise LookupError(f"none of Python {', '.join(VERSIONS)} is on the PATH or installed by pyenv")


def _version(python: str) -> str:
    done = subprocess.run([python, "-c", _QUESTION], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""
