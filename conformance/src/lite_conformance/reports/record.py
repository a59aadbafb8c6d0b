"""The record of a case and the report of a run: the schema of the JSON report."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from lite_conformance.judge.compare import Measured
from lite_conformance.judge.tolerances import Tolerance
from lite_conformance.reports.files import replace_text
from lite_core.errors import InputError

__all__ = ["SCHEMA_VERSION", "Record", "Report", "Status", "parse_report", "read_report"]

#: The version of the JSON report, incremented when a field is removed or changes its meaning.
SCHEMA_VERSION = 1


class Status(str, Enum):
    """The status of a case. Compares equal to its name in lower case."""

    PASSED = "passed"
    FAILED = "failed"
    #: Fails, as the backend's package declares.
    XFAIL = "xfail"
    #: Passes, although the backend's package declares a failure: the entry must be removed.
    XPASS = "xpass"
    #: The backend answered No, or its package declares the case unsupported.
    UNSUPPORTED = "unsupported"
    #: A device, file or package that is not part of the backend is missing.
    SKIPPED = "skipped"
    #: The process died.
    CRASHED = "crashed"
    #: The case exceeded its time limit.
    HUNG = "hung"
    #: The suite or its input is wrong.
    ERROR = "error"

    def __str__(self) -> str:
        return self.value

    @property
    def is_bad(self) -> bool:
        """True if a case with this status makes the run fail."""
        return self in (Status.FAILED, Status.XPASS, Status.CRASHED, Status.HUNG, Status.ERROR)

    @property
    def is_executed(self) -> bool:
        """True if the backend executed something for a case with this status."""
        return self not in (Status.UNSUPPORTED, Status.SKIPPED)


@dataclass(slots=True)
class Record:
    """The result of one case.

    Attributes:
        case: the case's name: ``Conv[f32,n1c3h8w8,o4,k3s2p1]``.
        level: 0 to 5.
        suite: the part of the suite it belongs to: ``probe``, ``contract``, ``ops``, ``onnx``, ``graphs``,
            ``models``, ``stress`` or ``expectations``; of a package also ``plugins``, ``formats``, ``references``
            or ``passes``.
        op: the operator with its domain, or empty.
        dtype: the element type under test, such as ``float32``, or empty.
        backend: the backend's name.
        device: the device's label and name.
        status: the status.
        reason: one line: why the status is not ``passed``.
        details: further lines: a traceback, the log of a crashed process.
        expectation: the reason that the backend's package gives for ``unsupported`` or ``xfail``.
        tolerance: the tolerance in force; None if nothing was compared.
        measured: the error measures; None if nothing was compared.
        seed: seed of the random numbers.
        seconds: duration.
        examples: number of sets of inputs that ran.
        precision: the precision level in force; empty for float32.
        weight: the operator's share of the nodes of real models.
        repro: the command that repeats the case.
    """

    case: str
    level: int
    suite: str
    op: str = ""
    dtype: str = ""
    backend: str = ""
    device: str = ""
    status: Status = Status.PASSED
    reason: str = ""
    details: str = ""
    expectation: str = ""
    tolerance: Tolerance | None = None
    measured: Measured | None = None
    seed: int = 0
    seconds: float = 0.0
    examples: int = 0
    precision: str = ""
    weight: float = 0.0
    repro: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values.

        Fields with default values are omitted, except the first three and the status. Infinite and NaN numbers
        become the strings ``"inf"`` and ``"nan"``.
        """
        plain: dict[str, Any] = _json_numbers(asdict(self))
        always = ("case", "level", "suite", "status")
        return {k: v for k, v in plain.items() if k in always or v not in ("", 0, None)}

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Record:
        """Create a record from the values that :meth:`to_dict` returned; unknown fields are ignored."""
        known = {k: v for k, v in given.items() if k in Record.__slots__}
        known["status"] = Status(known["status"])
        for key, kind in (("tolerance", Tolerance), ("measured", Measured)):
            if known.get(key) is not None:
                fields = {k: _number(v) for k, v in known[key].items() if k in kind.__slots__}
                for name, value in fields.items():
                    _require(name, value, str if name in _TEXTS else (bool, int, float, list, tuple))
                known[key] = kind(**fields)
        if known.get("tolerance") is not None:
            known["tolerance"] = _with_tuple(known["tolerance"])
        record = Record(**known)
        for key in _RECORD_TEXTS:
            _require(key, getattr(record, key), str)
        for key in ("level", "seed", "examples"):
            _require(key, getattr(record, key), int)
        for key in ("seconds", "weight"):
            _require(key, getattr(record, key), (int, float))
        return record


_TEXTS = ("source", "reason", "worst")
_RECORD_TEXTS = (
    *("case", "suite", "op", "dtype", "backend", "device"),
    *("reason", "details", "expectation", "precision", "repro"),
)


def _require(key: str, value: object, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{key} is {value!r}")


def _with_tuple(tolerance: Tolerance) -> Tolerance:
    rtol, atol = tolerance.default
    fields = {k: getattr(tolerance, k) for k in Tolerance.__slots__}
    return Tolerance(**{**fields, "default": (rtol, atol)})


@dataclass(slots=True)
class Report:
    """The report of a run.

    Attributes:
        header: ``backend``, ``device``, ``versions`` (distribution to version), ``suite`` (digests of the references,
            tolerances and cases), ``stack`` (the software below the backend, name to version), ``plugin``,
            ``platform``, ``options`` and ``started`` (ISO 8601); ``incomplete`` if not all selected cases ran: why, and
            how many; ``resumed`` if an interrupted run was continued.
        records: the records, in the order of the suite.
        seconds: wall-clock time.
    """

    header: dict[str, Any] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    seconds: float = 0.0

    def counts(self) -> dict[str, int]:
        """Return the number of records of each status, and of executed ones as ``executed``."""
        found = Counter(r.status for r in self.records)
        counts = {status.value: found[status] for status in Status}
        counts["executed"] = sum(r.status.is_executed for r in self.records)
        return counts

    def something_ran(self) -> bool:
        """Return True if the backend computed anything, or, in a run of level 0 only, if a case was executed."""
        if any(record.level > 0 for record in self.records):
            return any(record.examples > 0 for record in self.records)
        return any(record.status.is_executed for record in self.records)

    @property
    def incomplete(self) -> str:
        """Why not all selected cases ran, and how many ran; empty for a complete run."""
        return str(self.header.get("incomplete") or "")

    @property
    def is_interrupted(self) -> bool:
        """True if the run was interrupted."""
        return self.incomplete.startswith("interrupted")

    def weighted_pass_rate(self) -> float | None:
        """Return the pass rate of the operators that ran, weighted by their share of the nodes of real models.

        The pass rate of an operator is the share of its cases of level 2 in this report that passed. None if the
        report has no case of an operator that real models use. :meth:`weight_covered` tells how much the rate says.
        """
        shares = self._operator_cases()
        total = sum(rs[0].weight for rs in shares.values())
        if not total:
            return None
        # The losses are summed, so that a run without losses has a rate of exactly 1.
        lost = sum(rs[0].weight * sum(r.status is not Status.PASSED for r in rs) / len(rs) for rs in shares.values())
        return 1 - lost / total

    def weight_covered(self) -> float:
        """Return the share of the nodes of real models, 0 to 1, whose operators have cases of level 2 in the report."""
        return min(1.0, round(sum(records[0].weight for records in self._operator_cases().values()), 4))

    def _operator_cases(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for record in self.records:
            if record.op and record.level == 2:
                found.setdefault(record.op, []).append(record)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the JSON file."""
        return {
            "schema_version": SCHEMA_VERSION,
            "header": self.header,
            "seconds": self.seconds,
            "counts": self.counts(),
            "weighted_pass_rate": self.weighted_pass_rate(),
            "weight_covered": self.weight_covered(),
            "records": [record.to_dict() for record in self.records],
        }

    def to_text(self) -> str:
        """Return the contents of the JSON file as text, one record on a line."""
        whole = self.to_dict()
        records = ",\n".join(json.dumps(record) for record in whole.pop("records"))
        return f'{json.dumps(whole, indent=1)[:-2]},\n "records": [\n{records}\n]}}\n'

    def write(self, file: str | os.PathLike[str]) -> None:
        """Write the report as JSON."""
        replace_text(file, self.to_text())


def read_report(file: str | os.PathLike[str]) -> Report:
    """Read a JSON report.

    Raises:
        InputError: the file is not a report, or has an unknown schema version.
    """
    name = os.fspath(file)
    try:
        given = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{name!r} is not a conformance report: {error}") from error
    return parse_report(given, name)


def parse_report(given: Any, name: str) -> Report:
    """Return the report with the contents of a JSON file, as Python values.

    Args:
        given: the values.
        name: the name of the file, for messages.

    Raises:
        InputError: the values are no report, or have an unknown schema version.
    """
    version = given.get("schema_version") if isinstance(given, dict) else None
    if version != SCHEMA_VERSION or not isinstance(given.get("records"), list):
        raise InputError(
            f"{name!r} is not a conformance report of schema version {SCHEMA_VERSION} (it says {version!r}); "
            "write it again with `lite-conformance --backend NAME --json FILE`"
        )
    header, seconds = given.get("header", {}), given.get("seconds", 0.0)
    if not isinstance(header, dict) or not isinstance(seconds, (int, float)):
        raise InputError(f"{name!r} is damaged: header must be an object and seconds a number")
    records = []
    for number, record in enumerate(given["records"], 1):
        try:
            records.append(Record.from_dict(record))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise InputError(f"{name!r} is damaged: record {number}: {type(error).__name__}: {error}") from error
    return Report(header, records, float(seconds))


def _json_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _json_numbers(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_numbers(v) for v in value]
    if isinstance(value, Status):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _number(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value
