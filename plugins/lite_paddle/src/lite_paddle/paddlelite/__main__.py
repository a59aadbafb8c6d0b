"""Run a script that imports ``paddlelite.lite`` with Lite in its place: ``python -m lite_paddle.paddlelite SCRIPT``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType

from lite_paddle import paddlelite

__all__ = ["main"]

_USAGE = """usage: python -m lite_paddle.paddlelite SCRIPT [ARGUMENT ...]

Runs a script for Paddle-Lite, unchanged, on Lite."""


def main(arguments: list[str]) -> None:
    """Run a script as ``python SCRIPT ARGUMENT ...`` does.

    Args:
        arguments: the script and its own arguments.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(_USAGE if not arguments else print(_USAGE))
    script = Path(arguments[0])
    if not script.is_file():
        sys.exit(f"there is no script {arguments[0]!r}\n\n{_USAGE}")
    package = ModuleType("paddlelite", "Lite in the place of Paddle-Lite.")
    package.__path__ = []
    package.lite = paddlelite  # type: ignore[attr-defined]
    sys.modules.update({"paddlelite": package, "paddlelite.lite": paddlelite})
    sys.argv = list(arguments)
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
