"""The file with the instructions of each model, in ``docs/results/arm``, which the page is made from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["FILE", "Cell", "geometric_mean", "read", "update"]

FILE = Path(__file__).resolve().parents[2] / "docs/results/arm/instructions.json"
_SCHEMA = {"schema": "lite-arm-instructions", "schema_version": 1}


@dataclass(frozen=True)
class Cell:
    """A model on an emulated processor.

    Attributes:
        processor: qemu's name of the processor.
        model, title: name of the model, and its name in tables.
        lite, onnxruntime: instructions of one inference.
        measured: the day, ISO 8601.
        revision: the commit of Lite.
        version: the version of ONNX Runtime.
    """

    processor: str
    model: str
    title: str
    lite: int
    onnxruntime: int
    measured: str
    revision: str
    version: str

    @property
    def ratio(self) -> float:
        """Lite's instructions, as a share of ONNX Runtime's."""
        return self.lite / self.onnxruntime


def geometric_mean(cells: Iterable[Cell]) -> float:
    """Return the geometric mean of the ratios of some cells, at least one."""
    logarithms = [math.log(cell.ratio) for cell in cells]
    return math.exp(sum(logarithms) / len(logarithms))


def read(file: Path = FILE) -> list[Cell]:
    """Return the recorded cells; none if the file does not exist."""
    return [Cell(**cell) for cell in json.loads(file.read_text())["cells"]] if file.exists() else []


def update(cells: Iterable[Cell], order: list[str], file: Path = FILE) -> None:
    """Record cells in place of those of the same models and processors; models are in the given order."""
    merged = {(cell.processor, cell.model): cell for cell in [*read(file), *cells]}
    ordered = sorted(merged.values(), key=lambda cell: (cell.processor, order.index(cell.model)))
    lines = ",\n".join(f"  {json.dumps(asdict(cell))}" for cell in ordered)
    head = json.dumps(_SCHEMA)[1:-1]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{{head}, "cells": [\n{lines}\n]}}\n')
