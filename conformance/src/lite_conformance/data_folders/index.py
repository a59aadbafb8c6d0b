"""The file ``index.json`` of a folder of cases: names, tolerances, and what the folder was made with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lite_conformance.cases.case import Settings
from lite_conformance.reports.files import replace_text
from lite_core.errors import InputError

__all__ = ["FILE_NAME", "RULE", "SCHEMA_VERSION", "CaseEntry", "Index", "ModelEntry", "OutputEntry", "read_index"]

FILE_NAME = "index.json"
#: The version of the file, incremented when a field is removed or changes its meaning.
SCHEMA_VERSION = 1

RULE = (
    "An element of an output passes if |actual - expected| <= max(atol * magnitude, rtol * |expected|), or if the "
    "error is at most the smallest normal number of its type. NaN passes for NaN, and an infinity for the same "
    "infinity. Integers and booleans must be equal. With every_bit, zeros must have the expected sign and subnormal "
    "numbers the expected value; with or_zero, a subnormal number may be zero. Elements that are true in unspecified "
    "are not compared."
)


@dataclass(frozen=True, slots=True)
class OutputEntry:
    """The tolerance of an output, see :data:`RULE`.

    Attributes:
        name: the output's name in the model.
        dtype: its element type.
        rtol: relative to each expected element.
        atol: relative to the magnitude.
        magnitude: one number, or the file with one for each element.
        every_bit: see the rule.
        or_zero: see the rule.
        unspecified: the file that tells which elements are not compared; empty if all are.
    """

    name: str
    dtype: str
    rtol: float = 0.0
    atol: float = 0.0
    magnitude: float | str = 0.0
    every_bit: bool = False
    or_zero: bool = False
    unspecified: str = ""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A folder with a model: its name, and the outputs of each data set."""

    folder: str
    data_sets: list[list[OutputEntry]]


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """A case of the suite and its folders: one, or one for each drawn example."""

    case: str
    level: int
    suite: str
    op: str
    dtype: str
    models: list[ModelEntry]


@dataclass(slots=True)
class Index:
    """The contents of the file.

    Attributes:
        versions: the distributions that the folder was made with.
        suite: digests of references, tolerances and cases: results are judged by the same.
        settings: the settings that the inputs depend on: ``seed``, ``examples``, ``precision``, ``models`` and
            ``node_data``.
        selection: the options that selected the cases.
        cases: the cases.
        left_out: the cases that are no folders, by reason.
    """

    versions: dict[str, str]
    suite: dict[str, str]
    settings: dict[str, Any]
    selection: dict[str, Any]
    cases: list[CaseEntry] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def settings_for(self, backend: str, expectations: str | None) -> Settings:
        """Return the settings of the suite for judging a backend."""
        given = {**self.settings, "models": tuple(self.settings["models"])}
        return Settings(backend, **given, expectations=expectations)

    def write(self, folder: Path) -> None:
        """Write the file, one case on a line."""
        whole = {"schema_version": SCHEMA_VERSION, "rule": RULE, **asdict(self)}
        del whole["cases"]
        cases = ",\n".join(json.dumps(_without_defaults(asdict(entry))) for entry in self.cases)
        text = f'{json.dumps(whole, indent=1)[:-2]},\n "cases": [\n{cases}\n]}}\n'
        replace_text(folder / FILE_NAME, text)


def read_index(folder: Path) -> Index:
    """Read the file of a folder.

    Raises:
        InputError: there is no such file, it is damaged, or it has an unknown schema version.
    """
    file = folder / FILE_NAME
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{str(folder)!r} is no folder of cases: {FILE_NAME} cannot be read: {error}; "
            "`lite-conformance export FOLDER` writes one"
        ) from error
    version = given.get("schema_version") if isinstance(given, dict) else None
    if version != SCHEMA_VERSION:
        raise InputError(f"{file} has schema version {version!r}, expected {SCHEMA_VERSION}; export the cases again")
    try:
        cases = [_case(entry) for entry in given["cases"]]
        kept = {key: given[key] for key in ("versions", "suite", "settings", "selection", "left_out")}
        return Index(**kept, cases=cases)
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{file} is damaged: {type(error).__name__}: {error}; export the cases again") from error


def _case(given: Mapping[str, Any]) -> CaseEntry:
    models = [
        ModelEntry(model["folder"], [[OutputEntry(**output) for output in outputs] for outputs in model["data_sets"]])
        for model in given["models"]
    ]
    return CaseEntry(**{**given, "models": models})


def _without_defaults(entry: Any) -> Any:
    """Return an entry without the fields of outputs that have their defaults."""
    if isinstance(entry, Mapping):
        is_output = "rtol" in entry
        kept = {k: v for k, v in entry.items() if not is_output or k in _ALWAYS or v not in (False, "")}
        return {key: _without_defaults(value) for key, value in kept.items()}
    if isinstance(entry, Sequence) and not isinstance(entry, str):
        return [_without_defaults(one) for one in entry]
    return entry


_ALWAYS = ("name", "dtype", "rtol", "atol", "magnitude")
