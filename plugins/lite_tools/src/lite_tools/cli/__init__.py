"""The command line ``lite COMMAND``, with one file for each command of lite-tools; plugins add other commands.

Exit codes of all commands: 0 success, 1 mismatch or failure, 2 wrong usage (also inputs that do not fit the
model), 3 a backend, package or model is not available, 4 nothing was executed, 5 crash.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_tools.cli.group import lite

__all__ = ["lite", "main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with one of the exit codes; answer a shell that asks for completions."""
    if instruction := os.environ.get("_LITE_COMPLETE"):
        from lite_tools.completion.answering import answer  # imports no command: the user waits for each answer

        sys.exit(answer(instruction))
    from lite_tools.cli.program import main as run

    run(arguments)


def __getattr__(name: str) -> Any:
    if name != "lite":
        raise AttributeError(f"module 'lite_tools.cli' has no attribute {name!r}")
    from lite_tools.cli.group import lite

    return lite
