"""Level 4: whole networks: the suite's networks, which must solve their tasks, and the user's model files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.models.whole import examples_of_file, examples_of_network, run_file, run_network
from lite_conformance.cases.networks import NETWORKS

__all__ = ["cases"]

_TIMEOUT_FACTOR = 5


def cases(settings: Settings) -> Iterator[Case]:
    """Yield the cases of level 4: one for each network, then one for each model file."""
    for network in NETWORKS:
        run, examples = partial(run_network, network=network), partial(examples_of_network, network=network)
        yield Case(f"model[{network.name}]", 4, "models", run, timeout_factor=_TIMEOUT_FACTOR, examples=examples)
    for name, path in zip(_names(settings.models, {n.name for n in NETWORKS}), settings.models):
        of_file, examples = partial(run_file, path=path), partial(examples_of_file, path=path)
        yield Case(f"model[{name}]", 4, "models", of_file, timeout_factor=_TIMEOUT_FACTOR, examples=examples)


def _names(paths: Sequence[str], taken: set[str]) -> list[str]:
    """Return the file names, with as many folders as make them unique, and a number for repeated files."""
    parts = [Path(os.path.abspath(path)).parts for path in paths]
    names: list[str] = []
    for own in parts:
        others = [p for p in parts if p != own]
        count = next((k for k in range(1, len(own)) if all(p[-k:] != own[-k:] for p in others)), len(own))
        if count == 1 and own[-1] in taken:
            count = min(2, len(own))
        wanted = name = "/".join(own[-count:])
        number = 1
        while name in names:
            number += 1
            name = f"{wanted},{number}"
        names.append(name)
    return names
