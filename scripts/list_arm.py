"""Tables of the instructions of models and of the kernels on 64-bit ARM, from the files in docs/results/arm.

``benchmarks/arm_instructions.py --record`` and ``benchmarks/arm.py --record`` write these files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from markdown_tables import table
from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from emulated import instruction_file, kernel_file
from emulated.instruction_file import Cell

__all__ = ["BLOCKS", "instructions", "kernels"]


def instructions() -> str:
    """Return a table of the instructions of each model, for each processor."""
    cells = instruction_file.read()
    parts = []
    for processor in dict.fromkeys(cell.processor for cell in cells):
        own = [cell for cell in cells if cell.processor == processor]
        rows = [
            [cell.title, _millions(cell.lite), _millions(cell.onnxruntime), f"**{cell.ratio:.2f}**"] for cell in own
        ]
        rows.append(["geometric mean", "", "", f"**{instruction_file.geometric_mean(own):.2f}**"])
        titles = ["model", "Lite, M", "ONNX Runtime, M", "Lite / ONNX Runtime"]
        parts.append(f"### {_title(processor)}\n\n{_origin(own)}\n\n{table(titles, rows, right=(1, 2, 3))}")
    return "\n" + "\n".join(parts) + "\n"


def kernels() -> str:
    """Return a table of the inner loops of kernels and the shares of the peak that they reach."""
    found = kernel_file.read()
    processors = list(dict.fromkeys(name for row in found for name in row.shares))
    rows = [
        [row.layer, row.level, row.part, str(row.arithmetic), str(row.instructions), str(row.stack_accesses)]
        + [f"{row.shares[name]:.0%}" if name in row.shares else "-" for name in processors]
        for row in found
    ]
    titles = ["layer", "level", "loops of", "arithmetic", "instructions", "on the stack", *map(_title, processors)]
    return f"\n{table(titles, rows, right=range(3, len(titles)))}\n"


def _title(processor: str) -> str:
    """Return a processor's name as its maker writes it: ``Cortex-A53``."""
    family, _, number = processor.partition("-")
    return f"{family.capitalize()}{'-' if family == 'cortex' else ' '}{number.upper()}"


def _origin(cells: Sequence[Cell]) -> str:
    days, revisions, versions = (
        ", ".join(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("measured", "revision", "version")
    )
    return f"Counted {days} at commit {revisions}, with ONNX Runtime {versions}."


def _millions(count: int) -> str:
    return f"{count / 1e6:.1f}"


BLOCKS = {"instructions on ARM": instructions, "kernels on ARM": kernels}
