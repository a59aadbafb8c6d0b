"""The targets that a model is converted for, and asking each whether it can run every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lite_core.backend import Backend, DescribesTarget, Device, No, Unavailable, Yes
from lite_core.errors import InputError
from lite_core.ir import Graph, Node
from lite_core.plugins import PluginManager, available_backends, backend_sources, left_out_backends
from lite_core.plugins.known import backend_distribution
from lite_core.schedule import Candidate
from lite_core.schedule.devices import probe
from lite_core.schedule.placement import ask

__all__ = ["Coverage", "Refusal", "Target", "companions", "coverage_of", "find_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """A backend that a model is converted for.

    Attributes:
        name: the backend's name.
        plugin: distribution and version that bring it: ``"lite-x86 0.1.0"``.
        candidate: the device to ask and to compile for; None where there is none and the backend describes none.
        absent: why no device of it is on this machine, empty where one is.
    """

    name: str
    plugin: str
    candidate: Candidate | None
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that a target cannot run.

    Attributes:
        node: the node's name.
        op: its operator.
        origin: what it was in the model that was read, empty where nobody knows.
        reason: the backend's own words.
    """

    node: str
    op: str
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a target said about the nodes of a graph.

    Attributes:
        target: who was asked.
        nodes: how many nodes it was asked about.
        refusals: those that it cannot run; None where there is no device to ask.
        driven: how many nodes with sub-graphs (If, Loop) it leaves to host, which runs the sub-graphs on the target:
            it was asked about the nodes in there instead.
    """

    target: Target
    nodes: int
    refusals: tuple[Refusal, ...] | None
    driven: int = 0

    @property
    def supported(self) -> int | None:
        """How many nodes the target runs, None where that is not known."""
        return None if self.refusals is None else self.nodes - len(self.refusals)


def find_targets(requested: str | Sequence[str], plugins: PluginManager) -> tuple[list[Target], list[str]]:
    """The targets asked for, and a sentence for each that cannot be one.

    Args:
        requested: names of backends, in a list or with commas between them; ``"auto"`` stands for every backend that
            has a device on this machine, the best first, or ``host`` where there is none.
        plugins: the plugins.

    Raises:
        InputError: it is not a list of names.
    """
    names = [name.strip() for name in requested.split(",")] if isinstance(requested, str) else list(requested)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"targets must be 'auto' or names of backends, such as ['x86', 'opencl'], is {requested!r}")
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
    driven = sum(answer is None for _, answer in answers)
    return Coverage(target, len(answers) - driven, refusals, driven)


def _answers(graph: Graph, candidate: Candidate) -> Iterator[tuple[Node, Yes | No | None]]:
    """Each node with the answer; None for one that host drives, which the nodes of its sub-graphs follow."""
    for node in graph.nodes:
        answer = ask(candidate, node)
        if node.subgraphs and isinstance(answer, No):
            yield node, None
            for body in node.subgraphs:
                yield from _answers(body, candidate)
        else:
            yield node, answer


def companions(coverage: Coverage, targets: Sequence[Target], plugins: PluginManager) -> list[Candidate]:
    """The devices that may run what a target cannot, in order of preference: those of the other targets, and host.

    A device of this machine is not paired with one that is elsewhere.

    Args:
        coverage: the target and what it said.
        targets: all targets where they may run its nodes, none where only host may drive If and Loop.
        plugins: the plugins.
    """
    target = coverage.target
    near = [t.candidate for t in targets if t.candidate and bool(t.absent) is bool(target.absent)]
    last = _target(available_backends(plugins)["host"], "").candidate if targets or coverage.driven else None
    found = {c.device.backend: c for c in (*near, last) if c and c.device.backend != target.name}
    return list(found.values())


def _present_targets(backends: dict[str, Backend], plugins: dict[str, str]) -> list[Target]:
    targets = [_target(backend, plugins[name]) for name, backend in backends.items() if name not in ("host", "null")]
    present = [(t.candidate.device.score, t) for t in targets if t.candidate and not t.absent]
    present.sort(key=lambda pair: -pair[0])
    return [target for _, target in present] or [_target(backends["host"], plugins["host"])]


def _target(backend: Backend, plugin: str) -> Target:
    found = probe(backend)
    if not isinstance(found, Unavailable):
        return Target(backend.name, plugin, Candidate(backend, found[0]))
    absent = f"{found.reason}. {found.remedy}" if found.remedy else found.reason
    if not isinstance(backend, DescribesTarget):
        return Target(backend.name, plugin, None, absent)
    try:
        device: object = backend.target()
    except Exception as error:  # a plugin that cannot say what it is for is one that was not asked
        return Target(backend.name, plugin, None, f"{absent}; its target() failed with {type(error).__name__}: {error}")
    if not isinstance(device, Device):
        return Target(backend.name, plugin, None, f"{absent}; its target() gave {device!r}, which is not a Device")
    return Target(backend.name, plugin, Candidate(backend, device), absent)


def _missing(name: str, here: Sequence[str], plugins: PluginManager) -> str:
    """Why a target that was asked for cannot be one, and what to type."""
    if name == "auto":
        return "target 'auto' stands alone: name the targets, or say 'auto' and nothing else"
    if name in left_out_backends(plugins):
        return f"target {name!r}: {left_out_backends(plugins)[name]}; add it to LITE_BACKENDS, or unset that"
    base, separator, _ = name.partition(":")
    if separator:
        return f"target {name!r}: a model is converted for a backend, not for one of its devices: say {base!r}"
    distribution = backend_distribution(name)
    broken = next(
        (r for r in plugins.records() if r.failed and (r.name == name or r.distribution == distribution)), None
    )
    if broken is not None:
        return (
            f"target {name!r}: its plugin {broken.label} is installed and failed at {broken.stage}: {broken.error}; "
            "`lite doctor` shows the details"
        )
    cure = f"pip install {distribution}" if distribution else "none of Lite's packages brings it"
    return f"target {name!r}: no plugin that is installed brings it (here are: {', '.join(here)}): {cure}"
