"""Facts that a picture shows about nodes beside the graph: devices, kernels with times, errors of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lite_core.errors import InputError
from lite_core.observing import Observed

__all__ = [
    "Annotations",
    "KernelObserver",
    "KernelUse",
    "NodeError",
    "error_size",
    "errors_of_comparison",
    "kernels_of_profile",
    "observed_kernels",
]

#: Judgements of a comparison, the worst first.
_STATUSES = ("diverges", "suspect", "rounding", "equal", "not compared")


class KernelUse(NamedTuple):
    """A kernel of a plan: its name, the nodes that it computes, its device, and its time if it was measured."""

    kernel: str
    nodes: tuple[str, ...]
    device: str = ""
    seconds: float | None = None


class NodeError(NamedTuple):
    """The error of a node in a comparison: its size, the judgement, and the reason."""

    size: float | None
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Annotations:
    """Known facts about nodes, by their names.

    Attributes:
        devices: the label of the device of each node.
        refusals: for each node the reasons of the devices that refused it.
        kernels: the kernels, in the order of a run.
        errors: the error of each node.
    """

    devices: Mapping[str, str] = field(default_factory=dict)
    refusals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kernels: Sequence[KernelUse] = ()
    errors: Mapping[str, NodeError] = field(default_factory=dict)


class KernelObserver:
    """Observer of a run that lists its kernels, and reads no results."""

    def __init__(self) -> None:
        self.kernels: dict[KernelUse, None] = {}

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        pass

    def computed(self, results: Observed) -> None:
        self.kernels[KernelUse(results.kernel, tuple(results.nodes), results.device)] = None


def observed_kernels(plan: Any, inputs: Sequence[Any]) -> list[KernelUse]:
    """Return the kernels that a plan runs for these inputs, by running it once."""
    observer = KernelObserver()
    plan.run(inputs, observer=observer)
    return list(observer.kernels)


def kernels_of_profile(data: Any, source: str) -> list[KernelUse]:
    """Return the kernels of a profile, as ``lite run --profile --json`` or ``RunProfile.to_json`` prints it.

    Raises:
        InputError: the data is no profile, or has no kernels.
    """
    found = data.get("kernels") if isinstance(data, dict) else None
    if found is None and isinstance(data, dict) and isinstance(data.get("profile"), dict):
        found = data["profile"].get("kernels")
    try:
        kernels = [
            KernelUse(str(k["kernel"]), tuple(map(str, k["nodes"])), str(k.get("device", "")), float(k["seconds"]))
            for k in found or ()
        ]
    except (TypeError, KeyError, ValueError, AttributeError):
        kernels = []
    if not kernels:
        raise InputError(
            f"{source} has no list of kernels with their nodes and seconds; make it with `lite run MODEL --profile "
            "--json > profile.json`, on a backend that measures its kernels"
        )
    return kernels


def errors_of_comparison(data: Any, source: str) -> dict[str, NodeError]:
    """Return the worst error of each node from the report of ``lite compare --json``.

    Raises:
        InputError: the data is no such report.
    """
    rows = data.get("rows") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "nodes" in row for row in rows):
        raise InputError(
            f"{source} is not a report of `lite compare`: it has no rows; make it with `lite compare MODEL --a x86 "
            "--b opencl --json > compare.json`"
        )
    found: dict[str, NodeError] = {}
    for row in rows:
        sizes = [size for size in map(error_size, (row.get("local"), row.get("accumulated"))) if size is not None]
        error = NodeError(max(sizes, default=None), str(row.get("status", "")), str(row.get("reason", "")))
        for name in map(str, row["nodes"]):
            found[name] = worse(found[name], error) if name in found else error
    return found


def worse(a: NodeError, b: NodeError) -> NodeError:
    """Return the worse of two errors: by judgement, then by size."""
    return min(a, b, key=lambda e: (severity(e.status), -(e.size if e.size is not None else -1)))


def severity(status: str) -> int:
    """Return 0 for the worst judgement, and more for better ones."""
    return _STATUSES.index(status) if status in _STATUSES else len(_STATUSES)


def error_size(errors: Mapping[str, Any] | None) -> float | None:
    """Return errors of a comparison as one number: the largest absolute error as a share of the largest element.

    It is the absolute error where no such share exists, and infinity where only one side has NaN or infinite elements.
    """
    if not errors:
        return None
    if errors.get("misplaced") or any(errors.get(f"{kind}_a") != errors.get(f"{kind}_b") for kind in ("nan", "inf")):
        return math.inf
    size = errors.get("relative")
    size = errors.get("max_abs") if size is None else size
    try:
        number = float(size if size is not None else math.nan)
    except (TypeError, ValueError):
        return None
    return math.inf if math.isnan(number) and size is not None else None if size is None else number


def kernel_titles(kernels: Iterable[KernelUse]) -> dict[str, list[KernelUse]]:
    """Return the kernels that compute each node, by the node's name."""
    found: dict[str, list[KernelUse]] = {}
    for kernel in kernels:
        for name in kernel.nodes:
            found.setdefault(name, []).append(kernel)
    return found
