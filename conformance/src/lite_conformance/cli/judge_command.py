"""``lite-conformance judge``: results of exported cases, which a runtime has computed elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from lite_conformance.cli import shared_options as shared
from lite_conformance.cli.progress import shown_progress
from lite_conformance.cli.run_command import exit_code
from lite_conformance.data_folders.judging import judge
from lite_conformance.reports.record import Report
from lite_tools.commands import EXIT_FAILURE, EXIT_OK, check_writable, console, print_text

__all__ = ["command"]


@click.command("judge")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("results", type=click.Path(exists=True, file_okay=False))
@click.option("--backend", "-b", required=True, metavar="NAME", help="What computed the results, for the report.")
@click.option("--device", default="", metavar="TEXT", help="The device that it ran on.")
@click.option("--platform", default="", metavar="TEXT", help="Its operating system and processor.")
@click.option("--stack", multiple=True, metavar="NAME=VERSION", help="Its software, such as driver=24.2. Repeatable.")
@shared.case
@click.option("--expectations", type=click.Path(exists=True, dir_okay=False), help="A conformance.toml.")
@shared.json_report
@shared.junit_report
@shared.html_report
@shared.quiet
def command(
    folder: str,
    results: str,
    backend: str,
    device: str,
    platform: str,
    stack: tuple[str, ...],
    cases: tuple[str, ...],
    expectations: str | None,
    json_file: str | None,
    junit: str | None,
    html: str | None,
    quiet: bool,
) -> int:
    """Judge the results of exported cases by the tolerances of the suite.

    FOLDER is what `lite-conformance export` wrote. RESULTS has NAME/test_data_set_0/output_0.pb for each of its
    models, or NAME/refused.txt or NAME/failed.txt with the reason why there is no output.
    """
    from lite_conformance.reports.terminal import print_summary

    for file, option in ((json_file, "--json"), (junit, "--junit"), (html, "--html")):
        if file:
            check_writable(file, option)
    with shown_progress(backend, quiet) as progress:
        report = judge(
            Path(folder),
            Path(results),
            backend,
            device=device,
            stack=_pairs(stack),
            platform=platform,
            cases=cases,
            expectations=expectations,
            progress=progress,
        )
    _write(report, json_file, junit, html)
    print_summary(report, console)
    code = exit_code(report)
    if report.incomplete:
        print_text(f"error: {report.incomplete}; --case PATTERN judges some of them", err=True)
    return EXIT_FAILURE if report.incomplete and code == EXIT_OK else code


def _pairs(stack: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in stack:
        name, equals, version = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VERSION", param_hint="--stack")
        pairs[name] = version
    return pairs


def _write(report: Report, json_file: str | None, junit: str | None, html: str | None) -> None:
    if json_file:
        report.write(json_file)
    if junit:
        from lite_conformance.reports.junit import write_junit

        write_junit(report, junit)
    if html:
        from lite_conformance.reports.html import write_html

        write_html([report], html)
