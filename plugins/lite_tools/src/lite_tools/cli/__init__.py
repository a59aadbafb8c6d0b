"""The command line: ``lite COMMAND``. One file per command of lite-tools' own; plugins add others.

Exit codes of every command: 0 ok, 1 mismatch or failure, 2 wrong usage (also inputs that do not fit the
model), 3 a backend, a package or a model is not available, 4 nothing was executed, 5 crash.
"""

from lite_tools.cli.group import lite
from lite_tools.cli.program import main

__all__ = ["lite", "main"]
