"""A program that loads and runs a small network under limits of the system, and prints what became of it.

    python under_limits.py MODEL BACKEND RESOURCE VALUE ...

RESOURCE is the name of a limit, such as NOFILE. Each VALUE is tried in a forked process that sets the limit, loads
and runs, lifts the limit, and runs the same session again, or a new one if there is none. AS and DATA are in MiB above
what the process uses before, NOFILE in descriptors above those that are open, the others in the system's units. A line
of JSON describes each attempt. A process that takes too long is ended by an alarm.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

from attempts import answers, are_right, in_a_child, load_and_run


def limit_of(name: str, value: str) -> int:
    """Return a limit in the system's units."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    if value == "unlimited":
        return resource.RLIM_INFINITY
    if name in ("AS", "DATA"):
        used = int(fields["VmSize" if name == "AS" else "VmData"].split()[0]) * 1024
        return used + int(float(value) * 2**20)
    if name == "NOFILE":
        return max(map(int, os.listdir("/proc/self/fd"))) + int(value)
    return int(value)


def attempt(model: str, backend: str, name: str, value: str) -> dict[str, Any]:
    """Load and run under a limit, then without it."""
    kind = getattr(resource, f"RLIMIT_{name}")
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit_of(name, value), before[1]))
    result, session = load_and_run(model, backend, threads=2)
    threads = threading.active_count()
    resource.setrlimit(kind, before)
    told = {"value": value, **result._asdict(), "threads": threads}
    inputs, expected = answers()
    if session is None:
        told["right_after"] = load_and_run(model, backend, threads=2)[0].right
    else:
        told["right_after"] = are_right(session.run(inputs), expected)
    return told


def main(model: str, backend: str, name: str, values: list[str]) -> None:
    """Try one value after another."""
    load_and_run(model, "host")  # imports, once for all children
    for value in values:
        told = in_a_child(functools.partial(attempt, model, backend, name, value))
        print(json.dumps({"value": value, **told}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
