"""Must-pass lists: the cases that a backend must pass, not refuse, to conform to a profile.

A list is a file ``must_pass/PROFILE.txt``: the names of cases, one on a line. ``must_pass/versions.json`` has its
versions with the digest of each, so that a list cannot change without a new version. ``must_pass/rules.toml`` says how
the names were chosen; ``scripts/make_must_pass.py`` applies the rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lite_conformance.reports.record import Record, Status
from lite_core.errors import InputError

__all__ = [
    "NOT_RUN",
    "Conformity",
    "Missing",
    "MustPassList",
    "conformity",
    "digest_of_cases",
    "known_lists",
    "known_versions",
    "listed_profiles",
    "must_pass_list",
    "parse_cases",
]

_FOLDER = "must_pass"
#: The status of a must-pass case without a record.
NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class MustPassList:
    """The must-pass list of a profile.

    Attributes:
        profile: the name of the profile.
        version: the version of the list, from 1.
        cases: the names of the cases, in the order of the suite.
        digest: see :func:`digest_of_cases`.
    """

    profile: str
    version: int
    cases: tuple[str, ...]
    digest: str

    @property
    def title(self) -> str:
        """The name of the list with its version: ``vision-f32 v1``."""
        return f"{self.profile} v{self.version}"

    @property
    def text(self) -> str:
        """The contents of the file."""
        return "\n".join(self.cases) + "\n"


@dataclass(frozen=True, slots=True)
class Missing:
    """A must-pass case that did not pass.

    Attributes:
        case: its name.
        op: its operator, or the part of the suite that it belongs to.
        status: its status, or ``not run``.
        reason: the reason of the status, in one line.
        weight: the operator's share of the nodes of real models.
        repro: the command that repeats the case; empty if it was not run.
    """

    case: str
    op: str
    status: str
    reason: str = ""
    weight: float = 0.0
    repro: str = ""


@dataclass(frozen=True, slots=True)
class Conformity:
    """The must-pass cases of a profile that passed, and those that did not.

    Attributes:
        required: the list.
        passed: the number of its cases that passed.
        missing: the other cases, those of the most used operators first.
    """

    required: MustPassList
    passed: int
    missing: tuple[Missing, ...]

    @property
    def conforms(self) -> bool:
        """True if every case of the list passed."""
        return not self.missing

    @property
    def verdict(self) -> str:
        """The verdict in one line: ``conforms to vision-f32 v1``."""
        if self.conforms:
            return f"conforms to {self.required.title}"
        return f"does not conform to {self.required.title}: {len(self.missing):,} missing"

    def by_operator(self) -> list[tuple[str, str, list[Missing]]]:
        """Return the missing cases by operator and status, those of the most used operators first."""
        groups: dict[tuple[str, str], list[Missing]] = {}
        for case in self.missing:
            groups.setdefault((case.op, case.status), []).append(case)
        return [(op, status, cases) for (op, status), cases in groups.items()]


@cache
def must_pass_list(profile: str) -> MustPassList | None:
    """Return the must-pass list of a profile, or None if it has none."""
    file = resources.files("lite_conformance") / _FOLDER / f"{profile}.txt"
    if not file.is_file():
        return None
    cases = parse_cases(file.read_text(encoding="utf-8"))
    return MustPassList(profile, max(known_versions(profile)), cases, digest_of_cases(cases))


def known_versions(profile: str) -> Mapping[int, str]:
    """Return the versions of a profile's list with the digest of each; empty for an unknown profile."""
    return known_lists().get(profile, {})


def listed_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that have a must-pass list."""
    return tuple(known_lists())


@cache
def known_lists() -> Mapping[str, Mapping[int, str]]:
    """Return the versions of all lists: profile -> number of the version -> digest of its cases."""
    file = resources.files("lite_conformance") / _FOLDER / "versions.json"
    versions = json.loads(file.read_text(encoding="utf-8"))
    return {name: {int(n): str(version["digest"]) for n, version in found.items()} for name, found in versions.items()}


def parse_cases(text: str) -> tuple[str, ...]:
    """Return the names in the text of a list.

    Raises:
        InputError: the list is empty, or a name repeats.
    """
    cases = tuple(line.strip() for line in text.splitlines() if line.strip())
    repeated = sorted({case for case in cases if cases.count(case) > 1}) if len(set(cases)) < len(cases) else []
    if repeated:
        raise InputError(f"a must-pass list names a case twice: {repeated[0]!r}; remove one of the lines")
    if not cases:
        raise InputError("a must-pass list names no case")
    return cases


def digest_of_cases(cases: Iterable[str]) -> str:
    """Return a digest of names of cases: the first 16 hexadecimal digits of SHA-256, whatever their order."""
    return hashlib.sha256("\n".join(sorted(cases)).encode()).hexdigest()[:16]


def conformity(required: MustPassList, records: Sequence[Record]) -> Conformity:
    """Judge records by a must-pass list.

    Records of a precision level below float32 do not count. If a case has several records, for example of several
    devices, all must have passed.
    """
    found: dict[str, list[Record]] = {}
    wanted = set(required.cases)
    for record in records:
        if record.case in wanted and not record.precision:
            found.setdefault(record.case, []).append(record)
    missing = []
    for case in required.cases:
        records_of_case = found.get(case, [])
        if not records_of_case:
            missing.append(Missing(case, case.partition("[")[0], NOT_RUN))
        elif bad := next((r for r in records_of_case if r.status is not Status.PASSED), None):
            op = bad.op or case.partition("[")[0]
            missing.append(Missing(case, op, bad.status.value, bad.reason or bad.expectation, bad.weight, bad.repro))
    missing.sort(key=lambda m: (-m.weight, m.op))
    return Conformity(required, len(required.cases) - len(missing), tuple(missing))
