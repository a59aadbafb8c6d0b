"""JSON Schemas of everything that the commands print with --json, from which docs/schemas is written.

Each module has the schemas of some commands in ``SCHEMAS``, by the name of the file, which is the words of the command
joined by hyphens: ``bench``, ``cache-fill``. Names of ``lite-conformance`` begin with ``conformance``.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from json_schemas import comparing, conformance, converting, installation, looking, mapping, running, serving
from json_schemas.parts import Schema
from workspace import ROOT

__all__ = ["EXAMPLES", "FOLDER", "SCHEMAS", "files", "laid_out", "ordered"]

FOLDER = ROOT / "docs/schemas"
#: The schemas by the names of their files.
SCHEMAS: dict[str, Schema] = {
    name: schema
    for module in (running, serving, mapping, comparing, converting, looking, installation, conformance)
    for name, schema in module.SCHEMAS.items()
}
#: For each schema a command, the field of its result that a program may want, and what that may be.
EXAMPLES: dict[str, tuple[str, str, str]] = {
    "backends": ("lite backends", ".backends[].device", '"x86"'),
    "bench": ("lite bench model.onnx", ".results[0].latency_p50_ms", "0.204"),
    "bisect": ("lite bisect model.onnx --by node --b opencl", ".culprits[].name", '"conv_3"'),
    "cache": ("lite cache", ".kinds[].bytes", "724092"),
    "cache-clear": ("lite cache clear", ".removed[].entries", "85"),
    "cache-fill": ("lite cache fill model.onnx", ".models[].new_entries", "14"),
    "check": ("lite check model.onnx --targets arm,opencl", ".ok", "true"),
    "compare": ("lite compare model.onnx --b opencl", ".verdict", '"agree"'),
    "completion": ("lite completion bash", ".shell", '"bash"'),
    "convert": ("lite convert model.onnx -o model.lite", ".checks[].differences", '{"y": 3.8e-07}'),
    "demo": ("lite demo", ".lines[].text", '"HARBOUR BAKERY"'),
    "doctor": ("lite doctor", ".plugins[].error", '""'),
    "error": ("lite run nothing.onnx", ".exit_code", "2"),
    "inspect": ("lite inspect model.onnx", ".op_counts", '{"Conv": 53, "Relu": 15}'),
    "map": ("lite map model.onnx table.parquet -o scores", ".rows", "1000000"),
    "new-plugin": ("lite new-plugin operator acme", ".files[]", '"pyproject.toml"'),
    "ops": ("lite ops Conv", ".operators[0].types", '{"T": ["float16", "float32"]}'),
    "opt": ("lite opt --model_dir model --optimize_out model", ".output", '"model.nb"'),
    "plugins": ("lite plugins", ".plugins[].seconds", '{"import": 0.0004}'),
    "plugins-validate": ("lite plugins validate .", ".errors", "0"),
    "report": ("lite report model.onnx", ".outcome", '"crashed"'),
    "run": ("lite run model.onnx", ".run_seconds[0]", "0.0037"),
    "serve": ("lite serve model.onnx", ".http", '"http://127.0.0.1:8000"'),
    "trust": ("lite trust --show model.lite", ".files[].trusted", "false"),
    "tune": ("lite tune --show", ".unavailable", "{}"),
    "version": ("lite --version", ".version", '"0.1.0"'),
    "conformance-compare": ("lite-conformance compare old.json new.json", ".regressed[].case", '"Relu[f32,scalar]"'),
    "conformance-export": ("lite-conformance export FOLDER", ".cases[].case", '"Relu[f32,scalar]"'),
    "conformance-manifest": ("lite-conformance submit", ".profiles[].name", '"vision-f32"'),
    "conformance-report": ("lite-conformance run --backend x86", ".counts.failed", "0"),
    "conformance-submit": ("lite-conformance submit", ".sha256", '"4c9b..."'),
    "conformance-verify": ("lite-conformance verify s.zip", ".verified", "true"),
}
_WIDTH = 118
_FIRST = ("$schema", "title", "$ref", "type", "description")


def files() -> dict[Path, str]:
    """Return the files of docs/schemas with their texts."""
    return {FOLDER / f"{name}.json": f"{laid_out(ordered(schema))}\n" for name, schema in sorted(SCHEMAS.items())}


def ordered(schema: Schema) -> Schema:
    """Return a schema whose keywords begin with those that tell a reader most."""
    keys = [key for key in _FIRST if key in schema] + [key for key in schema if key not in _FIRST]
    return {key: _ordered_value(key, schema[key]) for key in keys}


def _ordered_value(keyword: str, value: Any) -> Any:
    if keyword in ("properties", "$defs"):  # names of fields and definitions, in their order
        return {name: ordered(each) for name, each in value.items()}
    if isinstance(value, list):
        return [ordered(each) if isinstance(each, dict) else each for each in value]
    return ordered(value) if isinstance(value, dict) else value


def laid_out(value: object, indent: int = 0, room: int = _WIDTH) -> str:
    """Return JSON for readers: what fits a line is one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= room or not value or not isinstance(value, (dict, list)):
        return line
    space, end = " " * (indent + 2), " " * indent
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        words = textwrap.wrap(line[1:-1], _WIDTH - indent - 2)  # names, which have no spaces
        return "\n".join(["[", *(space + words_of_line for words_of_line in words), f"{end}]"])
    if isinstance(value, list):
        inner = [space + laid_out(each, indent + 2) for each in value]
        return "\n".join(["[", ",\n".join(inner), f"{end}]"])
    pairs = []
    for key, each in value.items():
        name = f"{space}{json.dumps(key)}: "
        pairs.append(name + laid_out(each, indent + 2, _WIDTH - len(name) + indent + 2))
    return "\n".join(["{", ",\n".join(pairs), f"{end}}}"])
