"""What the suite knows about one of its networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import Graph

__all__ = ["Network"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Network:
    """A small trained network with inputs whose right answers are known.

    Attributes:
        name: what it is called, an identifier.
        summary: one line: architecture, task, and how well it does it.
        build: makes the graph, with its trained weights.
        examples: seed -> inputs by name, as the network was trained on but never seen by it. The same
            seed gives the same inputs; other seeds may give other shapes.
        task_error: (seed, outputs of the graph by name) -> None when the outputs solve the task on
            ``examples(seed)``; otherwise a sentence with the figure that falls short.
    """

    name: str
    summary: str
    build: Callable[[], Graph]
    examples: Callable[[int], dict[str, Array]]
    task_error: Callable[[int, Mapping[str, Array]], str | None]
