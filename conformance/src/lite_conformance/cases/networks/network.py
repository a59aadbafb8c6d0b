"""The description of a network of the suite."""

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
    """A small trained network, with inputs whose correct answers are known.

    Attributes:
        name: the network's name, an identifier.
        summary: one line: architecture and task.
        build: builds the graph with its trained weights.
        examples: seed -> inputs by name, from the distribution of the training data, but not in it. The same
            seed gives the same inputs; other seeds may give other shapes.
        task_error: (seed, outputs of the graph by name) -> None if the outputs solve the task on
            ``examples(seed)``, otherwise a sentence with the accuracy that is too low.
    """

    name: str
    summary: str
    build: Callable[[], Graph]
    examples: Callable[[int], dict[str, Array]]
    task_error: Callable[[int, Mapping[str, Array]], str | None]
