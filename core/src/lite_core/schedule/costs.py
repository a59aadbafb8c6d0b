"""Estimated costs of nodes on devices and of copies between memory spaces, from stated or measured speeds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lite_core.backend import Device, MeasuresSpeed, Memory
from lite_core.forking import new_lock
from lite_core.ir import Node, TensorType
from lite_core.memory import HostMemory
from lite_core.memory.sharing import can_share, new_array
from lite_core.ops.work import work_of
from lite_core.plugins.contracts import fault_text
from lite_core.schedule.compile import memory_of
from lite_core.schedule.devices import Candidate

__all__ = ["Costs", "Link", "measure_link"]

logger = logging.getLogger("lite.schedule")

_SMALL_ELEMENTS = 1 << 10
_LARGE_ELEMENTS = 1 << 18
_MOST_REPETITIONS = 5
_SECONDS_PER_SIZE = 1e-3


# **** copies between memory spaces ****


class Link(NamedTuple):
    """The cost of copies between main memory and a memory space.

    Attributes:
        space: the memory space.
        upload: latency in seconds, and seconds per byte, of a copy to it.
        download: the same for copies from it.
        fault: the reason why nothing can be copied; empty if it works.
    """

    space: str
    upload: tuple[float, float] = (0.0, 0.0)
    download: tuple[float, float] = (0.0, 0.0)
    fault: str = ""

    def upload_seconds(self, size: int) -> float:
        """Return the time of a copy of ``size`` bytes from main memory."""
        return self.upload[0] + self.upload[1] * size

    def download_seconds(self, size: int) -> float:
        """Return the time of a copy of ``size`` bytes to main memory."""
        return self.download[0] + self.download[1] * size


def measure_link(memory: Memory) -> Link:
    """Measure copies of a small and of a large tensor in both directions. Takes a few milliseconds."""
    up_small, down_small = _copy_seconds(memory, _SMALL_ELEMENTS)
    up_large, down_large = _copy_seconds(memory, _LARGE_ELEMENTS)
    return Link(memory.space, _line(up_small, up_large), _line(down_small, down_large))


def _copy_seconds(memory: Memory, elements: int) -> tuple[float, float]:
    """Return the median times of an upload and a download of float32 elements (zero copy: of wrap and synchronize)."""
    array = np.zeros(elements, np.float32)
    data = memory.allocate(TensorType.of_array(array))
    upload: Callable[[], Any] = partial(memory.upload, array, data)
    download: Callable[[], Any] = partial(memory.download, data)
    if can_share(memory):
        array = new_array(TensorType.of_array(array), memory)
        upload, download = partial(memory.wrap, array), partial(memory.synchronize, memory.wrap(array))
    upload()  # warm-up
    uploads: list[float] = []
    downloads: list[float] = []
    while len(uploads) < _MOST_REPETITIONS and sum(uploads + downloads) < _SECONDS_PER_SIZE:
        start = time.perf_counter()
        upload()
        between = time.perf_counter()
        download()
        uploads.append(between - start)
        downloads.append(time.perf_counter() - between)
    middle = len(uploads) // 2  # importing ``statistics`` would take longer than both measurements
    return sorted(uploads)[middle], sorted(downloads)[middle]


def _line(small_seconds: float, large_seconds: float) -> tuple[float, float]:
    """Return intercept and slope per byte of the line through two measurements, neither below zero."""
    small, large = 4 * _SMALL_ELEMENTS, 4 * _LARGE_ELEMENTS
    per_byte = max(0.0, (large_seconds - small_seconds) / (large - small))
    return max(0.0, small_seconds - per_byte * small), per_byte


_links = {HostMemory.space: Link(HostMemory.space)}
_measuring = new_lock()


# **** nodes and copies ****


class Costs:
    """Costs of nodes and copies on the session's devices. Speeds are measured on first use."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}
        self._broken: dict[str, Link] = {}

    def node_seconds(self, node: Node, candidate: Candidate) -> float | None:
        """Estimate the time of a node by the roofline model: the longer of its arithmetic and its memory traffic.

        Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", 2009.

        Returns:
            None if the node's work or the device's speed is unknown.
        """
        device = self._devices.get(candidate.device.label) or self._measured(candidate)
        work = work_of(node) if device.flops and device.bandwidth else None
        if work is None:
            return None
        return max(work.flops / device.flops, work.bytes / device.bandwidth) + device.launch_seconds

    def _measured(self, candidate: Candidate) -> Device:
        """Return the device with its speed, measured once if its backend has the part MeasuresSpeed."""
        backend, device = candidate.backend, candidate.device
        if isinstance(backend, MeasuresSpeed):
            device = backend.measured(device)
        self._devices[device.label] = device
        return device

    def link(self, candidate: Candidate) -> Link:
        """Return the cost of copies to and from a device's memory.

        If copies fail, they cost nothing, so that they move no node, and the link has the reason.
        """
        try:
            if (label := candidate.device.label) in self._broken:
                return self._broken[label]
            memory = memory_of(candidate)
            with _measuring:  # once per process
                if memory.space not in _links:
                    _links[memory.space] = measure_link(memory)
                    logger.debug("copies from and to main memory: %s", _links[memory.space])
                return _links[memory.space]
        except (Exception, SystemExit) as error:
            logger.warning("%s: copies to and from its memory cannot be measured: %s", candidate, fault_text(error))
            fault = f"copies to and from its memory fail: {fault_text(error)}"
            return self._broken.setdefault(label, Link(label, fault=fault))
