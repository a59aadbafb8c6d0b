"""The number of threads that are of use on this machine: the default of sessions.

Products run at the full speed of a core with one thread, so a second thread of the same core would only share it. The
files are those of Linux; without them every processor that this process may run on counts.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["useful_threads"]

#: Cores with a lower share of the highest speed are made for efficiency: the others would only wait for them. Equal
#: cores differ by less, because some of them may run a little faster than the rest.
_SHARE_OF_HIGHEST_SPEED = 0.8


def useful_threads(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use, at least 1.

    Processors of one core count once. Efficient cores beside faster ones do not count. Processors outside of the
    process's affinity do not count either, and a control group's quota, rounded, limits the number.

    Args:
        root: the folder that contains ``proc`` and ``sys``.
    """
    speeds: dict[str, float] = {}  # of cores, by the processors that share each: capacities on ARM, else clocks
    for number in os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1):
        processor = root / f"sys/devices/system/cpu/cpu{number}"
        siblings = _text(processor / "topology/thread_siblings_list") or str(number)
        capacity, clock = (_text(processor / name) for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"))
        speeds[siblings] = float(capacity or clock or 1)
    fast = [speed for speed in speeds.values() if speed >= _SHARE_OF_HIGHEST_SPEED * max(speeds.values())]
    return max(1, round(min(len(fast), _quota(root))))


def _quota(root: Path) -> float:
    """Return the processors that the process's control groups allow at most, those of version 1 and of version 2."""
    quotas = [math.inf]
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not {"", "cpu"}.isdisjoint(controllers.split(",")):
            names = ("cpu/", "cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("", "cpu.max")
            nested = Path(group.lstrip("/"))
            for folder in (root / "sys/fs/cgroup" / names[0] / part for part in (nested, *nested.parents)):
                limit, _, period = " ".join(_text(folder / name) for name in names[1:]).partition(" ")
                with suppress(ValueError):  # "max", or the files of the group are hidden
                    quotas.append(int(limit) / int(period))
    return min(quota for quota in quotas if quota > 0)  # -1: no limit


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""
