"""Count the operators in real models: ``python count_operators.py`` writes the conformance suite's weights.

The share of an operator is the mean over the models of its share of the model's nodes, after the passes of a
session: these are the nodes that a backend receives.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import catalog

from lite_core import passes
from lite_core.formats import read_model

WEIGHTS = Path(__file__).parents[2] / "conformance/src/lite_conformance/run/operator_weights.json"


# Each network once: its legacy file has the same operators.
MODELS = [name for name in catalog.NAMES if not name.endswith("-legacy")]


def count() -> dict[str, float]:
    """Return operator -> its mean share of a model's nodes."""
    shares: Counter[str] = Counter()
    for name in MODELS:
        path = catalog.ensure(name)
        graph = passes.optimize(read_model(path.model, params=path.params))[0]
        for node in graph.nodes:
            shares[node.qualified_op] += 1 / len(graph.nodes) / len(MODELS)
    return {op: round(share, 6) for op, share in sorted(shares.items(), key=lambda item: -item[1])}


def main() -> None:
    note = (
        "The share of each operator in the nodes of real models, after the passes of a session; mean over: "
        + ", ".join(MODELS)
        + ". Written by tests/models/count_operators.py."
    )
    WEIGHTS.write_text(json.dumps({"note": note, "weights": count()}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {WEIGHTS}")


if __name__ == "__main__":
    main()
