"""Observing a run: values between the kernels of a partition can be read, and replaced, while the partition runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from lite_core.backend import Buffer
from lite_core.ir import Array, Value

__all__ = ["IdleObserver", "Observable", "Observed", "Observer", "observed_arrays", "observed_buffers"]


class Observed(NamedTuple):
    """The results of one kernel, or of several that compute the same nodes, before the next one starts.

    Attributes:
        kernel: the kernel's name.
        nodes: names of the nodes that it computes; several if the backend fused them.
        values: names of the results that exist in memory. A result that only the kernel itself uses is not among them.
        read: returns a copy of a result, with the element type and the shape of the graph, and with any strides.
        write: replaces a result, for all later kernels; the array has that type and shape.
        device: label of the device; the plan sets it.
        partition: name of the partition; the plan sets it.
    """

    kernel: str
    nodes: Sequence[str]
    values: Sequence[str]
    read: Callable[[str], Array]
    write: Callable[[str, Array], None]
    device: str = ""
    partition: str = ""


class Observer(Protocol):
    """Receives the kernels of a run in their order. An exception that it raises ends the run."""

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        """Receive a kernel and the nodes that it is about to compute."""

    def computed(self, results: Observed) -> None:
        """Receive a kernel's results, which it may read and replace until it returns."""


class IdleObserver:
    """An observer that does nothing: the run only logs its kernels."""

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        """Do nothing."""

    def computed(self, results: Observed) -> None:
        """Do nothing."""


@runtime_checkable
class Observable(Protocol):
    """Optional part of an executable whose results between kernels can be observed.

    ``run_observed`` runs as :meth:`lite_core.backend.Executable.run` does, with the same kernels on the same memory, so
    that being observed changes no result. The outputs of the partition are reported by the kernels that compute them.
    Without this part, an observer sees the outputs of the partition only.
    """

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None: ...


def observed_buffers(kernel: str, nodes: Sequence[str], values: Sequence[Value], buffers: Sequence[Buffer]) -> Observed:
    """Return what a kernel computed into buffers, each of which holds the value at its position."""
    by_name = {value.name: buffer for value, buffer in zip(values, buffers)}

    def read(name: str) -> Array:
        return by_name[name].memory.download(by_name[name].data)

    return Observed(kernel, nodes, [*by_name], read, lambda name, array: by_name[name].store(array))


def observed_arrays(kernel: str, nodes: Sequence[str], arrays: dict[Value, Array], values: Iterable[Value]) -> Observed:
    """Return what a kernel computed into the arrays of some values; replacing one replaces the array."""
    by_name = {value.name: value for value in values}

    def write(name: str, array: Array) -> None:
        arrays[by_name[name]] = array

    return Observed(kernel, nodes, [*by_name], lambda name: arrays[by_name[name]].copy(), write)
