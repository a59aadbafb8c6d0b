"""``lite-conformance report``: one HTML page from JSON reports."""

from __future__ import annotations

from pathlib import Path

import click

from lite_conformance.reports.html import write_html
from lite_conformance.reports.record import read_report
from lite_tools.commands import EXIT_OK, check_writable, print_text

__all__ = ["command"]


@click.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The HTML file to write.")
def command(files: tuple[str, ...], output: str) -> int:
    """Write one HTML page from JSON reports: of several backends, devices, or versions of one.

    Several reports are shown side by side, operator by operator, and each is compared with the first.
    """
    check_writable(output, "--output")
    names = [Path(file).stem for file in files]
    write_html([read_report(file) for file in files], output, names if len(set(names)) == len(names) else None)
    print_text(f"wrote {output}")
    return EXIT_OK
