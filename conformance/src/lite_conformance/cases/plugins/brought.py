"""The cases that installed packages bring for their own operators, passes and formats.

A package names a module by an entry point of the group ``lite.conformance``; only the suite imports it::

    [project.entry-points."lite.conformance"]
    acme = "lite_acme.cases"

When it is imported, the module registers tables: with :func:`lite_conformance.cases.op_cases.table` for operators,
and with the functions of this module for passes and formats. A module that fails is recorded with its package, and
nothing that it registered is used.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_conformance.cases import op_cases
from lite_conformance.cases.graphs.draft import GraphTable
from lite_conformance.cases.op_cases import OpTable
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.plugins.files import FileTable
from lite_conformance.cases.plugins.importing import imported_plugins
from lite_core import ops
from lite_core.plugins import PluginManager
from lite_core.plugins.installed import EntryPoint, installed_entry_points

__all__ = [
    "ENTRY_POINT_GROUP",
    "BrokenCases",
    "every_table",
    "file_table",
    "file_tables",
    "graph_table",
    "graph_tables",
    "import_cases",
]

ENTRY_POINT_GROUP = "lite.conformance"

#: The tables of the packages: graphs by the name of a pass, files by the name of a format.
graph_tables: dict[str, GraphTable] = {}
file_tables: dict[str, FileTable] = {}

#: Where the files of the suite, of the core and of Python's imports are.
_OTHER_FOLDERS = (Path(__file__).parents[2], Path(ops.__file__).parents[1], Path(importlib.__file__).parent)

#: Every module imported by this process, with what is wrong with it.
_imported: dict[tuple[str, str], BrokenCases | None] = {}


@dataclass(frozen=True, slots=True)
class BrokenCases:
    """A package whose cases cannot be used.

    Attributes:
        distribution: its name.
        reason: one sentence, which names the package and its module.
        details: the traceback.
    """

    distribution: str
    reason: str
    details: str


def graph_table(pass_name: str) -> GraphTable:
    """Create a table of graphs on which a pass is checked, in addition to the graphs of level 3.

    Args:
        pass_name: the ``name`` of the pass, which a plugin of the package provides.

    Raises:
        ValueError: the pass has a table.
    """
    if pass_name in graph_tables:
        raise ValueError(f"pass {pass_name!r} already has a table of graphs")
    return graph_tables.setdefault(pass_name, GraphTable())


def file_table(format_name: str) -> FileTable:
    """Create a table of model files with which the reader of a format is checked.

    Args:
        format_name: the ``name`` of the format, which a plugin of the package provides.

    Raises:
        ValueError: the format has a table.
    """
    if format_name in file_tables:
        raise ValueError(f"format {format_name!r} already has a table of files")
    return file_tables.setdefault(format_name, FileTable(format_name))


def every_table() -> list[OpTable]:
    """Return the tables of Lite's operators, then those that packages bring for the operators of plugins."""
    import_cases()
    return [*all_tables(), *(table for table in op_cases.tables() if table.is_of_plugin)]


def import_cases(
    plugins: PluginManager | None = None, entry_points: Iterable[EntryPoint] | None = None
) -> list[BrokenCases]:
    """Import the cases of all installed packages, each once in a process, and return the packages that failed.

    Args:
        plugins: the plugins whose operators, passes and formats the cases are for; those of the process by default.
        entry_points: the entry points of the group ``lite.conformance``; the installed ones by default.
    """
    entries = installed_entry_points(ENTRY_POINT_GROUP) if entry_points is None else entry_points
    by_package = sorted(entries, key=lambda e: (_distribution(e)[0], e.value))
    if by_package:
        all_tables()  # the suite's own tables first: of two tables for an operator, the second one fails
        plugins = plugins or imported_plugins()
        plugins.ask("lite_ops")  # adds the operators to the opset
        for entry in by_package:
            key = (_distribution(entry)[0], entry.value)
            if key not in _imported:
                _imported[key] = _import(entry, plugins)
    found = (_imported.get((_distribution(e)[0], e.value)) for e in by_package)
    return [broken for broken in found if broken is not None]


def _import(entry: EntryPoint, plugins: PluginManager) -> BrokenCases | None:
    registries: tuple[dict[Any, Any], ...] = (op_cases.registered_tables(), graph_tables, file_tables)
    before = [set(registry) for registry in registries]
    try:
        entry.load()
        _require_known("pass", graph_tables.keys() - before[1], [p.name for _, p in plugins.ask("lite_passes")])
        _require_known("format", file_tables.keys() - before[2], [f.name for _, f in plugins.ask("lite_formats")])
        for added in registries[0].keys() - before[0]:
            _require_buildable(op_cases.table_of(added[1], added[0]))
        for name in graph_tables.keys() - before[1]:
            _require_different_labels(name, graph_tables[name])
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        for registry, names in zip(registries, before):
            for added in registry.keys() - names:
                del registry[added]
        name, version = _distribution(entry)
        reason = (
            f"package {name} {version}: its conformance cases, in the module {entry.value}, cannot be used: "
            f"{type(error).__name__}: {error}{_line_of_author(error)}; correct, update or uninstall it"
        )
        return BrokenCases(name, reason, "".join(traceback.format_exception(type(error), error, error.__traceback__)))
    return None


def _require_known(kind: str, named: Iterable[str], known: Sequence[str]) -> None:
    for name in sorted(named):
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise ValueError(f"a table is for the {kind} {name!r}, which no plugin provides (here are: {listed})")


def _require_buildable(table: OpTable) -> None:
    """Build every case in one element type, and one case in every element type: contract cases use them, too."""
    seen: set[object] = set()
    for name, dtype, case in table.cases():
        if dtype not in seen or case.label not in seen:
            seen |= {dtype, case.label}
            try:
                case.build(dtype, 0)
            except Exception as error:
                raise ValueError(f"the case {name} does not fit its operator: {error}") from error


def _require_different_labels(pass_name: str, graphs: GraphTable) -> None:
    seen: set[tuple[str, str]] = set()
    for case in graphs:
        if (case.label, case.dtype.value) in seen:
            raise ValueError(f"pass {pass_name!r} already has a graph {case.label!r} in {case.dtype}")
        seen.add((case.label, case.dtype.value))


def _line_of_author(error: BaseException) -> str:
    """Return the file and line where the module of the package failed; empty if it is not in the traceback."""
    others = ("<", *map(str, _OTHER_FOLDERS))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(others)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    return (entry.dist.name, entry.dist.version) if entry.dist else ("unknown", "-")
