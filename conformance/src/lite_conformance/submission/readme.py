"""The summary of a submission for readers: ``README.md``, which follows from the other files."""

from __future__ import annotations

from collections.abc import Sequence

from lite_conformance.reports.record import Report
from lite_conformance.reports.summary import fact_lines, printable
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.must_pass import Conformity
from lite_conformance.submission.manifest import ENVIRONMENT_KEYS, Manifest

__all__ = ["summary"]

#: Parts of the environment that say nothing to a reader.
_LEFT_OUT = ("code", "expectations_digest", "memory", "api_version")


def summary(manifest: Manifest, results: Sequence[Conformity], reports: Sequence[Report], waivers: Expectations) -> str:
    """Return the text of ``README.md``.

    Args:
        manifest: the manifest; its list of files is not used.
        results: the result of each profile.
        reports: the reports.
        waivers: the entries of ``conformance.toml``.
    """
    environment = {key: manifest.environment.get(key) for key in ENVIRONMENT_KEYS if key not in _LEFT_OUT}
    total = sum(len(report.records) for report in reports)
    lines = [
        f"# Conformance of {_text(manifest.backend)}",
        "",
        "| profile | version | must pass | passed | verdict |",
        "| --- | ---: | ---: | ---: | --- |",
        *(
            f"| {found.required.profile} | {found.required.version} | {len(found.required.cases):,} | {found.passed:,} "
            f"| {found.verdict} |"
            for found in results
        ),
        "",
        f"{len(reports)} report(s) with {total:,} records, seed {manifest.seed}, made {_text(manifest.created)} by",
        "",
        f"    {_text(manifest.command)}",
        "",
        "## Environment",
        "",
        *(f"- {_text(label)}: {_text(text)}" for label, text in fact_lines(environment)),
        "",
        "## Waivers",
        "",
        *_waiver_lines(waivers),
        "",
        "## Verification",
        "",
        "    lite-conformance verify FILE.zip",
        "    lite-conformance verify FILE.zip --repeat 50    # where the backend is installed",
        "",
    ]
    return "\n".join(lines)


def _waiver_lines(waivers: Expectations) -> list[str]:
    if not waivers.entries:
        return ["None: the package of the backend declares no exceptions."]
    lines = [f"The {len(waivers.entries)} exception(s) of conformance.toml, none of which is for a must-pass case:", ""]
    for entry in waivers.entries:
        level = f" at {entry.precision}" if entry.precision else ""
        lines.append(f"- {entry.kind} `{_code(entry.case)}`{level}: {_text(entry.reason)}")
    return lines


def _text(text: str) -> str:
    """Return a text on one line, in which characters of Markdown and HTML mean themselves."""
    return "".join(f"\\{c}" if c in "\\<>[]|`" else c for c in " ".join(printable(text).split()))


def _code(text: str) -> str:
    return " ".join(printable(text).replace("`", "'").split())
