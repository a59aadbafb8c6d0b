"""Write the golden files of the current format: run once for each version of the format, and keep the files.

``python core/tests/goldens/container/make.py`` never overwrites a file: files of released formats must stay readable.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lite_core.container import FORMAT_VERSION
from lite_tools.writing import write_model

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from container_graphs import GRAPHS, records  # noqa: E402  (a module in the folder of the tests)


def main() -> None:
    """Write the files that do not exist yet."""
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
