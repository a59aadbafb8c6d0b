"""``lite-conformance report``: one HTML page from JSON reports."""

from __future__ import annotations

from pathlib import Path

import click

from lite_conformance.reports.html import write_html
from lite_conformance.reports.record import read_report
from lite_tools.commands import EXIT_OK, check_writable

__all__ = ["command"]


@click.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The HTML file to write.")
def command(files: tuple[str, ...], output: str) -> int:
    """Write one HTML page from JSON reports: of several backends, or of versions of one."""
    check_writable(output, "--output")
    write_html([read_report(file) for file in files], output, [Path(file).stem for file in files])
    click.echo(f"wrote {output}")
    return EXIT_OK
