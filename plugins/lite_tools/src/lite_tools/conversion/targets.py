"""The targets of a conversion, and their answers about the nodes of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lite_core.backend import Backend, DescribesTarget, Device, HasLevels, No, Unavailable, Yes
from lite_core.errors import InputError
from lite_core.ir import Graph, Node
from lite_core.plugins import PluginManager, available_backends, backend_sources, left_out_backends
from lite_core.plugins.contracts import fault_text
from lite_core.plugins.known import known_distributions
from lite_core.schedule import Candidate
from lite_core.schedule.placement import ask
from lite_core.schedule.probing import probe
from lite_tools.commands.next_commands import typed_command, with_correction
from lite_tools.commands.suggestions import did_you_mean, similar_names

__all__ = ["Coverage", "Refusal", "Target", "at_levels", "coverage_of", "fallback_candidates", "find_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """A backend that a model is converted for.

    Attributes:
        name: the backend's name.
        plugin: the distribution of the backend, with its version: ``"lite-x86 0.1.0"``.
        candidate: the device to ask and to compile for; None if there is none and the backend describes none.
        absent: the reason why this machine has no device of it; empty if it has one.
        level: the level of the processor that the code is for; empty for that of the device.
        requested: the names that stood for this level: its own, or those of processors.
    """

    name: str
    plugin: str
    candidate: Candidate | None
    absent: str = ""
    level: str = ""
    requested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that a target cannot run.

    Attributes:
        node: the node's name.
        op: its operator.
        origin: its origin in the model that was read; empty if unknown.
        reason: the reason that the backend gave.
    """

    node: str
    op: str
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """The answers of a target about the nodes of a graph.

    Attributes:
        target: the target.
        nodes: the number of nodes that it was asked about.
        refusals: the nodes that it refuses; None if there is no device to ask.
        driven_by_host: the number of nodes with sub-graphs (If, Loop) that the target refuses and host runs, with the
            sub-graphs on the target. The target was asked about the nodes in the sub-graphs instead.
    """

    target: Target
    nodes: int
    refusals: tuple[Refusal, ...] | None
    driven_by_host: int = 0

    @property
    def supported(self) -> int | None:
        """The number of nodes that the target supports; None if unknown."""
        return None if self.refusals is None else self.nodes - len(self.refusals)


def find_targets(requested: str | Sequence[str], plugins: PluginManager) -> tuple[list[Target], list[str]]:
    """Return the requested targets, and a message for each name that is not a target.

    Args:
        requested: names of backends, in a list or separated by commas; ``"auto"`` stands for every backend that has a
            device on this machine, best first, or ``host`` if there is none.
        plugins: the plugins.

    Raises:
        InputError: ``requested`` contains no names.
    """
    names = [name.strip() for name in requested.split(",")] if isinstance(requested, str) else list(requested)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"targets must be 'auto' or names of backends, such as ['x86', 'opencl'], not {requested!r}")
    backends = available_backends(plugins)
    if names == ["auto"]:
        return _present_targets(backends, backend_sources(plugins)), []
    targets, problems = [], []
    for name in dict.fromkeys(names):
        if name in backends:
            targets.append(_target(backends[name], backend_sources(plugins)[name]))
        else:
            problems.append(_missing(name, sorted(backends), plugins))
    return targets, problems


def at_levels(targets: Sequence[Target], levels: Sequence[str]) -> list[Target]:
    """Return each target once for each of the levels that its backend has; unchanged if it has none of them.

    Of two levels of a target, the one that needs more features comes first: a session uses the first that it can run.

    Raises:
        InputError: no backend has one of the levels, or none of the backends has levels.
    """
    unknown: dict[str, list[str]] = {level: [] for level in levels}
    found: list[Target] = []
    for target in targets:
        found += _levels_of(target, unknown) or [target]
    known = {level for target in found for level in target.requested}
    problems = [problem for level, answers in unknown.items() if level not in known for problem in answers]
    if problems:
        wrong = next(level for level, answers in unknown.items() if level not in known and answers)
        existing = re.findall(r"[\w+.-]+", unknown[wrong][0].partition("levels are")[2])
        error = InputError("; ".join(problems))
        raise with_correction(error, wrong, similar_names(wrong, existing), typed_command(dropped=("--cpu",)))
    if not known:
        raise InputError(f"none of the targets has levels of processors, given: {', '.join(levels)}")
    return found


def _levels_of(target: Target, levels: Mapping[str, list[str]]) -> list[Target]:
    """Return a target once for each level; nothing if its backend has none of them.

    Args:
        target: the target.
        levels: the names of levels; each receives the backend's answer if it has no such level.
    """
    if target.candidate is None or not isinstance(target.candidate.backend, HasLevels):
        return []
    present = frozenset() if target.absent else target.candidate.device.features
    found: dict[str, Target] = {}
    for level, problems in levels.items():
        try:
            device = target.candidate.backend.device_of_level(level)
        except InputError as error:
            problems.append(str(error))
            continue
        lacks = ", ".join(sorted(device.features - present))
        absent = target.absent or (lacks and f"this processor lacks {lacks}")
        candidate = target.candidate._replace(device=device)
        name = device.level or level
        requested = (*(found[name].requested if name in found else ()), level)
        found[name] = replace(target, candidate=candidate, absent=absent, level=name, requested=requested)
    return sorted(found.values(), key=lambda each: -len(each.candidate.device.features if each.candidate else ()))


def coverage_of(graph: Graph, target: Target) -> Coverage:
    """Ask a target about every node of a graph whose types are inferred."""
    if target.candidate is None:
        return Coverage(target, len(graph.nodes), None)
    answers = list(_answers(graph, target.candidate))
    refusals = tuple(
        Refusal(node.name, node.qualified_op, str(node.origin or ""), answer.reason)
        for node, answer in answers
        if isinstance(answer, No)
    )
    driven_by_host = sum(answer is None for _, answer in answers)
    return Coverage(target, len(answers) - driven_by_host, refusals, driven_by_host)


def _answers(graph: Graph, candidate: Candidate) -> Iterator[tuple[Node, Yes | No | None]]:
    """Yield each node with the answer; None for a control node that host runs, followed by its sub-graphs' nodes."""
    for node in graph.nodes:
        answer = ask(candidate, node)
        if node.subgraphs and isinstance(answer, No):
            yield node, None
            for body in node.subgraphs:
                yield from _answers(body, candidate)
        else:
            yield node, answer


def fallback_candidates(coverage: Coverage, targets: Sequence[Target], plugins: PluginManager) -> list[Candidate]:
    """Return the devices that may run nodes that a target refuses, in order of preference: other targets, then host.

    Devices of this machine are not combined with devices of other machines.

    Args:
        coverage: the target and its answers.
        targets: all targets if they may run its nodes; empty if only host may drive If and Loop.
        plugins: the plugins.
    """
    target = coverage.target
    same_machine = [t.candidate for t in targets if t.candidate and bool(t.absent) is bool(target.absent)]
    last = _target(available_backends(plugins)["host"], "").candidate if targets or coverage.driven_by_host else None
    found = {c.device.backend: c for c in (*same_machine, last) if c and c.device.backend != target.name}
    return list(found.values())


def _present_targets(backends: dict[str, Backend], plugins: dict[str, str]) -> list[Target]:
    others = {name: backend for name, backend in backends.items() if name not in ("host", "null")}
    targets = [_target(backend, plugins[name], automatic=True) for name, backend in others.items()]
    present = [(t.candidate.device.score, t) for t in targets if t.candidate and not t.absent]
    present.sort(key=lambda pair: -pair[0])
    return [target for _, target in present] or [_target(backends["host"], plugins["host"])]


def _target(backend: Backend, plugin: str, *, automatic: bool = False) -> Target:
    found = probe(backend, plugin, automatic=automatic)
    if not isinstance(found, Unavailable):
        return Target(backend.name, plugin, Candidate(backend, found[0], source=plugin))
    absent = f"{found.reason}. {found.remedy}" if found.remedy else found.reason
    if not isinstance(backend, DescribesTarget):
        return Target(backend.name, plugin, None, absent)
    try:
        device: object = backend.target()
    except BaseException as error:  # a failing plugin is treated like a target that cannot be asked
        return Target(backend.name, plugin, None, f"{absent}; its target() failed with {fault_text(error)}")
    if not isinstance(device, Device):
        return Target(backend.name, plugin, None, f"{absent}; its target() returned {device!r}, which is not a Device")
    return Target(backend.name, plugin, Candidate(backend, device, source=plugin), absent)


def _missing(name: str, installed: Sequence[str], plugins: PluginManager) -> str:
    """Return the reason why a requested name is not a target, and a remedy."""
    if name == "auto":
        return "target 'auto' cannot be combined with others: name the targets, or only 'auto'"
    if name in left_out_backends(plugins):
        return f"target {name!r} is installed, but {left_out_backends(plugins)[name]}"
    base, separator, _ = name.partition(":")
    if separator:
        return f"target {name!r}: targets are backends, not single devices: name {base!r}"
    distribution = known_distributions("backends").get(name)
    broken = next(
        (r for r in plugins.records() if r.failed and (r.name == name or r.distribution == distribution)), None
    )
    if broken is not None:
        return (
            f"target {name!r}: its plugin {broken.label} is installed and failed at {broken.phase}: {broken.error}; "
            "`lite doctor` shows the details"
        )
    meant = did_you_mean(name, [*installed, "auto"]) or "none of Lite's packages contains it"
    remedy = f"pip install {distribution}" if distribution else meant
    return f"target {name!r}: no installed plugin has this backend (installed are: {', '.join(installed)}): {remedy}"
