"""The number of threads that are of use, by the files of Linux."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from lite_core.processors import useful_threads


def make(root: Path, files: Mapping[str, str]) -> Path:
    """Write files as Linux has them."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def cores(siblings: Mapping[int, str], clocks: Mapping[int, int] | None = None) -> dict[str, str]:
    """Return the files of processors: the list of those that share each one's core, and its highest clock in kHz."""
    folder = "sys/devices/system/cpu/cpu"
    files = {f"{folder}{number}/topology/thread_siblings_list": text for number, text in siblings.items()}
    return files | {
        f"{folder}{number}/cpufreq/cpuinfo_max_freq": str(clock) for number, clock in (clocks or {}).items()
    }


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The processors that the process may run on; tests may change the set."""
    found = {*range(8)}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: found, raising=False)
    return found


def test_here() -> None:
    assert 1 <= useful_threads() <= (os.cpu_count() or 1)


def test_without_files_every_allowed_processor_counts(tmp_path: Path, allowed: set[int]) -> None:
    assert useful_threads(tmp_path) == 8
    allowed.remove(5)
    assert useful_threads(tmp_path) == 7


def test_without_an_affinity_every_processor_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert useful_threads(tmp_path) == (os.cpu_count() or 1)


def test_processors_of_one_core_count_once(tmp_path: Path, allowed: set[int]) -> None:
    make(tmp_path, cores({number: f"{number % 4},{number % 4 + 4}" for number in range(8)}))
    assert useful_threads(tmp_path) == 4
    allowed.intersection_update({0, 1, 4})
    assert useful_threads(tmp_path) == 2


@pytest.mark.parametrize(
    ("capacities", "useful"),
    [
        ([1024, 1024, 1024, 1024], 4),
        ([530] * 4 + [1024] * 4, 4),
        ([250] * 4 + [871] * 3 + [1024], 4),  # the fastest of four fast cores is a little faster
        ([485] * 4 + [1024] * 2, 2),
    ],
)
def test_capacities_say_more_than_clocks(capacities: list[int], useful: int, tmp_path: Path, allowed: set[int]) -> None:
    numbers = range(len(capacities))
    allowed.update(numbers)
    files = cores({number: str(number) for number in numbers}, dict.fromkeys(numbers, 2000000))
    folder = "sys/devices/system/cpu/cpu"
    files |= {f"{folder}{number}/cpu_capacity": str(capacity) for number, capacity in enumerate(capacities)}
    assert useful_threads(make(tmp_path, files)) == useful


def test_efficient_cores_do_not_count(tmp_path: Path, allowed: set[int]) -> None:
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 4: "4", 5: "5", 6: "6", 7: "7"}
    clocks = dict(zip(range(8), [5_200_000, 5_200_000, 4_900_000, 4_900_000, *[3_900_000] * 4]))
    make(tmp_path, cores(siblings, clocks))
    assert useful_threads(tmp_path) == 2
    allowed.intersection_update({5, 6, 7})  # nothing else may be used
    assert useful_threads(tmp_path) == 3


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "350000 100000"}, 4),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, 8),
        ({"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "10000 100000"}, 1),
        ({"proc/self/cgroup": "0::/../..", "sys/fs/cgroup/cpu.max": "x y z"}, 8),
        (
            {
                "proc/self/cgroup": "4:memory:/m\n3:cpu,cpuacct:/docker/x\n0::/",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/x",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
            },
            8,
        ),
        ({"proc/self/cgroup": "5:cpuset:/x", "sys/fs/cgroup/cpu.max": "100000 100000"}, 8),
    ],
)
@pytest.mark.usefixtures("allowed")
def test_quotas_of_control_groups(files: dict[str, str], threads: int, tmp_path: Path) -> None:
    assert useful_threads(make(tmp_path, files)) == threads
