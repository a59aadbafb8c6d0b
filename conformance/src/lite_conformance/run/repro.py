"""Scripts that repeat failures; they need only NumPy and lite_core."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lite_conformance.cases.case import Settings
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.outcome import Replay
from lite_conformance.judge.precision import find_precision
from lite_conformance.run.executor import repro_command
from lite_core.ir import Attribute, DType, Graph, Node, Value

__all__ = ["write_script"]

_MAX_NAME_LENGTH = 120
# Imports of a script for a backend that is not installed.
_CONTRACT = ("from lite_core.backend import Backend", "from lite_core.plugins import plugins_with")

_SCRIPT = '''"""{case} on {backend}: run with `python {name}.py`; exit code 1 means that {problem}.

The suite ran it as: {command}
"""

from pathlib import Path

import numpy as np

import lite_core as lite
{imports}

data = np.load(Path(__file__).with_suffix(".npz"))


def array(name, dtype):
    kind = lite.DType(dtype).numpy
    return data[name].view(kind) if dtype == "bfloat16" else data[name].astype(kind, copy=False)


{graph}

{run}'''

# The part that compiles and runs the graph, and the part for a graph that cannot be compiled.
_RUN = """session = lite.load(graph, {load}, fallback="never", optimize=False)
outputs = session.run({{{inputs}}})

wrong = False
for name in {outputs}:
    actual, expected, allowed = outputs[name], data["expected_" + name], data["allowed_" + name]
    if actual.shape != expected.shape:
        print(f"{{name}}: shape {{list(actual.shape)}}, expected {{list(expected.shape)}}")
        wrong = True
        continue
    if expected.dtype.kind != "f":
        bad = (actual != expected) & (allowed == 0)
    else:
        actual = actual.astype(np.float64)
        with np.errstate(all="ignore"):
            close = np.abs(actual - expected) <= allowed
        same = (actual == expected) & (~np.isnan(allowed) | (np.signbit(actual) == np.signbit(expected)))
        same |= (allowed < 0) & (actual == 0)
        bad = ~(close | np.isinf(allowed) | same | (np.isnan(actual) & np.isnan(expected)))
    print(f"{{name}}: {{int(bad.sum())}} of {{bad.size}} element(s) wrong")
    for index in map(tuple, np.argwhere(bad)[:10]):
        print(f"  [{{', '.join(map(str, index))}}]: {{actual[index]}}, expected {{expected[index]}}")
    wrong = wrong or bool(bad.any())
raise SystemExit(int(wrong))
"""
_COMPILE = """lite.load(graph, {load}, fallback="never", optimize=False).prepare()
print("the graph was compiled")
"""


def write_script(folder: Path, case: str, settings: Settings, replay: Replay) -> Path:
    """Write ``repro_*.py`` and an ``.npz`` file with its arrays, and return the path of the script.

    Args:
        folder: the folder to write to; created if it does not exist.
        case: the case's name.
        settings: settings of the run.
        replay: the graph, its inputs and expected outputs; or the graph alone, which the script compiles.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = "repro_" + re.sub(r"[^A-Za-z0-9]+", "_", case).strip("_")
    if len(name) > _MAX_NAME_LENGTH:  # file systems limit the length of names
        name = f"{name[:_MAX_NAME_LENGTH]}_{zlib.crc32(case.encode()):08x}"
    source = _Source()
    lines = list(source.build(replay.graph, "graph", "b", outer=None))
    arrays = dict(source.arrays)
    if replay.inputs is not None:
        arrays.update({f"input_{v.name}": a for v, a in zip(replay.graph.inputs, replay.inputs)})
        arrays.update({f"expected_{v.name}": a for v, a in zip(replay.graph.outputs, replay.expected)})
        arrays.update({f"allowed_{v.name}": a for v, a in zip(replay.graph.outputs, replay.allowed)})
    np.savez(folder / f"{name}.npz", **{key: _storable(a) for key, a in arrays.items()})  # type: ignore[arg-type]
    load, imports = _backend(settings.backend)
    load += _precision(case, settings)
    inputs = ", ".join(f"{v.name!r}: array({'input_' + v.name!r}, {v.dtype.value!r})" for v in replay.graph.inputs)
    run = _COMPILE if replay.inputs is None else _RUN
    text = _SCRIPT.format(
        case=_in_docstring(case),
        backend=_in_docstring(settings.backend),
        name=name,
        problem="it still cannot be compiled" if replay.inputs is None else "the result is still wrong",
        command=_in_docstring(repro_command(case, settings)),
        imports=imports,
        graph="\n".join(lines),
        run=run.format(load=load, inputs=inputs, outputs=[v.name for v in replay.graph.outputs]),
    )
    script = folder / f"{name}.py"
    script.write_text(text, encoding="utf-8")
    return script


def _in_docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _backend(spec: str) -> tuple[str, str]:
    """Return the arguments of ``load`` that choose the backend, and the lines that import it."""
    module, colon, attribute = spec.rpartition(":")
    if not colon or attribute.isdecimal():
        return f"backend={spec!r}", ""
    if module.endswith(".py"):
        imports = ["import importlib.util", "import sys", "", *_CONTRACT, ""]
        imports.append(
            f"spec = importlib.util.spec_from_file_location('backend_under_test', {str(Path(module).resolve())!r})"
        )
        imports.append("module = importlib.util.module_from_spec(spec)")
        imports.append("sys.modules[spec.name] = module")
        imports.append("spec.loader.exec_module(module)")
    else:
        imports = ["import importlib", "import sys", "", *_CONTRACT, ""]
        imports.append(f"sys.path.insert(0, {str(Path.cwd())!r})")
        imports.append(f"module = importlib.import_module({module!r})")
    imports.append(f"backend = module.{attribute}")
    imports.append("backend = backend() if isinstance(backend, type) or not isinstance(backend, Backend) else backend")
    imports.append("plugins = plugins_with(backend)")
    return "backend=backend.name, plugins=plugins", "\n".join(imports)


def _precision(case: str, settings: Settings) -> str:
    """Return the arguments of ``load`` that ask for the precision level of a case."""
    wanted = find_precision(settings.precision).operands
    in_float32 = "[f32," in case or case.startswith(("model[", "precision["))
    if wanted is DType.FLOAT32 or not in_float32 or case.startswith("stress["):
        return ""
    if wanted.is_half:
        return f", precision={wanted.value!r}"
    installed = settings.backend.partition(":")[0]
    name = repr(installed) if _backend(settings.backend)[1] == "" else "backend.name"
    return f', backend_options={{{name}: {{"precision": {wanted.value!r}}}}}'


class _Source:
    """Generator of the source of graphs, as calls of GraphBuilder."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[Value, str] = {}

    def build(self, graph: Graph, result: str, builder: str, outer: str | None) -> Iterator[str]:
        around = f", outer={outer}" if outer else ""
        yield f"{builder} = lite.GraphBuilder({graph.name!r}{around})"
        for value in graph.inputs:
            shape = (
                None if value.type.shape is None else [d if isinstance(d, int) else str(d) for d in value.type.shape]
            )
            yield f"{self._name(value)} = {builder}.input({value.name!r}, {value.dtype.value!r}, {_dims(shape)})"
        for value, array in graph.constants.items():
            yield f"{self._name(value)} = {builder}.constant({self._array(array)})"
        for number, node in enumerate(graph.nodes):
            yield from self._node(node, builder, f"{builder}{number}")
        for value in graph.outputs:
            name = f", {value.name!r}" if outer is None else ""
            yield f"{builder}.output({self._name(value)}{name})"
        yield f"{result} = {builder}.build()"

    def _node(self, node: Node, builder: str, inner: str) -> Iterator[str]:
        attributes = []
        for key, attribute in node.attributes.items():
            if isinstance(attribute, Graph):
                yield from self.build(attribute, f"{inner}_{key}", f"{inner}_{key}_b", outer=builder)
                attributes.append(f"{key!r}: {inner}_{key}")
            else:
                attributes.append(f"{key!r}: {self._attribute(attribute)}")
        targets = ", ".join("_" if v is None else self._name(v) for v in node.outputs)
        inputs = ", ".join("None" if v is None else self._name(v) for v in node.inputs)
        domain = f", domain={node.domain!r}" if node.domain else ""
        count = f"outputs={len(node.outputs)}"
        yield f"[{targets}] = {builder}.add_node({node.op!r}, [{inputs}], {{{', '.join(attributes)}}}, {count}{domain})"

    def _name(self, value: Value) -> str:
        if value not in self._names:
            plain = re.sub(r"[^A-Za-z0-9_]", "_", value.name)
            self._names[value] = f"v{len(self._names)}_{plain}"[:60]
        return self._names[value]

    def _array(self, array: Array) -> str:
        key = f"constant_{len(self.arrays)}"
        self.arrays[key] = array
        return f"array({key!r}, {DType.of(array.dtype).value!r})"

    def _attribute(self, attribute: Attribute) -> str:
        if isinstance(attribute, np.ndarray):
            return self._array(attribute)
        if isinstance(attribute, DType):
            return f"lite.DType({attribute.value!r})"
        if isinstance(attribute, float) and not np.isfinite(attribute):
            return f"float({str(attribute)!r})"
        return repr(attribute)


def _dims(shape: Sequence[Any] | None) -> str:
    """Return the dimensions as source; symbolic expressions become None, because GraphBuilder accepts only names."""
    if shape is None:
        return "None"
    return "[" + ", ".join(repr(d) if isinstance(d, int) or d.isidentifier() else "None" for d in shape) + "]"


def _storable(array: Array) -> Array:
    """Return the array, or the bits of bfloat16 as uint16, which NPZ files can store."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array
