"""The command line ``lite COMMAND``, with one file for each command of lite-tools; plugins add other commands.

Exit codes of all commands: 0 success, 1 mismatch or failure, 2 wrong usage (also inputs that do not fit the
model), 3 a backend, package or model is not available, 4 nothing was executed, 5 crash.
"""

from lite_tools.cli.group import lite
from lite_tools.cli.program import main

__all__ = ["lite", "main"]
