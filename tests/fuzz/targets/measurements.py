"""The target of measurements: the files that ``lite bench --save`` writes and ``--against`` reads."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path

from click.testing import CliRunner

from fuzz.mutation import mutated_json
from fuzz.targets import FuzzTarget
from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_tools.benchmark import compare_documents
from lite_tools.benchmark.saved import read_saved
from lite_tools.cli.bench import command
from lite_tools.pages.bench_report import bench_page
from lite_tools.writing import write_model

__all__ = ["Measurement"]


class Measurement(FuzzTarget):
    """A saved measurement, which is compared with a good one, in both directions."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        self._seeds = [_measured(options) for options in ([], ["--concurrent", "2"])]
        self._good = json.loads(self._seeds[0])

    def seeds(self) -> Iterable[bytes]:
        """Return measurements of a small model on host."""
        return self._seeds

    def run(self, data: bytes, folder: Path) -> None:
        """Read the file as ``--against`` does, and show the comparison."""
        (folder / "measured.json").write_bytes(data)
        found = read_saved(str(folder / "measured.json"))
        compare_documents(self._good, found)
        bench_page({**self._good, "against": compare_documents(found, self._good).as_dict("measured.json")})

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change a value, a key, or the structure."""
        return mutated_json(data, chance)


def _measured(options: list[str]) -> bytes:
    builder = GraphBuilder("relu")
    builder.output(builder.add("Relu", [builder.input("x", "float32", [2])]), "y")
    with tempfile.TemporaryDirectory() as folder:
        model, saved = Path(folder) / "relu.lite", Path(folder) / "saved.json"
        write_model(model, builder.build())
        arguments = [str(model), "-b", "host", "-n", "8", "--save", str(saved), *options]
        CliRunner().invoke(command, arguments, catch_exceptions=False)
        return saved.read_bytes()
