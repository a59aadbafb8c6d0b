"""A run of `lite map` that ends itself by SIGKILL at a chosen moment: ``killing_run.py POINT COUNT WORDS...``.

POINT is the moment, COUNT how often it passes before. At ``half`` a line of the manifest is written in part.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from lite_serve.mapping import driver, files
from lite_tools.cli import main


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after_passes(count: int, act: Callable[[], None]) -> Callable[[], None]:
    """Return a function that acts when it was called so often before."""
    left = [count]

    def passed() -> None:
        if left[0] == 0:
            act()
        left[0] -= 1

    return passed


point, count, *words = sys.argv[1:]
at_point = after_passes(int(count), kill)
replace, append, sync = os.replace, driver.append_lines, files.synced_folder


def replaced(source: Any, target: Any) -> None:
    is_own = str(target).endswith((".parquet", ".jsonl"))  # not that of a cache
    if is_own and point == "before-rename":
        at_point()
    replace(source, target)
    if is_own and point == "after-rename":
        at_point()


def appended(folder: Any, lines: Any, at: int | None = None) -> None:
    kept = list(lines)
    if point == "before-line" and kept:
        at_point()
    if point == "half" and kept:

        def tear() -> None:
            with (folder / files_name).open("ab") as file:
                file.write(str(kept[0]).encode()[:40])
                file.flush()
            kill()

        tearing[0] = tearing[0] or after_passes(int(count), tear)
        tearing[0]()
    append(folder, kept, at)
    if point == "after-line" and kept:
        at_point()


files_name = driver.NAME
tearing: list[Any] = [None]
os.replace = replaced
driver.append_lines = appended
main(["map", *words])
