"""Pictures of a converted file in Graphviz's language, which ``dot -Tsvg`` draws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lite_core.errors import InputError
from lite_paddle.paddle_lite.container import read_model
from lite_paddle.paddle_lite.program import KERNEL_ATTRIBUTE, Block

__all__ = ["draw_blocks"]


def draw_blocks(model: Path, folder: Path) -> list[str]:
    """Write ``Block_0.dot``, ``Block_1.dot`` ... into a folder, and return the names without the ending."""
    names = []
    for block in read_model(model).blocks:
        names.append(f"Block_{block.index}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{names[-1]}.dot").write_text("\n".join(_lines(block)) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the picture of {names[-1]} into {folder}: {error}") from error
    return names


def _lines(block: Block) -> Iterator[str]:
    """Yield the lines of a graph: boxes are operators with their kernels, ovals are variables."""
    yield f"digraph Block_{block.index} {{"
    writers: dict[str, int] = {}
    for number, operator in enumerate(block.operators):
        label = "\n".join(filter(None, [operator.type, operator.get(KERNEL_ATTRIBUTE)]))
        yield f"  op{number} [shape=box, label={_quoted(label)}];"
        for name in dict.fromkeys(name for group in operator.inputs.values() for name in group):
            # A name may be written several times; each value of it is an oval of its own.
            yield f"  {_quoted(f'{name}@{writers.get(name, -1)}')} [label={_quoted(name)}];"
            yield f"  {_quoted(f'{name}@{writers.get(name, -1)}')} -> op{number};"
        for name in dict.fromkeys(name for group in operator.outputs.values() for name in group):
            writers[name] = number
            yield f"  {_quoted(f'{name}@{number}')} [label={_quoted(name)}];"
            yield f"  op{number} -> {_quoted(f'{name}@{number}')};"
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
