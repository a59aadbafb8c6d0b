"""Inspecting a plugin for `lite plugins validate`: hooks that Lite does not see, and methods that it cannot call."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from typing import Any

from lite_core.backend import Backend, Options, Partition, Yes
from lite_core.ir import Graph
from lite_core.plugins import PluginManager
from lite_core.plugins.hooks import HookSpecs
from lite_core.schedule.probing import probe
from lite_tools.checking import misspelt_members
from lite_tools.checking.signatures import wrong_signatures

__all__ = ["HOOKS", "hook_problems", "object_problems"]

#: The hooks that a plugin may implement, with what their items are.
HOOKS = {
    "lite_backends": "backend",
    "lite_formats": "format",
    "lite_ops": "operator",
    "lite_passes": "pass",
    "lite_commands": "command",
}
assert HOOKS.keys() == {name for name in vars(HookSpecs) if name.startswith("lite_")}


def hook_problems(plugin: object) -> list[tuple[str, str, str]]:
    """Return the functions of a plugin that look like hooks and are none: level, name and problem with its remedy."""
    return list(_hook_problems(plugin))


def _hook_problems(plugin: object) -> Iterator[tuple[str, str, str]]:
    for name in dir(plugin):
        found = getattr(plugin, name, None)
        if not callable(found) or inspect.isclass(found):
            continue
        is_marked = hasattr(found, "lite_impl")
        meant = next(iter(difflib.get_close_matches(name, HOOKS, 1, 0.8)), "")
        if is_marked and name not in HOOKS:
            hint = f"did you mean {meant}?" if meant else f"the hooks are {', '.join(HOOKS)}"
            yield "error", name, f"is marked with @hookimpl, but there is no such hook: {hint}"
        elif name in HOOKS and not is_marked:
            yield "error", name, "lacks the decorator @hookimpl, so it is never called: add it"
        elif meant and not is_marked and name.startswith("lite"):
            yield "warning", name, f"looks like a misspelt {meant}: rename it and add @hookimpl, or rename it otherwise"


def object_problems(plugins: PluginManager, hook: str) -> list[tuple[str, str, str]]:
    """Return the faults of what a hook provides: what it is, the problem, and the remedy."""
    kind = HOOKS[hook]
    found = []
    for _, item in plugins.ask(hook) if kind != "command" else ():
        problems = [(problem, "change its parameters") for problem in wrong_signatures(item, kind)]
        if kind == "backend":
            problems += [*_members(item, "backend"), *_compiled(item)]
        who = f"{kind} {getattr(item, 'qualified_name', item.name)!r}"
        found += [(who, *problem) for problem in problems]
    return found


def _members(checked: object, kind: Any) -> Iterator[tuple[str, str]]:
    for member, meant in misspelt_members(checked, kind):
        yield f"{member} is never used: it looks like a misspelt {meant}", "rename it"


def _compiled(backend: Backend) -> Iterator[tuple[str, str]]:
    """Compile a small graph, if the backend has a device that supports it, and inspect the executable."""
    devices: Any = probe(backend)
    if not isinstance(devices, list) or not devices:
        return
    graph = _small_graph()
    try:
        if not isinstance(backend.supports(graph.nodes[0], devices[0]), Yes):
            return
    except BaseException:  # recorded when the backend is tried
        return
    try:
        executable = backend.compile(Partition("validate", graph), devices[0], Options())
    except Exception as error:
        problem = f"compile() fails for Relu, which supports() accepts, with {type(error).__name__}: {error}"
        yield problem, "let supports() refuse what compile() cannot compile"
        return
    wrong = [(problem, "change its parameters") for problem in wrong_signatures(executable, "executable")]
    for problem, remedy in (*wrong, *_members(executable, "executable")):
        yield f"its {type(executable).__name__}: {problem}", remedy


def _small_graph() -> Graph:
    from lite_core.builder import GraphBuilder

    builder = GraphBuilder("small")
    builder.output(builder.add("Relu", [builder.input("x", "float32", [1, 4])]), "y")
    return builder.build()
