"""Judging results that a runtime has computed elsewhere, from the folders of exported cases."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lite_conformance.cases.case import Case, Example, Settings
from lite_conformance.cases.catalogue import CaseFinder
from lite_conformance.cases.patterns import matches
from lite_conformance.data_folders.exporting import data_set_folder, require_onnx, tensor_file
from lite_conformance.data_folders.index import CaseEntry, Index, ModelEntry, read_index
from lite_conformance.judge.checks import Allowance, check_expected
from lite_conformance.judge.compare import Array
from lite_conformance.judge.outcome import Failure, Outcome, Refused, Skipped, merged
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.run.collector import Progress, header_of_run
from lite_conformance.run.declared import apply_expectation
from lite_conformance.run.executor import fill_record, start_record
from lite_conformance.run.expectations import Expectations, read_expectations
from lite_conformance.run.selection import Selection
from lite_conformance.run.suite_digest import suite_digests
from lite_core.errors import InputError, LiteError

__all__ = ["FAILED", "REFUSED", "judge"]

#: Files beside the data sets of a result, for a model that the runtime does not support, and for one that it failed to
#: run; the text is the reason.
REFUSED, FAILED = "refused.txt", "failed.txt"
_MAX_REASON = 500


def judge(
    folder: Path,
    results: Path,
    backend: str,
    *,
    device: str = "",
    stack: Mapping[str, str] | None = None,
    platform: str = "",
    cases: Sequence[str] = (),
    expectations: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare results with the truth, which is computed again, within the tolerances of the suite.

    Args:
        folder: the folder that :func:`lite_conformance.data_folders.exporting.export` wrote.
        results: a folder of the same form, with ``NAME/test_data_set_0/output_0.pb``.
        backend: the name of what computed the results, for the report.
        device: the device it ran on.
        stack: names and versions of its software.
        platform: its operating system and processor.
        cases: judge only cases that match one of these patterns.
        expectations: a ``conformance.toml``.
        progress: called with each record and the number of all cases.

    Returns:
        The report. It is incomplete if cases have no result.

    Raises:
        InputError: the folder is none of exported cases, or another version of the suite wrote it; a pattern matches no
            case; the file of expectations is wrong.
    """
    index = read_index(folder)
    _require_same_suite(folder, index)
    require_onnx()
    if not results.is_dir():
        raise InputError(f"there is no folder {str(results)!r} with results")
    settings = index.settings_for(backend, expectations)
    declared = read_expectations(Path(expectations)).at(settings.precision) if expectations else Expectations()
    chosen = [entry for entry in index.cases if not cases or any(matches(pattern, entry.case) for pattern in cases)]
    if not chosen:
        raise InputError(f"no case of {str(folder)!r} matches {' '.join(cases)}")
    start = time.perf_counter()
    finder, report = CaseFinder(settings), Report()
    for entry in chosen:
        record = _judged(_Results(folder, results, entry), _found(finder, entry), settings, declared)
        record.device = device
        record.repro = shlex.join(
            ["lite-conformance", "judge", str(folder), str(results), "--backend", backend, "--case", entry.case]
        )
        report.records.append(record)
        if progress is not None:
            progress(record, len(chosen))
    missing = sum(record.status is Status.SKIPPED for record in report.records)
    report.seconds = time.perf_counter() - start
    header: dict[str, Any] = {
        "backend": backend,
        "device": device,
        "versions": index.versions,
        "suite": index.suite,
        "stack": dict(stack or {}),
        "platform": platform,
        "expectations": declared.source,
    }
    if missing:
        header["incomplete"] = f"{len(chosen) - missing} of {len(chosen)} cases have results"
    selection = Selection(cases=tuple(cases))
    report.header = {
        **header_of_run(header, settings, selection, report.seconds, exported=index.selection),
        "results": str(results),
    }
    return report


def _require_same_suite(folder: Path, index: Index) -> None:
    here = suite_digests()
    differing = [name for name, digest in here.items() if index.suite.get(name) != digest]
    if differing:
        versions = ", ".join(f"{name} {version}" for name, version in index.versions.items())
        raise InputError(
            f"{str(folder)!r} was exported by another version of the suite ({versions}; other {', '.join(differing)}): "
            "judge with that version, or export the cases and run them again"
        )


def _found(finder: CaseFinder, entry: CaseEntry) -> Case:
    with suppress(KeyError):
        case = finder[entry.case]
        if case.examples is not None:
            return case
    raise InputError(f"the suite has no case {entry.case!r} with data here; export the cases again")


def _judged(results: _Results, case: Case, settings: Settings, declared: Expectations) -> Record:
    record = start_record(case, settings)
    entry = declared.find("unsupported", case.name)
    if entry is not None:
        record.status, record.reason, record.expectation = Status.UNSUPPORTED, entry.reason, entry.reason
        return record
    allowance = replace(declared.allowance(case.name), precision=case.precision(settings))
    fill_record(record, lambda: results.compare(case, settings, allowance))
    apply_expectation(record, declared)
    return record


class _Results:
    """The results of a case.

    Args:
        folder: the folder of exported cases.
        results: the folder of results.
        entry: the case.
    """

    def __init__(self, folder: Path, results: Path, entry: CaseEntry) -> None:
        self._folder = folder
        self._results = results
        self._entry = entry

    def compare(self, case: Case, settings: Settings, allowance: Allowance) -> Outcome:
        """Compare the outputs of all data sets.

        Raises:
            Failure: an output is wrong or missing.
            Refused: the runtime does not support a model.
            Skipped: there are no results.
            InputError: the folder is not what the suite exports.
        """
        for model in self._entry.models:
            self._require_result(model)
        outcomes = []
        for example, model, number in self._examples(case, settings):
            self._require_same_inputs(example, model, number)
            actual = self._outputs(example, model, number)
            try:
                outcome = check_expected(
                    example.graph,
                    example.inputs,
                    actual,
                    example.expected,
                    example.numerics,
                    allowance,
                    example.dtype,
                )
            except Failure as failure:
                failure.reason = f"{data_set_folder(Path(model.folder), number).as_posix()}: {failure.reason}"
                raise
            problem = example.task_error(actual) if example.task_error is not None else None
            if problem:
                raise Failure(f"the outputs are within tolerance, but do not solve the task: {problem}")
            outcomes.append(outcome)
        return merged(outcomes)

    def _examples(self, case: Case, settings: Settings) -> Iterator[tuple[Example, ModelEntry, int]]:
        """Yield each example with the model and the number of its data set."""
        assert case.examples is not None
        expected = [(model, number) for model in self._entry.models for number in range(len(model.data_sets))]
        examples = list(case.examples(settings))
        if len(examples) != len(expected):
            raise InputError(f"the case has {len(examples)} data sets, and {len(expected)} were exported")
        for example, (model, number) in zip(examples, expected):
            yield example, model, number

    def _require_result(self, model: ModelEntry) -> None:
        found = self._results / model.folder
        if (text := _text(found / REFUSED)) is not None:
            raise Refused(text or f"{REFUSED} gives no reason")
        if (text := _text(found / FAILED)) is not None:
            raise Failure(text or f"the runtime failed; {FAILED} gives no reason")
        if not found.is_dir():
            raise Skipped(f"there is no result: no folder {found}")

    def _require_same_inputs(self, example: Example, model: ModelEntry, number: int) -> None:
        """Require that the results are of these inputs: other versions of a library may have drawn others."""
        from lite_conformance.data_folders.tensor_files import read_tensor

        folder = data_set_folder(self._folder / model.folder, number)
        for index, (value, array) in enumerate(zip(example.graph.inputs, example.inputs)):
            file = tensor_file(folder, "input", index)
            exported = read_tensor(file, value.dtype)
            if exported.shape != array.shape or exported.tobytes() != array.tobytes():
                raise InputError(
                    f"{file} is not what the suite exports here: it was changed, or other versions wrote it"
                )

    def _outputs(self, example: Example, model: ModelEntry, number: int) -> list[Array]:
        from lite_conformance.data_folders.tensor_files import read_tensor

        folder = data_set_folder(self._results / model.folder, number)
        outputs = []
        for index, want in enumerate(example.expected):
            file = tensor_file(folder, "output", index)
            if not file.is_file():
                raise Failure(f"there is no output {want.name!r}: no file {file}")
            try:
                outputs.append(read_tensor(file, want.dtype))
            except LiteError as error:
                raise Failure(str(error)) from error
        return outputs


def _text(file: Path) -> str | None:
    """Return the text of a file in one line; None if there is no such file."""
    if not file.is_file():
        return None
    return " ".join(file.read_text(encoding="utf-8", errors="replace").split())[:_MAX_REASON]
