"""Replaying of inputs: ``python -m fuzz.replay TARGET FILE ...`` prints what each leads to.

The exit code is 1 if one of them breaks a rule.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fuzz.execution import execute, limit_process
from fuzz.targets import find_target

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the inputs in files with a target, in this process."""
    target = find_target(arguments[0])
    limit_process()
    found = False
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments[1:]:
            execution = execute(target, Path(name).read_bytes(), Path(folder))
            print(f"{name}: {execution.outcome}, {execution.growth >> 20} MiB, {execution.seconds:.3f} s")
            if execution.finding is not None:
                found = True
                print(f"{execution.finding.kind}: {execution.finding.key}\n{execution.finding.detail}")
    return int(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
