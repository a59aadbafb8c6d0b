"""``lite-conformance badge``: the result of a report as a small picture."""

from __future__ import annotations

import click

from lite_conformance.reports.badge import badge_svg, badge_text
from lite_conformance.reports.files import replace_text
from lite_conformance.reports.record import read_report
from lite_tools.commands import EXIT_OK, check_writable, print_text

__all__ = ["command"]


@click.command("badge")
@click.argument("report", type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The SVG file to write.")
@click.option("--label", default="lite conformance", show_default=True, help="The text of the left half.")
def command(report: str, output: str, label: str) -> int:
    """Draw the result of a JSON report as a badge: a small SVG that needs no network.

    For the report of a profile, the badge says to which version of its must-pass list the backend conforms.
    """
    check_writable(output, "--output")
    message, kind = badge_text(read_report(report))
    replace_text(output, badge_svg(label, message, kind))
    print_text(f"wrote {output}: {message}")
    return EXIT_OK
