"""The command ``lite-conformance``: one file for each subcommand, and files for what they share."""

from lite_conformance.cli.entry import main, run_command_line

__all__ = ["main", "run_command_line"]
