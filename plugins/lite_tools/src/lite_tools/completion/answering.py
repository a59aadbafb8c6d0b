"""The answer to a shell that asks how a command line can go on."""

from __future__ import annotations

import sys

from lite_tools.completion.rebuilt import rebuild
from lite_tools.completion.shells import SHELLS, VARIABLE
from lite_tools.completion.stored import known_description

__all__ = ["answer"]


def answer(instruction: str) -> int:
    """Print the completions of the line in the environment, and return the exit code.

    Args:
        instruction: the value of the environment variable, such as ``bash_complete``.
    """
    shell, _, action = instruction.partition("_")
    if shell not in SHELLS or action != "complete":
        print(f"error: {VARIABLE}={instruction} is not understood\nnext: lite completion --help", file=sys.stderr)
        return 2
    description = known_description()
    command = rebuild("lite", description["command"], description["names"])
    print(SHELLS[shell](command, {}, "lite", VARIABLE).complete())
    return 0
