"""The backend ``faulty``: the kernels of ``x86`` with one fault in one node, for tests of commands that find faults.

In this process::

    graph = make_ready(read_model(path)).graph
    plugins = planted("race", nth_node(graph, "Conv", 3))  # a plugin manager: the installed plugins, and ``faulty``
    session = lite.load(path, backend="faulty", plugins=plugins)

For a command, which runs in a process of its own, the plugin is installed in a temporary folder::

    install_planted(tmp_path, "race", "conv_2")            # of faulty_backend.installing
    done = installed_plugins.lite(tmp_path, "run", str(path), "--backend", "faulty")

:data:`FAULTS` has the faults of kernels, and ``real_models.PLACES`` nodes for them in real models. ``"pass"`` plants a
graph pass instead, which changes the node for every backend, and ``""`` nothing: the backend is then clean. All other
nodes run as ``x86`` groups them, or one by one with ``fused=False``. The executables are observable as those of ``x86``
are; the kernel with the fault is called ``faulty``.
"""

from __future__ import annotations

from faulty_backend.backend import FaultyBackend
from faulty_backend.faults import FAULTS
from faulty_backend.wrong_pass import PASS_NAME, WrongPass
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, hookimpl

__all__ = ["FAULTS", "FaultyBackend", "FaultyPlugin", "WrongPass", "nth_node", "planted"]


class FaultyPlugin:
    """The plugin with the backend ``faulty``, or with a wrong pass and a clean backend.

    Args:
        fault: a key of :data:`FAULTS`, ``"pass"``, or ``""``.
        node: name of the node that computes a wrong result.
        fused: group the other nodes as ``x86`` does.
    """

    LITE_API_VERSION = 1

    def __init__(self, fault: str, node: str, fused: bool = True) -> None:
        is_pass = fault == PASS_NAME
        self.backend = FaultyBackend("" if is_pass else fault, node, fused)
        self.passes = [WrongPass(node)] if is_pass else []

    @hookimpl
    def lite_backends(self) -> list[FaultyBackend]:
        return [self.backend]

    @hookimpl
    def lite_passes(self) -> list[WrongPass]:
        return self.passes


def planted(fault: str, node: str = "", fused: bool = True) -> PluginManager:
    """Return the installed plugins together with a :class:`FaultyPlugin`."""
    plugins = PluginManager()
    plugins.register(FaultyPlugin(fault, node, fused), "faulty")
    return plugins


def nth_node(graph: Graph, op: str, number: int = 0) -> str:
    """Return the name of a graph's node of an operator, counted from 0 in the order of the nodes."""
    names = [node.name for node in graph.nodes if node.op == op]
    if number >= len(names):
        raise ValueError(f"graph {graph.name!r} has {len(names)} nodes of {op}, there is no number {number}")
    return names[number]
