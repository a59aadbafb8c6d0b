"""Type the commands of docs/first-week.md in an empty folder, and compare or replace the outputs that it shows.

    python scripts/run_first_week.py              # prints what is no longer as shown; numbers may differ
    python scripts/run_first_week.py --write      # writes the new outputs into the page

A page shows ``...`` for what it leaves out. New outputs leave out the same lines: each shown line is replaced by the
printed one that is most like it, and lines that nothing resembles are shown unless they are where the page has ``...``.
Look through the changes of the page afterwards, and shorten what became long.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from worked_pages import FILES, Block, PageRunner, blocks, commands, is_progress, matches, without_numbers
from workspace import ROOT

__all__ = ["PAGE", "follow", "refreshed", "rewritten", "same"]

PAGE = ROOT / "docs/first-week.md"
#: How much alike lines must be for one to take the other's place; 1 is equal.
_ALIKE = 0.6
_LEFT_OUT = "..."


def follow(page: Path, folder: Path) -> Iterator[tuple[Block, str, str, str]]:
    """Write the files and type the commands of a page, in its order, in a fresh environment in an empty folder.

    Yields:
        For each command: its block, the command, the output on the page, and what it printed.

    Raises:
        RuntimeError: a command ended with a traceback.
    """
    runner = PageRunner(folder)
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language in FILES:
            runner.write(block)
        elif block.language == "console":
            for command, shown in commands(block):
                printed = runner.run_command(command)
                if "Traceback (most recent call last)" in printed:
                    raise RuntimeError(f"line {block.line}: {command}\n{printed}")
                yield block, command, shown, printed


def same(shown: str, printed: str) -> bool:
    """Return True if the page shows what was printed, but for numbers."""
    return matches(without_numbers(shown), without_numbers(printed))


def rewritten(page: Path, folder: Path) -> str:
    """Return the text of a page with fresh outputs."""
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    fresh: dict[int, list[str]] = {}
    for block, command, shown, printed in follow(page, folder):
        fresh.setdefault(block.line, []).append(f"$ {command}\n{refreshed(shown, printed)}")
    # From the end, so that the numbers of the lines before stay right. `line` is that of the fence.
    for line, parts in sorted(fresh.items(), reverse=True):
        end = lines.index("```\n", line)
        lines[line:end] = parts
    return "".join(lines)


def refreshed(shown: str, printed: str) -> str:
    """Return an output as the page is to show it: what was printed, without what the page has left out before."""
    old = [line for line in shown.rstrip().splitlines() if line != _LEFT_OUT]
    new = [line.rstrip() for line in printed.rstrip().splitlines() if not is_progress(line)]
    if not shown.strip():
        return "".join(f"{line}\n" for line in new)
    gaps = _gaps(shown)
    result: list[str] = []
    at_old, at_new = 0, 0
    for index_old, index_new in [*_pairs(old, new), (len(old), len(new))]:
        left_out = any(gaps[at_old : index_old + 1])
        result += [_LEFT_OUT] if left_out else new[at_new:index_new]
        if index_old < len(old):
            keeps = _LEFT_OUT in old[index_old] and same(old[index_old], new[index_new])
            result.append(old[index_old] if keeps else new[index_new])
        at_old, at_new = index_old + 1, index_new + 1
    return "".join(f"{line}\n" for line in result)


def _gaps(shown: str) -> list[bool]:
    """Return for each shown line, and for the end, whether the page leaves out lines before it."""
    gaps = [False]
    for line in shown.rstrip().splitlines():
        if line == _LEFT_OUT:
            gaps[-1] = True
        else:
            gaps.append(False)
    return gaps


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the indices of lines that belong together, in order, with the greatest sum of their likeness."""
    best: list[tuple[float, tuple[tuple[int, int], ...]]] = [(0.0, ())] * (len(new) + 1)
    for i, line in enumerate(old):
        row = best[:1]
        for j, other in enumerate(new):
            likeness, (total, pairs) = _likeness(line, other), best[j]
            both = [(total + likeness, (*pairs, (i, j)))] if likeness else []
            row.append(max([row[j], best[j + 1], *both], key=lambda found: found[0]))
        best = row
    return list(best[-1][1])


def _likeness(old: str, new: str) -> float:
    """Return how much alike a shown and a printed line are, without their numbers; 0 if they do not belong together."""
    if same(old, new):
        return 1.0
    ratio = difflib.SequenceMatcher(None, without_numbers(old), without_numbers(new)).ratio()
    return ratio if ratio >= _ALIKE else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Follow the page; return 0 if it shows what was printed, or was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the new outputs into the page")
    with tempfile.TemporaryDirectory() as folder:
        if parser.parse_args(arguments).write:
            PAGE.write_text(rewritten(PAGE, Path(folder)), encoding="utf-8")
            print(f"written: {PAGE.relative_to(ROOT)}")
            return 0
        code = 0
        for block, command, shown, printed in follow(PAGE, Path(folder)):
            print(f"{'as shown' if same(shown, printed) else 'CHANGED'}  line {block.line}: {command}", flush=True)
            if not same(shown, printed):
                code = 1
                print(printed)
        return code


if __name__ == "__main__":
    sys.exit(main())
