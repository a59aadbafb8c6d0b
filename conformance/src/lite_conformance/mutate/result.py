"""The results of a campaign, kept in a file with one JSON object a line, which grows as mutants are tried."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import lite_conformance.cases
import lite_conformance.judge
import lite_core.ops
from lite_core.errors import InputError

__all__ = ["Result", "append", "drop_incomplete_line", "fingerprint", "read_results"]


@dataclass(frozen=True, slots=True)
class Result:
    """The suite's finding about a mutant.

    Attributes:
        id: see :class:`lite_conformance.mutate.mutant.Mutant`.
        op: the operator.
        family: ``source``, ``behaviour`` or ``state``.
        kind: the kind of fault.
        killed: a case failed.
        level: the level of that case; -1 if none failed.
        case: its name.
        reason: the reason that the suite gave.
        suite: fingerprint of the cases and references; a survivor of another suite is tried again.
    """

    id: str
    op: str
    family: str
    kind: str
    killed: bool
    level: int
    case: str
    reason: str
    suite: str


def append(file: Path, result: Result) -> None:
    """Add a result to a file."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")


def drop_incomplete_line(file: Path) -> None:
    """Remove the last line of a file if the process that wrote it was ended in the middle."""
    content = file.read_bytes() if file.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        file.write_bytes(whole)


def read_results(files: Iterable[Path]) -> dict[str, Result]:
    """Return the last result of each mutant in some files, by its id. An incomplete last line is ignored.

    Raises:
        InputError: a line is no result.
    """
    results: dict[str, Result] = {}
    for file in files:
        lines = file.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            try:
                fields: dict[str, Any] = json.loads(line)
                results[fields["id"]] = Result(**fields)
            except (ValueError, TypeError, KeyError) as error:
                if number < len(lines):
                    raise InputError(
                        f"{file}, line {number}, is no result of a campaign ({error}); name a file that "
                        "`lite-conformance mutate --output` wrote"
                    ) from error
    return results


@cache
def fingerprint() -> str:
    """Return a fingerprint of the cases, the judge and the references."""
    digest = hashlib.sha256()
    for package in (lite_conformance.cases, lite_conformance.judge, lite_core.ops):
        for file in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
