"""All cases of one installed package: its operators, references, passes and formats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.op_table_cases import cases_of_tables
from lite_conformance.cases.plugins.brought import import_cases
from lite_conformance.cases.plugins.formats import format_cases
from lite_conformance.cases.plugins.importing import imported_plugins
from lite_conformance.cases.plugins.operators import (
    broken_cases,
    cases_without_own_table,
    operators_of,
    own_tables,
    reference_cases_of,
)
from lite_conformance.cases.plugins.passes import graph_cases_of_packages, pass_cases
from lite_conformance.judge.outcome import Failure, Outcome
from lite_core.errors import InputError
from lite_core.plugins import PluginManager, PluginRecord, default_plugins

__all__ = ["cases_of_package", "installed_package"]

_HOOKS = ("lite_backends", "lite_formats", "lite_ops", "lite_passes", "lite_commands")


def installed_package(name: str, plugins: PluginManager | None = None) -> str:
    """Return the name of the distribution that a package or plugin belongs to.

    Args:
        name: the distribution's name, ``lite-acme``, or the name of a plugin of it, ``acme``.
        plugins: the plugins; those of the process by default.

    Raises:
        InputError: there is no such package; the message lists those that are installed.
    """
    records = (plugins or default_plugins()).discover()
    wanted = _normalized(name)
    for names in ({r.distribution: r.distribution for r in records}, {r.name: r.distribution for r in records}):
        for known, distribution in names.items():
            if _normalized(known) == wanted:
                return distribution
    listed = ", ".join(sorted({r.distribution for r in records})) or "none"
    raise InputError(f"no package {name!r} with plugins is installed (here are: {listed}); `lite doctor` shows them")


def cases_of_package(distribution: str, plugins: PluginManager | None = None) -> Iterator[Case]:
    """Yield all cases of a package, in the order of the levels.

    Args:
        distribution: its name.
        plugins: the plugins; those of the process by default.
    """
    plugins = plugins or imported_plugins()
    import_cases(plugins)

    def of_package(hook: str) -> list[object]:
        return [item for record, item in plugins.ask(hook) if record.distribution == distribution]

    yield Case("plugin[loads]", 0, "plugins", partial(_loads, plugins=plugins, distribution=distribution))
    for format in of_package("lite_formats"):
        yield from format_cases(format)  # type: ignore[arg-type]
    definitions = [d for record, d in operators_of(plugins) if record.distribution == distribution]
    yield from cases_of_tables(own_tables(definitions))
    yield from cases_without_own_table(plugins, distribution)
    yield from reference_cases_of(definitions)
    yield from broken_cases(distribution)
    for pass_ in of_package("lite_passes"):
        yield from graph_cases_of_packages([pass_.name])  # type: ignore[attr-defined]
        yield from pass_cases(pass_)  # type: ignore[arg-type]


def _loads(context: Context, plugins: PluginManager, distribution: str) -> Outcome:
    """Require that every plugin of the package was imported, and that its hooks returned what they must."""
    records = [record for record in plugins.records() if record.distribution == distribution]
    for hook in _HOOKS:
        plugins.ask(hook)
    for record in records:
        if record.failed:
            raise Failure(
                f"plugin {record.label} failed at {record.phase}: {record.error}", details=record.failures[-1].traceback
            )
    return Outcome(note="; ".join([*map(_provided, records), *(w for r in records for w in r.warnings)]))


def _provided(record: PluginRecord) -> str:
    parts = [f"{hook.removeprefix('lite_')} {', '.join(names)}" for hook, names in record.provides.items() if names]
    return f"plugin {record.name!r} provides {'; '.join(parts) or 'nothing'}"


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
