"""The memory that the limits of the system (``ulimit -v``, ``ulimit -d``) leave to this process."""

from __future__ import annotations

from pathlib import Path

__all__ = ["memory_left"]


def memory_left() -> int | None:
    """Return the bytes that the process may still map, or None if the system sets no limit or does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    if all(limit == resource.RLIM_INFINITY for limit in limits):
        return None
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return None
    used = [int(pages[number]) * resource.getpagesize() for number in (0, 5)]  # all of it, data and stacks
    return min(limit - size for limit, size in zip(limits, used) if limit != resource.RLIM_INFINITY)
