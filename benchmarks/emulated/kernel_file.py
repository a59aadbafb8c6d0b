"""The file with the shares of the peak that kernels reach, in ``docs/results/arm``, which the page is made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["FILE", "Row", "read", "write"]

FILE = Path(__file__).resolve().parents[2] / "docs/results/arm/kernels.json"
_SCHEMA = '"schema": "lite-arm-kernels", "schema_version": 1'


@dataclass(frozen=True)
class Row:
    """The inner loops of a kernel.

    Attributes:
        layer: the layer that the kernel computes.
        level: the level of ARM processors that it is compiled for.
        part: name of the kernel, and which of its loops.
        arithmetic: the multiply-adds of the loops or, of transforms, all arithmetic with vectors.
        instructions: all instructions of the loops.
        stack_accesses: those that load from the stack or store to it.
        shares: the share of the peak, by LLVM's name of the processor, for those that have the level's instructions.
    """

    layer: str
    level: str
    part: str
    arithmetic: int
    instructions: int
    stack_accesses: int
    shares: Mapping[str, float]


def read(file: Path = FILE) -> list[Row]:
    """Return the recorded rows; none if the file does not exist."""
    return [Row(**row) for row in json.loads(file.read_text())["rows"]] if file.exists() else []


def write(rows: Sequence[Row], file: Path = FILE) -> None:
    """Record rows in place of all others."""
    lines = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{{_SCHEMA}, "rows": [\n{lines}\n]}}\n')
