"""Ending the mapping of a buffer into main memory, also on a device that was lost."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import pyopencl as cl

__all__ = ["unmap", "unmap_quietly"]


def unmap(mapped: Any, queue: cl.CommandQueue) -> cl.Event:
    """Enqueue the end of a mapping; return its event. After a failure it is tried once more, and never again.

    Args:
        mapped: the array from ``pyopencl.enqueue_map_buffer``.
        queue: a queue of the same context.

    Raises:
        pyopencl.Error: the driver refuses, for example because the device was lost.
    """
    try:
        event: cl.Event = mapped.base.release(queue)
        return event
    except cl.Error:
        _unmap_or_keep(mapped.base, queue)
        raise


def unmap_quietly(mapped: Any, queue: cl.CommandQueue, process: int) -> None:
    """End a mapping that is no longer needed, whatever the driver answers.

    Args:
        mapped: the array from ``pyopencl.enqueue_map_buffer``.
        queue: a queue of the same context.
        process: the process that made the mapping. A forked child cannot use its parent's device, so it does nothing.
    """
    if os.getpid() == process:
        _unmap_or_keep(mapped.base, queue)
    else:
        _keep(mapped.base)


def _unmap_or_keep(mapping: cl.MemoryMap, queue: cl.CommandQueue) -> None:
    # NOTE: the destructor of pyopencl's MemoryMap unmaps what is still mapped, and ends the process if that fails.
    try:
        mapping.release(queue)
    except cl.Error:
        _keep(mapping)


def _keep(mapping: cl.MemoryMap) -> None:
    """Keep an object until the process ends, without calling its destructor then."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(mapping))
