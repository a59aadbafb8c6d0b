"""Verification of a submission: whether its files follow from each other, and its records from the suite."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.catalogue import possible_cases
from lite_conformance.cases.patterns import matches
from lite_conformance.reports.record import Record, Report, parse_report
from lite_conformance.run.expectations import Expectations, parse_expectations
from lite_conformance.run.must_pass import (
    Conformity,
    MustPassList,
    digest_of_cases,
    known_lists,
    parse_cases,
)
from lite_conformance.run.profiles import PROFILE_KEY
from lite_conformance.run.suite_digest import suite_digests
from lite_conformance.submission.archive import MANIFEST, README, WAIVERS
from lite_conformance.submission.bundle import judge, required_options
from lite_conformance.submission.manifest import ENVIRONMENT_KEYS, FileEntry, Manifest, environment_of
from lite_conformance.submission.readme import summary
from lite_conformance.submission.record_checks import problems_of_record, problems_with_truth
from lite_conformance.submission.strict_json import parse_object
from lite_core.errors import InputError

__all__ = ["Finding", "Truth", "Verification", "verify"]

#: Returns the records of the references on this machine: called with the names of cases and the seed of a run.
Truth = Callable[[frozenset[str], int], list[Record]]
_VERSIONED = ("lite-core", "lite-conformance")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a bundle.

    Attributes:
        check: the check that found it: ``files``, ``manifest``, ``versions``, ``lists``, ``reports``, ``must-pass``,
            ``records``, ``waivers``, ``tolerances``, ``summary`` or ``repeat``.
        message: what was found, and what was expected.
    """

    check: str
    message: str


@dataclass(slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        findings: what is wrong; empty if the bundle is verified.
        manifest: the manifest, if it can be read.
        profiles: the result of each profile.
        reports: the reports that can be read.
    """

    findings: list[Finding] = field(default_factory=list)
    manifest: Manifest | None = None
    profiles: list[Conformity] = field(default_factory=list)
    reports: dict[str, Report] = field(default_factory=dict)

    def add(self, check: str, messages: Iterator[str]) -> None:
        """Add the findings of a check."""
        self.findings += [Finding(check, message) for message in messages]


def verify(
    contents: Mapping[str, bytes],
    truth: Truth | None = None,
    known: Mapping[str, Mapping[int, str]] | None = None,
) -> Verification:
    """Verify the files of a bundle.

    Args:
        contents: the files by their names, as :func:`lite_conformance.submission.archive.read_archive` returns them.
        truth: runs cases by the references; without it, tolerances are compared only with what the records say of them.
        known: the versions of must-pass lists with their digests; those of the installed suite when omitted.
    """
    found = Verification()
    if MANIFEST not in contents:
        found.add("manifest", iter([f"there is no {MANIFEST}"]))
        return found
    try:
        manifest = found.manifest = Manifest.from_bytes(contents[MANIFEST])
    except ValueError as error:
        found.add("manifest", iter([f"{MANIFEST} is damaged: {error}"]))
        return found
    found.add("files", _files(manifest, contents))
    found.add("versions", _versions(manifest))
    lists, problems = _lists(manifest, contents, known_lists() if known is None else known)
    found.add("lists", iter(problems))
    found.reports, problems = _reports(contents)
    found.add("reports", iter(problems))
    found.add("reports", _headers(manifest, found.reports))
    waivers, problems = _waivers(manifest, contents)
    found.add("waivers", iter(problems))
    found.add("waivers", _hidden(waivers, lists))
    found.profiles = judge(lists, [*found.reports.values()])
    records = _records_of(lists, found.reports)
    found.add("must-pass", _presence(lists, found.reports))
    found.add("records", _record_problems(manifest, records))
    if truth is not None and records:
        names = frozenset(record.case for record in records)
        found.add("tolerances", _differences_from_truth(records, truth(names, manifest.seed)))
    found.add("summary", _summary(manifest, found, waivers, contents))
    return found


def _files(manifest: Manifest, contents: Mapping[str, bytes]) -> Iterator[str]:
    present = contents.keys() - {MANIFEST}
    for name in sorted(manifest.files.keys() - present):
        yield f"{name} is missing"
    for name in sorted(present - manifest.files.keys()):
        yield f"{name} is not in the manifest"
    for name in sorted(present & manifest.files.keys()):
        if FileEntry.of(contents[name]) != manifest.files[name]:
            yield f"{name} has another size or SHA-256 than in the manifest: it was changed after it was made"


def _versions(manifest: Manifest) -> Iterator[str]:
    versions, suite = manifest.environment["versions"], manifest.environment["suite"]
    if not isinstance(versions, dict) or not isinstance(suite, dict):
        yield "the manifest does not name the versions of lite-core and the suite"
        return
    made_with = " ".join(f"{name}=={versions.get(name)}" for name in _VERSIONED)
    for name in _VERSIONED:
        if versions.get(name) != metadata.version(name):
            yield (
                f"it was made with {name} {versions.get(name)}, this is {metadata.version(name)}; "
                f"verify it with: pip install {made_with}"
            )
    for name, digest in suite_digests().items():
        if suite.get(name) != digest:
            yield (
                f"the {name} of its suite have the digest {suite.get(name)}, those here {digest}: they are not the "
                f"ones that this version was released with, there or here; verify it with: pip install {made_with}"
            )


def _lists(
    manifest: Manifest, contents: Mapping[str, bytes], known: Mapping[str, Mapping[int, str]]
) -> tuple[list[MustPassList], list[str]]:
    lists: list[MustPassList] = []
    problems: list[str] = []
    named = [entry.name for entry in manifest.profiles]
    if not named:
        problems.append("the manifest names no profile")
    if extra := sorted({n for n in contents if n.startswith("must_pass/")} - {f"must_pass/{n}.txt" for n in named}):
        problems.append(f"{extra[0]} is of no profile in the manifest")
    for entry in manifest.profiles:
        title = f"{entry.name} v{entry.version}"
        if named.count(entry.name) > 1:
            problems.append(f"the manifest names the profile {entry.name} twice")
            return [], problems
        if entry.name not in known:
            problems.append(f"no profile with a must-pass list is called {entry.name!r}")
            continue
        if entry.version not in known[entry.name]:
            problems.append(f"{title} is not a known version of this list; an upgrade of lite-conformance may know it")
            continue
        digest = known[entry.name][entry.version]
        try:
            cases = parse_cases(contents.get(f"must_pass/{entry.name}.txt", b"").decode())
        except (InputError, UnicodeError) as error:
            problems.append(f"the list of {title} cannot be read: {error}")
            continue
        if digest_of_cases(cases) != digest or entry.digest != digest or entry.cases != len(cases):
            problems.append(
                f"the list of {title} is not the suite's own: {len(cases):,} cases with the digest "
                f"{digest_of_cases(cases)}, expected {digest}"
            )
            continue
        lists.append(MustPassList(entry.name, entry.version, cases, digest))
    return lists, problems


def _reports(contents: Mapping[str, bytes]) -> tuple[dict[str, Report], list[str]]:
    reports: dict[str, Report] = {}
    problems = []
    for name in sorted(name for name in contents if name.startswith("reports/")):
        try:
            given = parse_object(contents[name])
            report = parse_report(given, name)
        except (ValueError, InputError) as error:
            problems.append(f"{name} cannot be read: {error}")
            continue
        reports[name] = report
        written = json.loads(report.to_text())
        if different := [key for key in {**given, **written} if given.get(key) != written.get(key)]:
            problems.append(f"{name}: {different[0]} is not what follows from its records")
    if not reports:
        problems.append("there is no report")
    return reports, problems


def _headers(manifest: Manifest, reports: Mapping[str, Report]) -> Iterator[str]:
    for name, report in reports.items():
        environment = environment_of(report.header)
        for key in ENVIRONMENT_KEYS:
            if environment[key] != manifest.environment[key]:
                yield f"{name}: {key} is {environment[key]!r}, in the manifest {manifest.environment[key]!r}"
        if report.header.get("backend") != manifest.backend:
            yield f"{name}: the backend is {report.header.get('backend')!r}, in the manifest {manifest.backend!r}"
        if required_options(report) != {"seed": manifest.seed, "examples": Settings("").examples}:
            yield f"{name}: its options are {required_options(report)}, in the manifest seed {manifest.seed}"
        if report.incomplete:
            yield f"{name}: the run is not complete: {report.incomplete}"
        device = f"{report.header.get('device')}: {report.header.get('device_name')}"
        strangers = Counter((r.backend, r.device) for r in report.records if r.backend != manifest.backend)
        strangers += Counter((r.backend, r.device) for r in report.records if r.device != device)
        for (backend, other), count in strangers.items():
            yield f"{name}: {count:,} record(s) are of backend {backend!r} on {other!r}, not of {device!r}"


def _waivers(manifest: Manifest, contents: Mapping[str, bytes]) -> tuple[Expectations, list[str]]:
    digest = manifest.environment["expectations_digest"]
    if WAIVERS not in contents:
        return Expectations(), ["the backend's package has a conformance.toml, which is missing"] if digest else []
    try:
        waivers = parse_expectations(contents[WAIVERS].decode(), WAIVERS)
    except (InputError, UnicodeError) as error:
        return Expectations(), [str(error)]
    if waivers.digest != digest:
        return waivers, [f"{WAIVERS} is not the file that the reports were made with: {waivers.digest}, not {digest}"]
    return waivers, []


def _hidden(waivers: Expectations, lists: list[MustPassList]) -> Iterator[str]:
    for entry in waivers.at("float32").entries:
        for required in lists:
            hidden = [case for case in required.cases if matches(entry.case, case)]
            if hidden:
                yield (
                    f"[[{entry.kind}]] case = {entry.case!r} is for {len(hidden):,} case(s) that {required.title} "
                    f"requires: {hidden[0]}"
                )


def _records_of(lists: list[MustPassList], reports: Mapping[str, Report]) -> list[Record]:
    wanted = {case for required in lists for case in required.cases}
    return [r for report in reports.values() for r in report.records if r.case in wanted and not r.precision]


def _presence(lists: list[MustPassList], reports: Mapping[str, Report]) -> Iterator[str]:
    """Yield the must-pass cases without a record, and those with two in the reports of one profile.

    Profiles share cases, so a case may have a record for each of them.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for report in reports.values():
        profile = str(report.header.get(PROFILE_KEY) or "")
        counts.update((profile, record.case) for record in report.records if not record.precision)
    present = {case for _, case in counts}
    for required in lists:
        for case in required.cases:
            if case not in present:
                yield f"{required.title}: {case} has no record"
    wanted = {case for required in lists for case in required.cases}
    for (profile, case), count in counts.items():
        if count > 1 and case in wanted:
            yield f"{case} has {count} records in the reports of {profile or 'no profile'}, expected one"


def _record_problems(manifest: Manifest, records: list[Record]) -> Iterator[str]:
    names = list(dict.fromkeys(f"{record.case.partition('[')[0]}[" for record in records))
    cases: dict[str, Case] = {case.name: case for case in possible_cases(Settings("host"), patterns=names or ["-["])}
    for record in records:
        if record.case not in cases:
            yield f"{record.case}: the suite has no such case"
            continue
        if record.seed != manifest.seed:
            yield f"{record.case}: its seed is {record.seed}, that of the run {manifest.seed}"
        for problem in problems_of_record(record, cases[record.case]):
            yield f"{record.case}: {problem}"


def _differences_from_truth(records: list[Record], truth: list[Record]) -> Iterator[str]:
    right = {record.case: record for record in truth}
    for record in records:
        own = right.get(record.case)
        if own is None or own.status.is_bad:
            why = own.reason if own else "it did not run"
            yield f"{record.case}: the references themselves do not pass here ({why})"
        elif own.status.is_executed:
            for problem in problems_with_truth(record, own):
                yield f"{record.case}: {problem}"


def _summary(
    manifest: Manifest, found: Verification, waivers: Expectations, contents: Mapping[str, bytes]
) -> Iterator[str]:
    text = summary(manifest, found.profiles, [*found.reports.values()], waivers)
    if contents.get(README) != text.encode("utf-8", "replace"):
        yield f"{README} does not follow from the reports"
