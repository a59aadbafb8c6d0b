"""``lite completion``: the script that makes a shell complete commands, options and names."""

from __future__ import annotations

import click

from lite_tools.commands.options import json_option
from lite_tools.commands.printing import print_json
from lite_tools.completion.shells import SHELLS, VARIABLE


@click.command("completion")
@click.argument("shell", type=click.Choice([*SHELLS]))
@json_option
def command(shell: str, as_json: bool) -> None:
    """Print the script that makes SHELL complete what follows `lite`.

    Commands, options, backends, operators, precisions, and files of the kind that an option takes are completed. To
    use it in every new shell:

    \b
    bash: add to ~/.bashrc   eval "$(lite completion bash)"
    zsh:  add to ~/.zshrc    eval "$(lite completion zsh)"
    fish: lite completion fish > ~/.config/fish/completions/lite.fish

    bash needs version 4.4 or newer; in zsh, compinit must have run before.
    """  # noqa: D301 - \b tells click to keep the line breaks
    # Made without the method source(), which starts bash to ask for its version.
    kind = SHELLS[shell](click.Group("lite"), {}, "lite", VARIABLE)
    script = kind.source_template % kind.source_vars()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)
