"""The exit codes that every command ends with."""

from __future__ import annotations

__all__ = ["EXIT_CRASH", "EXIT_FAILURE", "EXIT_NOTHING", "EXIT_OK", "EXIT_UNAVAILABLE", "EXIT_USAGE"]

EXIT_OK = 0
#: Something does not match, or failed.
EXIT_FAILURE = 1
#: The command is used wrongly; also inputs that do not fit the model.
EXIT_USAGE = 2
#: A backend, a package or a model is not available.
EXIT_UNAVAILABLE = 3
#: Nothing was executed.
EXIT_NOTHING = 4
#: Lite itself failed.
EXIT_CRASH = 5
