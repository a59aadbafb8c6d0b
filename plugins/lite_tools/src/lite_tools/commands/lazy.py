"""Commands whose modules are not imported when they are listed."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyCommand"]


class LazyCommand(click.Command):
    """A command whose module is imported when it is invoked or its parameters are needed, not when it is listed.

    Args:
        name: the command's name.
        short_help: its line in the list of commands.
        module: the module that defines the real command, as ``command``.
    """

    def __init__(self, name: str, short_help: str, module: str) -> None:
        super().__init__(name, short_help=short_help)
        self._module = module

    @cached_property
    def real(self) -> click.Command:
        """The real command."""
        command: click.Command = import_module(self._module).command
        return command

    @property
    def params(self) -> list[click.Parameter]:
        """The parameters of the real command."""
        return self.real.params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:
        """Ignore the parameters that click.Command sets."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Create a context of the real command, which then parses arguments, shows help and runs."""
        return self.real.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the real command."""
        return self.real.invoke(ctx)

    def to_info_dict(self, ctx: click.Context) -> dict[str, Any]:
        """Return click's description of the real command."""
        return self.real.to_info_dict(ctx)
