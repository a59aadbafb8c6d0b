"""The command of ``make fuzz``: attack targets for a time, print a table, exit with 1 if a rule was broken.

python -m fuzz --seconds 60                   every target, the time divided equally
python -m fuzz --seconds 60 --target onnx     one target; several are separated by commas
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from fuzz.campaign import Result, attack
from fuzz.corpus import ROOT
from fuzz.targets import PLANTED, TARGETS

_COLUMNS = ("target", "executions", "per second", "findings", "memory", "slowest", "branches", "executions so far")


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; return 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration, divided among the targets")
    parser.add_argument("--target", default="", metavar="NAME[,NAME]", help=f"of: {', '.join(TARGETS)}; default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "out/fuzz", help="the growing corpus and the findings")
    options = parser.parse_args(arguments)
    names = [name for name in options.target.split(",") if name] or list(TARGETS)
    unknown = [name for name in names if name not in {**TARGETS, **PLANTED}]
    if unknown:
        parser.error(f"there is no target {', '.join(unknown)}; the targets are {', '.join(TARGETS)}")
    if find_spec("atheris") is None:
        print("atheris is not installed: inputs are chosen by their outcomes, not by branches", file=sys.stderr)
    results = []
    print(_line(_COLUMNS), flush=True)
    for name in names:
        results.append(attack(name, options.seconds / len(names), options.folder))
        print(_line(_row(results[-1])), flush=True)
    found = [file for result in results for file in result.findings]
    for file in found:
        reason = file.with_suffix(".txt").read_text(errors="replace").partition("\n")[0]
        print(f"\n{file}\n  {reason}\n  see the .txt beside it; after the cure, copy it to tests/fuzz/corpus/TARGET")
    return 1 if found else 0


def _row(result: Result) -> tuple[str, ...]:
    branches = "-" if result.branches is None else f"{result.branches[0]} +{result.branches[1] - result.branches[0]}"
    return (
        result.target,
        str(result.executions),
        f"{result.executions / max(result.seconds, 1e-9):.0f}",
        _counted(result.findings),
        f"{result.growth / 2**20:.0f} MiB",
        f"{result.slowest:.2f} s",
        branches,
        str(result.total),
    )


def _counted(findings: list[Path]) -> str:
    """Return the number of findings of each kind in words."""
    kinds = [file.name.partition("-")[0] for file in findings]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "0"


def _line(cells: tuple[str, ...]) -> str:
    widths = (15, 11, 11, 20, 8, 8, 14, 18)
    return " ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
