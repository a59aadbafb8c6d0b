"""Commands that are listed without being imported."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyCommand"]


class LazyCommand(click.Command):
    """A command whose module is imported when it is invoked or asked for its parameters, not when it is listed.

    Args:
        name: of the command.
        short_help: its line in the list of commands.
        module: where the real command is; there it is called ``command``.
    """

    def __init__(self, name: str, short_help: str, module: str) -> None:
        super().__init__(name, short_help=short_help)
        self._module = module

    @cached_property
    def real(self) -> click.Command:
        """The command itself."""
        command: click.Command = import_module(self._module).command
        return command

    @property
    def params(self) -> list[click.Parameter]:
        """The parameters of the command itself."""
        return self.real.params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:
        """Take none: click.Command wants to write them down."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """A context of the command itself, which does all that follows: parse, show help, run."""
        return self.real.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command itself."""
        return self.real.invoke(ctx)

    def to_info_dict(self, ctx: click.Context) -> dict[str, Any]:
        """What click tells about the command itself."""
        return self.real.to_info_dict(ctx)
