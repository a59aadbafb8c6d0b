"""Writes the golden files of the present format: run once for each version of the format, and keep what it made.

``python core/tests/goldens/container/make.py`` refuses to overwrite: a file of a released format is read for ever.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lite_core.container import FORMAT_VERSION, write_model

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from container_graphs import GRAPHS, records  # noqa: E402  (lies beside the tests)


def main() -> None:
    """Write the files that are not there yet."""
    folder = HERE / f"format_{FORMAT_VERSION}"
    folder.mkdir(exist_ok=True)
    for name, make in GRAPHS.items():
        file = folder / f"{name}.lite"
        if not file.exists():
            graph = make()
            targets, pieces = records(graph)
            write_model(file, graph, targets=targets, pieces=pieces, metadata={"made by": "make.py"}, optimized=True)
            print(file)


if __name__ == "__main__":
    main()
