"""Writing cases as folders: a model, and its inputs and expected outputs as tensors."""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Example, Settings
from lite_conformance.data_folders.index import CaseEntry, Index, ModelEntry, OutputEntry
from lite_conformance.judge.checks import Allowance
from lite_conformance.judge.compare import Array, Expected
from lite_conformance.judge.outcome import Skipped
from lite_conformance.judge.precision import FLOAT32
from lite_conformance.reports.record import Record
from lite_conformance.run.collector import Progress
from lite_conformance.run.selection import Selection
from lite_conformance.run.suite_digest import suite_digests
from lite_core.errors import InputError, LiteError, UnsupportedOperatorError
from lite_core.formats import WritesModels
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, default_plugins

__all__ = ["MODEL", "data_set_folder", "export", "require_onnx", "tensor_file", "writer_of_onnx"]

MODEL = "model.onnx"
_MAX_NAME_LENGTH = 100
_DISTRIBUTIONS = ("lite-core", "lite-conformance", "lite-onnx", "numpy", "hypothesis")


def export(
    folder: Path,
    settings: Settings,
    selection: Selection,
    *,
    plugins: PluginManager | None = None,
    progress: Progress | None = None,
) -> Index:
    """Write the selected cases that are data, and the index.

    Args:
        folder: an empty folder, or one that does not exist.
        settings: settings of the suite; the backend is ignored.
        selection: the cases.
        plugins: the plugins, one of which writes ONNX models; those of the process by default.
        progress: called after each case with a record that names it, and the number of all cases.

    Returns:
        The index, with the cases that were left out.

    Raises:
        InputError: the folder is not empty, ONNX models cannot be written here, or no case is selected.
        OSError: a file cannot be written.
    """
    write = writer_of_onnx(plugins or default_plugins()).write
    require_onnx()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} exists and is not an empty folder: name a new one")
    chosen = selection.choose(settings)
    folder.mkdir(parents=True, exist_ok=True)
    index = Index(_versions(), suite_digests(), _settings(settings), selection.describe())
    names: set[str] = set()
    for case in chosen:
        reason = _reason_against(case)
        if not reason:
            try:
                with _no_warnings():
                    index.cases.append(_export_case(folder, case, settings, names, write))
            except UnsupportedOperatorError as error:
                reason = "; ".join(dict.fromkeys(problem.reason for problem in error.problems))
            except (LiteError, Skipped) as error:
                reason = " ".join(str(error).split())
        if reason:
            index.left_out.setdefault(reason, []).append(case.name)
        if progress is not None:
            progress(Record(case.name, case.level, case.suite), len(chosen))
    index.write(folder)
    return index


def writer_of_onnx(plugins: PluginManager) -> WritesModels:
    """Return the format that writes ONNX models.

    Raises:
        InputError: no plugin provides it.
    """
    for _, format_ in plugins.ask("lite_formats"):
        if format_.name == "onnx" and isinstance(format_, WritesModels):
            return format_
    raise InputError("no installed plugin writes ONNX models, which exported cases are: pip install lite-onnx")


def require_onnx() -> None:
    """Check that tensors can be read and written.

    Raises:
        InputError: the package onnx is not installed.
    """
    try:
        import onnx  # noqa: F401 - whether it is installed
    except ImportError as error:
        raise InputError(
            f"tensors of ONNX are read and written by the package onnx ({error}): pip install 'lite-conformance[onnx]'"
        ) from error


def data_set_folder(model: Path, number: int) -> Path:
    """Return the folder of a data set: ``NAME/test_data_set_0``."""
    return model / f"test_data_set_{number}"


def tensor_file(folder: Path, kind: str, number: int) -> Path:
    """Return the file of a tensor of a data set: ``input_0.pb``."""
    return folder / f"{kind}_{number}.pb"


def _reason_against(case: Case) -> str:
    """Return why a case is no folder; empty if it is one."""
    if case.name.endswith(",optimized]"):
        return "it has the data of the case without `optimized`"
    if case.examples is None:
        return f"{case.suite}: not a graph with inputs and expected outputs"
    return ""


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Hide the warnings of the writer, which name a file but no case: some ranks depend on data by intention."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


def _export_case(
    folder: Path, case: Case, settings: Settings, names: set[str], write: Callable[[Graph, Path], None]
) -> CaseEntry:
    assert case.examples is not None
    models: list[ModelEntry] = []
    graph: Graph | None = None
    try:
        for example in case.examples(settings):
            if example.graph is not graph:
                graph = example.graph
                models.append(ModelEntry(_folder_name(case.name, len(models), names), []))
                (folder / models[-1].folder).mkdir()
                write(graph, folder / models[-1].folder / MODEL)
            sets = models[-1].data_sets
            sets.append(_write_data_set(data_set_folder(folder / models[-1].folder, len(sets)), example))
    except BaseException:
        for model in models:  # what is left out leaves nothing behind
            _remove(folder / model.folder)
        raise
    return CaseEntry(case.name, case.level, case.suite, case.op, case.dtype, models)


def _write_data_set(folder: Path, example: Example) -> list[OutputEntry]:
    from lite_conformance.data_folders.tensor_files import write_tensor

    folder.mkdir()
    for number, (value, array) in enumerate(zip(example.graph.inputs, example.inputs)):
        write_tensor(tensor_file(folder, "input", number), value.name, array)
    entries = []
    for number, want in enumerate(example.expected):
        write_tensor(tensor_file(folder, "output", number), want.name, _in_own_type(want))
        magnitude: float | str = 0.0
        if isinstance(want.magnitude, np.ndarray) and want.magnitude.ndim and want.dtype.is_floating:
            file = tensor_file(folder, "magnitude", number)
            write_tensor(file, want.name, want.magnitude.astype(np.float64))
            magnitude = file.name
        elif want.dtype.is_floating:
            magnitude = float(want.magnitude)
        unspecified = ""
        if want.unspecified is not None:
            file = tensor_file(folder, "unspecified", number)
            write_tensor(file, want.name, np.ascontiguousarray(want.unspecified, bool))
            unspecified = file.name
        entries.append(_output_entry(want, example, magnitude, unspecified))
    return entries


def _output_entry(want: Expected, example: Example, magnitude: float | str, unspecified: str) -> OutputEntry:
    if not want.dtype.is_floating:
        return OutputEntry(want.name, want.dtype.value, unspecified=unspecified)
    # The bounds of a precision level depend on the result: only `judge` knows them.
    tolerance = Allowance(precision=FLOAT32).tolerance(example.numerics, example.dtype or want.dtype)
    return OutputEntry(
        want.name,
        want.dtype.value,
        tolerance.rtol,
        tolerance.atol,
        magnitude,
        want.every_bit,
        want.or_zero,
        unspecified,
    )


def _in_own_type(want: Expected) -> Array:
    """Return the expected output in its element type; numbers beyond its range become infinities."""
    with np.errstate(all="ignore"):
        rounded: Array = np.ascontiguousarray(want.array.astype(want.dtype.numpy)).reshape(want.array.shape)
        return rounded


def _folder_name(case: str, number: int, taken: set[str]) -> str:
    """Return a name that every file system allows; different ones differ in more than upper and lower case.

    ONNX's own runner requires that it begins with ``test_``.
    """
    plain = "test_" + re.sub(r"[^A-Za-z0-9.-]+", "_", case).strip("_.")
    if len(plain) > _MAX_NAME_LENGTH:
        plain = f"{plain[:_MAX_NAME_LENGTH]}_{zlib.crc32(case.encode()):08x}"
    if number:
        plain = f"{plain}-{number}"
    name, count = plain, 1
    while name.lower() in taken:
        count += 1
        name = f"{plain}-{count}"
    taken.add(name.lower())
    return name


def _remove(folder: Path) -> None:
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    folder.rmdir()


def _settings(settings: Settings) -> dict[str, Any]:
    return {
        "seed": settings.seed,
        "examples": settings.examples,
        "precision": settings.precision,
        "models": list(settings.models),
        "node_data": settings.node_data,
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
