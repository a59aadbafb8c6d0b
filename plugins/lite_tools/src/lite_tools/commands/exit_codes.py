"""The exit codes of all commands."""

from __future__ import annotations

__all__ = ["EXIT_CRASH", "EXIT_FAILURE", "EXIT_FILE", "EXIT_NOTHING", "EXIT_OK", "EXIT_UNAVAILABLE", "EXIT_USAGE"]

EXIT_OK = 0
#: A failure, or results that do not match.
EXIT_FAILURE = 1
#: Wrong usage of the command, or inputs that do not fit the model.
EXIT_USAGE = 2
#: A backend or a package is not available.
EXIT_UNAVAILABLE = 3
#: Nothing was executed.
EXIT_NOTHING = 4
#: Lite itself failed.
EXIT_CRASH = 5
#: A model's file is damaged, of a foreign format, or not trusted.
EXIT_FILE = 6
