"""Names of backends on the command line: misspelt ones are refused with the name that was meant."""

from __future__ import annotations

from lite_core.errors import BackendUnavailableError
from lite_core.plugins import available_backends, default_plugins, left_out_backends
from lite_core.plugins.known import known_distributions
from lite_tools.commands.next_commands import typed_command, with_next_command
from lite_tools.commands.suggestions import did_you_mean, similar_names

__all__ = ["known_backends"]


def known_backends(*names: str, within: str = "") -> list[str]:
    """Return names of backends, or of devices such as ``opencl:1``, after a check for misspelt ones.

    Args:
        names: the names.
        within: the word of the command line that they are a part of; empty if they are words themselves.

    Raises:
        BackendUnavailableError: a name is not that of a backend, and similar to one. Other names are left to the
            session, which says what is installed.
    """
    plugins = default_plugins()
    installed = [*available_backends(plugins), *left_out_backends(plugins)]
    for name in names:
        base, colon, index = name.partition(":")
        near = similar_names(base, ["auto", *installed])
        if base in ("auto", *installed, *known_distributions("backends")) or not near:
            continue
        meant = [f"{each}{colon}{index}" if each != "auto" else each for each in near]
        error = BackendUnavailableError(
            f"there is no backend {base!r}; {did_you_mean(name, meant) or f'did you mean {meant[0]}?'} (installed: "
            f"{', '.join(sorted(installed))})"
        )
        replaced = {within: within.replace(name, meant[0], 1)} if within else {name: meant[0]}
        raise with_next_command(error, typed_command(replaced=replaced) or "lite backends")
    return list(names)
