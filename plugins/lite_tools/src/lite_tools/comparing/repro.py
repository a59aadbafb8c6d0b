"""A script that repeats the difference of one node, or of the nodes of one kernel, with the arrays that it reads."""

from __future__ import annotations

import pprint
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.ir import DType, Node
from lite_tools.comparing.regions import Region

__all__ = ["write_repro"]

Array = np.ndarray[Any, Any]

_SCRIPT = '''"""{title}

Written by `lite compare`. The arrays are in {arrays}, beside this file.

    python {script}            # exit code 1 while the results differ
    python {script} BACKEND    # the same nodes on another backend
"""

import sys
from pathlib import Path

import numpy as np

import lite_core as lite

BACKEND = {backend!r}
THREADS = {threads!r}
RUNS = {runs!r}  # more than one if the results change from run to run
PRECISION = {precision!r}

with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as file:
    ARRAYS = dict(file)


def array(name: str, dtype: str) -> np.ndarray:
    """Return an array of the file; types that NumPy lacks are stored as their bits."""
    return ARRAYS[name].view(lite.DType(dtype).numpy)


def make_graph() -> lite.Graph:
    """Return the nodes with their constants."""
    builder = lite.GraphBuilder({name!r})
    value = {{}}
{inputs}
{constants}
{nodes}
    for name in {outputs!r}:
        builder.output(value[name], name)
    return builder.build()


INPUTS = {{
{feeds}
}}
EXPECTED = {{
{expected}
}}


def main() -> int:
    """Run the nodes and compare the results with the true ones; return 1 if they differ."""
    backend = sys.argv[1] if len(sys.argv) > 1 else BACKEND
    session = lite.load(make_graph(), backend, THREADS, PRECISION, optimize=False)
    errors = []
    for number in range(RUNS):
        errors.append(largest_error(session.run(INPUTS), is_shown=number == 0))
    wrong = sum(error > {tolerance!r} for error in errors)
    print(f"on {{', '.join(session.devices)}}: {{wrong}} of {{RUNS}} run(s) differ")
    return int(wrong > 0)


def largest_error(results: dict[str, np.ndarray], is_shown: bool) -> float:
    """Return the greatest difference, as a share of the result's largest element, and print it."""
    worst = 0.0
    for name, true in EXPECTED.items():
        found = results[name]
        if found.shape != true.shape:
            print(f"{{name}}: shape {{list(found.shape)}}, expected {{list(true.shape)}}")
            worst = np.inf
            continue
        with np.errstate(invalid="ignore"):
            gaps = np.abs(found.astype(np.float64) - true.astype(np.float64))
        gaps[(found == true) | ((found != found) & (true != true))] = 0
        place = np.unravel_index(np.argmax(np.nan_to_num(gaps, nan=np.inf)), gaps.shape) if gaps.size else ()
        scale = float(np.nanmax(np.abs(true.astype(np.float64)), initial=0.0)) or 1.0
        gap = float(np.nan_to_num(gaps, nan=np.inf).max(initial=0.0)) / scale
        at = [int(index) for index in place]
        if is_shown:
            print(f"{{name}}: differs by {{gap:.3g}} of its largest element; at {{at}} it is")
            print(f"  {{found[place]}}, expected {{true[place]}}")
        worst = max(worst, gap)
    return worst


if __name__ == "__main__":
    sys.exit(main())
'''


def write_repro(
    folder: Path,
    region: Region,
    nodes: Sequence[Node],
    arrays: Mapping[str, Array],
    expected: Mapping[str, Array],
    *,
    backend: str,
    threads: int,
    precision: str,
    tolerance: float,
    runs: int = 1,
) -> tuple[Path, Path] | None:
    """Write the script and its arrays; return their paths, or None for nodes with sub-graphs.

    Args:
        folder: the folder to write into.
        region: the region that the nodes belong to, for their constants.
        nodes: the nodes, in order.
        arrays: the true inputs of the nodes, by name.
        expected: true results of the nodes, by name.
        backend: the backend that differs.
        threads: its number of threads.
        precision: its precision.
        tolerance: the relative error up to which results agree.
        runs: how often the script runs the nodes.

    Raises:
        OSError: the files cannot be written.
    """
    if any(node.subgraphs for node in nodes):
        return None
    name = nodes[-1].name or nodes[-1].op
    stem = "-".join(["compare", *(re.sub(r"[^A-Za-z0-9_.]+", "_", word)[:60] for word in (backend, name))])
    store: dict[str, Array] = {}

    def stored(key: str, array: Array) -> str:
        known = array.dtype.kind in "biufc"
        store[key] = array if known else array.view(np.dtype(f"u{array.dtype.itemsize}"))
        return f"array({key!r}, {DType.of(array.dtype).value!r})"

    used = dict.fromkeys(value for node in nodes for value in node.used())
    made = {value for node in nodes for value in node.outputs if value is not None}
    constants = {value.name: region.constants[value.name] for value in used if value.name in region.constants}
    inputs = [value for value in used if value not in made and value.name not in constants]
    feeds = {value.name: stored(f"input_{i}", arrays[value.name]) for i, value in enumerate(inputs)}
    lines_in = [
        f"    value[{v.name!r}] = builder.input({v.name!r}, {v.dtype.value!r}, {list(arrays[v.name].shape)!r})"
        for v in inputs
    ]
    lines_constants = [
        f"    value[{key!r}] = builder.constant({stored(f'constant_{i}', array)}, {key!r})"
        for i, (key, array) in enumerate(constants.items())
    ]
    text = _SCRIPT.format(
        title=f"{name} ({'+'.join(dict.fromkeys(n.qualified_op for n in nodes))}) on {backend} differs.".replace(
            '"""', "'''"
        ).replace("\\", "/"),
        arrays=f"{stem}.npz",
        script=f"{stem}.py",
        backend=backend,
        threads=threads,
        precision=precision,
        name=name,
        inputs="\n".join(lines_in),
        constants="\n".join(lines_constants),
        nodes="\n".join(_node_lines(node, stored, i) for i, node in enumerate(nodes)),
        outputs=list(expected),
        feeds="\n".join(f"    {key!r}: {source}," for key, source in feeds.items()),
        expected="\n".join(
            f"    {key!r}: {stored(f'expected_{i}', array)}," for i, (key, array) in enumerate(expected.items())
        ),
        tolerance=tolerance,
        runs=runs,
    )
    folder.mkdir(parents=True, exist_ok=True)
    script, file = folder / f"{stem}.py", folder / f"{stem}.npz"
    script.write_text(text, encoding="utf-8")
    np.savez(file, allow_pickle=False, **store)
    return script, file


def _node_lines(node: Node, stored: Any, number: int) -> str:
    """Return the statements that add a node to the builder."""
    attributes = (
        "{"
        + ", ".join(
            f"{key!r}: {_attribute(value, stored, f'attribute_{number}_{key}')}"
            for key, value in node.attributes.items()
        )
        + "}"
    )
    inputs = ", ".join("None" if v is None else f"value[{v.name!r}]" for v in node.inputs)
    outputs = ["" if v is None else v.name for v in node.outputs]
    extra = f", domain={node.domain!r}" if node.domain else ""
    extra += f", name={node.name!r}" if node.name else ""
    call = (
        f"    added = builder.add_node({node.op!r}, [{inputs}], {attributes}, outputs={outputs!r}{extra})\n"
        f"    value.update(zip({outputs!r}, added))"
    )
    return call


def _attribute(value: Any, stored: Any, key: str) -> str:
    if isinstance(value, np.ndarray):
        return str(stored(key, value))
    if isinstance(value, DType):
        return f"lite.DType({value.value!r})"
    return pprint.pformat(value, width=10_000)
