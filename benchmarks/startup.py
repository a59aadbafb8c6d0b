"""Benchmark of Lite's startup: importing the core, discovering 50 plugins, loading and the first result.

    python benchmarks/startup.py [--json]

Each figure is the median of several fresh processes, beside Python's own start and `import numpy` in the
same run, because times differ from machine to machine and only ratios within one run count.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 9
TIMER = "import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
DISCOVER = """
import time
from lite_core.plugins import PluginManager
start = time.perf_counter()
found = PluginManager().discover()
print(time.perf_counter() - start)
assert len([r for r in found if r.distribution.startswith("lite-bench-")]) == {count}
"""


def seconds(code: str, environment: dict[str, str] | None = None) -> float:
    """Return the median over fresh processes of the number that the code prints."""
    command = [sys.executable, "-c", code]
    found = [
        float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
        for _ in range(RUNS)
    ]
    return statistics.median(found)


def fake_plugins(folder: Path, count: int) -> None:
    """Create the metadata of ``count`` plugins as pip installs it."""
    for number in range(count):
        info = folder / f"lite_bench_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lite-bench-{number}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[lite.plugins]\np{number} = lite_bench_{number}\n")


def main() -> None:
    """Measure and print."""
    figures: dict[str, float] = {}
    figures["import numpy"] = seconds(TIMER.format(code="import numpy"))
    figures["import lite_core"] = seconds(TIMER.format(code="import lite_core"))
    figures["import lite_core and its load()"] = seconds(TIMER.format(code="import lite_core; lite_core.load"))
    for count in (0, 50):
        with tempfile.TemporaryDirectory() as folder:
            fake_plugins(Path(folder), count)
            path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
            environment = {**os.environ, "PYTHONPATH": path}
            figures[f"discover with {count} more plugins"] = seconds(DISCOVER.format(count=count), environment)
    figures["50 plugins cost"] = figures["discover with 50 more plugins"] - figures["discover with 0 more plugins"]
    if "--json" in sys.argv:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:36} {value * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
