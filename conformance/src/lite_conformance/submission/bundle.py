"""Making a submission: the reports of a backend that conforms, with everything that is needed to verify them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lite_conformance.reports.record import Report
from lite_conformance.run.expectations import Expectations, parse_expectations
from lite_conformance.run.must_pass import Conformity, MustPassList, conformity
from lite_conformance.submission.archive import MANIFEST, README, WAIVERS
from lite_conformance.submission.manifest import FileEntry, Manifest, ProfileEntry, environment_of
from lite_conformance.submission.readme import summary
from lite_core.errors import InputError

__all__ = ["bundle_contents", "judge", "required_options"]

#: Options that decide about the numbers of a run and must be the same in all reports.
_OPTIONS = ("seed", "examples")


def judge(lists: Sequence[MustPassList], reports: Sequence[Report]) -> list[Conformity]:
    """Judge reports by each must-pass list."""
    records = [record for report in reports for record in report.records]
    return [conformity(required, records) for required in lists]


def bundle_contents(
    lists: Sequence[MustPassList], reports: Sequence[Report], names: Sequence[str], command: str
) -> dict[str, bytes]:
    """Return the files of a bundle.

    Args:
        lists: the must-pass lists that the backend conforms to.
        reports: the reports, of one backend on one device.
        names: a name for each report.
        command: the command that makes the bundle.

    Raises:
        InputError: the reports do not belong together, or ``conformance.toml`` is another one than in their run.
    """
    header = _common_header(reports, names)
    waivers, text = _waivers(header)
    manifest = Manifest(
        backend=str(header["backend"]),
        command=command,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seed=int(required_options(reports[0])["seed"]),
        profiles=tuple(ProfileEntry(r.profile, r.version, len(r.cases), r.digest) for r in lists),
        environment=environment_of(header),
    )
    contents = {f"must_pass/{required.profile}.txt": required.text.encode() for required in lists}
    for number, (name, report) in enumerate(zip(names, reports), 1):
        contents[f"reports/{number}-{_file_name(name)}.json"] = report.to_text().encode()
    if text:
        contents[WAIVERS] = text
    contents[README] = summary(manifest, judge(lists, reports), reports, waivers).encode()
    manifest = replace(manifest, files={name: FileEntry.of(content) for name, content in contents.items()})
    return {**contents, MANIFEST: manifest.to_bytes()}


def required_options(report: Report) -> dict[str, Any]:
    """Return the options of a report that all reports of a bundle share."""
    options = report.header.get("options")
    return {key: options.get(key) for key in _OPTIONS} if isinstance(options, dict) else dict.fromkeys(_OPTIONS)


def _common_header(reports: Sequence[Report], names: Sequence[str]) -> dict[str, object]:
    first = reports[0]
    for name, report in zip(names, reports):
        if None in required_options(report).values() or not report.header.get("versions"):
            raise InputError(f"the header of the report {name!r} does not say how it was made; run the profiles again")
        if report.incomplete:
            raise InputError(f"the report {name!r} is not complete: {report.incomplete}; run it again with --resume")
        one, other = ({"backend": r.header.get("backend"), **environment_of(r.header)} for r in (first, report))
        different = [key for key in one if one[key] != other[key]]
        different += [f"option {k}" for k, v in required_options(first).items() if v != required_options(report)[k]]
        if different:
            raise InputError(
                f"the reports {names[0]!r} and {name!r} are not of the same backend, environment and options: "
                f"{', '.join(different)} differ(s); make the reports of a submission on machines that are set up alike"
            )
    return first.header


def _waivers(header: dict[str, object]) -> tuple[Expectations, bytes]:
    """Return the expectations of the run with the text of their file; nothing if the package has none."""
    source, digest = str(header.get("expectations") or ""), header.get("expectations_digest")
    if not source:
        return Expectations(), b""
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"the expectations of the run, {source}, cannot be read: {error}") from error
    found = parse_expectations(text, WAIVERS)
    if found.digest != digest:
        raise InputError(f"{source} has changed since the run; run the profiles again")
    return found, text.encode()


def _file_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return kept.strip("-._")[:60] or "report"
