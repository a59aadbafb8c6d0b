"""The comparison with other engines in short, in English and Chinese: blocks of the READMEs, made of docs/results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from list_results import FOLDER, read_all, series_of
from markdown_tables import table

__all__ = ["BLOCKS", "CHINESE", "ENGLISH", "in_short"]

#: The titles of the columns, and the words in the rows.
ENGLISH: Mapping[str, str] = {
    "processor": "processor",
    "models": "models",
    "threads": "threads",
    "mean": "time of the fastest other engine / time of Lite",
    "ahead": "Lite is the fastest on",
    "cores": "cores",
    "the Paddle models": "Paddle models",
    "the ONNX models": "ONNX models",
    "of": "{ahead} of {all}",
}
CHINESE: Mapping[str, str] = {
    "processor": "处理器",
    "models": "模型",
    "threads": "线程",
    "mean": "其他引擎中最快的耗时 / Lite 的耗时",
    "ahead": "Lite 最快的模型",
    "cores": "核",
    "the Paddle models": "Paddle 模型",
    "the ONNX models": "ONNX 模型",
    "of": "{all} 个中的 {ahead} 个",
}


def in_short(words: Mapping[str, str], folder: Path = FOLDER) -> str:
    """Return the geometric means of each processor, with all of its instructions and the engines in turns."""
    rows = []
    for results in read_all(folder).values():
        plain = [cell for cell in results.cells if not cell.variant]
        for series in series_of(replace(results, cells=tuple(plain))):
            if not series.condition.level and not series.condition.alone:
                count = len(series.cells)
                ahead = words["of"].format(ahead=count - len(series.behind), all=count)
                name = results.name.replace("cores", words["cores"])
                rows.append([name, words[series.title], str(series.condition.threads), f"**{series.mean}**", ahead])
    titles = [words[name] for name in ("processor", "models", "threads", "mean", "ahead")]
    return f"\n{table(titles, rows, right=(2, 3))}\n"


BLOCKS = {
    "speed in short": partial(in_short, ENGLISH),
    "speed in short, in Chinese": partial(in_short, CHINESE),
}
