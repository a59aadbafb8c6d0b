"""``lite new-plugin``: creation of the package of a new plugin from templates."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from lite_tools.cli.new_plugin_ci import SERVICES
from lite_tools.cli.new_plugin_files import write_package
from lite_tools.cli.new_plugin_kinds import KINDS, NewPlugin
from lite_tools.cli.new_plugin_names import check_name
from lite_tools.commands.next_commands import with_correction
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json
from lite_tools.commands.suggestions import did_you_mean, similar_names

__all__ = ["command"]


def _several(words: Sequence[str], none: str = "") -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """Return a callback that splits a text with commas into words, in the order of ``words``; ``none`` stands alone."""

    def split(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
        asked = [word.strip() for word in value.split(",")]
        if none and asked == [none]:
            return ()
        for word in asked:
            if word not in words:
                known = ", ".join((*words, none) if none else words)
                meant = did_you_mean(word, [*words, none])
                hint = f"; {meant}" if meant else ""
                error = click.BadParameter(f"{word!r} is none of these: {known}{hint}", ctx, param)
                near = similar_names(word, [*words, none], 1)
                raise with_correction(error, word, near)
        return tuple(word for word in words if word in asked)

    return split


_KINDS = "\n".join(f"  {name:14}  {kind.about}" for name, kind in KINDS.items())
_HELP = f"""Create the package of a new plugin called NAME, with tests that pass.

KIND is what the plugin adds to Lite. For several in one package, type commas between them: operator,pass,format.

\b
{_KINDS}

The package is a folder lite-NAME, which `pip install` can install.
"""


@click.command("new-plugin", help=_HELP)
@click.argument("kinds", metavar="KIND", callback=_several(tuple(KINDS)))
@click.argument("name")
@click.option("--numba", is_flag=True, help="Of a kernel-backend: kernels are plain loops, which Numba compiles.")
@click.option(
    "--ci",
    "services",
    callback=_several(tuple(SERVICES), none="none"),
    default="github",
    show_default=True,
    metavar="SERVICE",
    help="Write files for these CI services: github, gitlab, azure, several with commas between them, or none.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    default=Path(),
    help="Folder in which to create the package's folder.  [default: the current folder]",
)
@json_option
def command(
    kinds: tuple[str, ...], name: str, numba: bool, services: tuple[str, ...], output: Path, as_json: bool
) -> None:
    """Write the package and print what to do next."""
    if numba and "kernel-backend" not in kinds:
        problem = "--numba is about the kernels of a kernel-backend: lite new-plugin kernel-backend NAME"
        near = ["kernel-backend"] if "backend" in kinds else []
        raise with_correction(click.UsageError(problem), "backend", near)
    if {"backend", "kernel-backend"} <= set(kinds):
        raise click.BadParameter("a package has one backend: backend or kernel-backend", param_hint="KIND")
    check_name(name, kinds)
    plugin = NewPlugin(name, kinds, numba, services)
    folder = output / plugin.distribution
    files = write_package(plugin, folder)
    steps = [f"cd {shlex.quote(str(folder))}", *plugin.next_steps]
    if as_json:
        print_json({"name": name, "kinds": kinds, "folder": str(folder), "files": files, "next": steps})
        return
    console.print(f"the package of {plugin.title} {name!r} is written to {folder}:", markup=False)
    for file in files:
        console.print(f"  {file}", markup=False)
    console.print("next:")
    for step in steps:
        console.print(f"  {step}", markup=False)
