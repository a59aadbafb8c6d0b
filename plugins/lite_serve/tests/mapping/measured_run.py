"""A run of `lite map` whose last line is the peak of its own memory in MiB, without what files are mapped to."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

from lite_tools.cli import main

peak, is_over = 0, threading.Event()


def sample() -> None:
    global peak
    while not is_over.is_set():
        found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
        peak = max(peak, int(found[1]) if found else 0)
        time.sleep(0.002)


if __name__ == "__main__":
    import sys

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        main(["map", *sys.argv[1:]])
    finally:
        is_over.set()
        thread.join()
        print(peak // 1024)
