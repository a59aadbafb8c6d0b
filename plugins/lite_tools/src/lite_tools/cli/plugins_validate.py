"""``lite plugins validate``: checks of a plugin's package before it is published."""

from __future__ import annotations

import shlex

import click

from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json


@click.command("validate")
@click.argument("package")
@click.option("--verbose", "-v", is_flag=True, help="Show the tracebacks of failures.")
@json_option
def validate(package: str, verbose: bool, as_json: bool) -> int:
    """Check the PACKAGE of a plugin before it is published.

    PACKAGE is the folder of a project, whose wheel is built and unpacked, a wheel file, or the name of an installed
    package. What is checked: the metadata, the version of the contract, what loading the plugin imports and changes,
    the hooks, the names that it claims, the methods of what it provides, and the files in the wheel.

    The plugin is loaded in a separate process. The exit code is 1 if there are errors; warnings do not change it.
    """
    from lite_tools.validating import validate_package

    report = validate_package(package)
    errors, warnings = report.count("error"), report.count("warning")
    if as_json:
        findings = [finding._asdict() for finding in report.findings]
        counts = {"errors": errors, "warnings": warnings}
        named = {"package": report.package, "version": report.version, "kind": report.kind}
        print_json({**named, **counts, "findings": findings, "plugins": report.plugins})
        return EXIT_FAILURE if errors else EXIT_OK
    for finding in report.findings:
        console.print(f"{finding.level}: {finding.check}: {finding.where}: {finding.text}", markup=False)
        console.print(f"  -> {finding.remedy}", markup=False)
        if verbose and finding.traceback:
            console.print(finding.traceback.rstrip(), markup=False)
    counts_text = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    again = ["lite", "plugins", "validate", package] if errors else ["lite-conformance", "plugin", report.package]
    console.print(f"{report.package} {report.version} ({report.kind}): {counts_text}", markup=False)
    console.print(f"next: {shlex.join(again)}", markup=False)
    return EXIT_FAILURE if errors else EXIT_OK
