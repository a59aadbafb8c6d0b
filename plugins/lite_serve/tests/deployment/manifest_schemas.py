"""Validation of Kubernetes manifests by the schemas of Kubernetes and KServe, for an environment that has both.

    python manifest_schemas.py FILE ...

prints a line for each mistake, and exits with 1 if there is one. The schemas of Kubernetes are those of the package
kubernetes-validate, in their strict form: unknown fields are mistakes. KServe publishes its types as Python models,
which a generator made from its OpenAPI description; their tables are read here, without importing KServe, and become
schemas that refer to those of Kubernetes.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

#: The release of Kubernetes whose types are used.
RELEASE = "1.34.0"
_KUBERNETES = "https://kubernetes.io/api/_definitions.json"
#: A name in KServe's tables: a group of Kubernetes' API if it is not the usual one, a version, a type.
_NAME = re.compile(r"(?:K8sIoApi(?P<group>[A-Z][a-z]+))?(?P<version>V\d+(?:(?:alpha|beta)\d+)?)(?P<type>[A-Z]\w*)")
_PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "object": "object"}

Schema = dict[str, Any]


def mistakes(manifest: Schema) -> Iterator[str]:
    """Yield what is wrong with a manifest: where, and why."""
    group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
    kind = str(manifest.get("kind", ""))
    known, registry = _kubernetes_types()
    if group == "serving.kserve.io":
        types = _kserve_types(known)
        registry = Resource.from_contents({"$id": "https://kserve/types", "$schema": _DRAFT, "$defs": types}) @ registry
        name = f"{version[:1].upper()}{version[1:]}{kind}"
        schema: Schema | None = {"$ref": f"https://kserve/types#/$defs/{name}"} if name in types else None
    else:
        name = next((found for found, schema in known.items() if [group, version, kind] in _kinds(schema)), "")
        schema = {"$ref": f"{_KUBERNETES}#/$defs/{name}"} if name else None
    if schema is None:
        yield f"there is no {kind!r} in {manifest.get('apiVersion')!r}"
        return
    for error in Draft202012Validator(schema, registry=registry).iter_errors(manifest):
        yield f"{'.'.join(map(str, error.absolute_path))}: {error.message}"


_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _kinds(schema: Schema) -> list[list[str]]:
    kinds = schema.get("x-kubernetes-group-version-kind", [])
    return [[kind["group"], kind["version"], kind["kind"]] for kind in kinds]


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{package} is not installed: pip install {package.replace('_', '-')}")
    return Path(next(iter(spec.submodule_search_locations)))


def _kubernetes_types() -> tuple[dict[str, Schema], Registry[Any]]:
    folder = _folder_of("kubernetes_validate") / "kubernetes-json-schema" / f"v{RELEASE}-local-strict"
    contents = json.loads((folder / "_definitions.json").read_text("utf-8"))
    return contents["$defs"], Resource.from_contents(contents) @ Registry()


def _kserve_types(known: dict[str, Schema]) -> dict[str, Schema]:
    """Return a schema for each type of KServe, by its name."""
    found = {}
    for file in sorted((_folder_of("kserve") / "models").glob("v*.py")):
        for statement in ast.parse(file.read_text("utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                found[statement.name] = statement
    return {name: _object_schema(statement, found, known) for name, statement in found.items()}


def _object_schema(statement: ast.ClassDef, own: dict[str, ast.ClassDef], known: dict[str, Schema]) -> Schema:
    tables = {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in statement.body
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and isinstance(line.value, ast.Dict)
    }
    types, names = tables["openapi_types"], tables["attribute_map"]
    # The generated setters refuse None for what is required.
    refused = re.findall(r"Invalid value for `(\w+)`, must not be `None`", ast.unparse(statement))
    return {
        "type": "object",
        "properties": {names[name]: _type_schema(written, own, known) for name, written in types.items()},
        "required": sorted({names[name] for name in refused}),
        "additionalProperties": False,
    }


def _type_schema(written: str, own: dict[str, ast.ClassDef], known: dict[str, Schema]) -> Schema:
    """Return the schema of a type as the generator writes it: ``list[V1Container]``, ``dict(str, str)``."""
    if inner := re.fullmatch(r"list\[(.*)\]", written):
        return {"type": "array", "items": _type_schema(inner[1], own, known)}
    if inner := re.fullmatch(r"dict\(str, (.*)\)", written):
        return {"type": "object", "additionalProperties": _type_schema(inner[1], own, known)}
    if written in _PLAIN:
        return {"type": _PLAIN[written]}
    if written in own:
        return {"$ref": f"#/$defs/{written}"}
    name = _kubernetes_name(written)
    # KServe's release may know types that this release of Kubernetes has not: anything is accepted there.
    return {"$ref": f"{_KUBERNETES}#/$defs/{name}"} if name in known else {}


def _kubernetes_name(written: str) -> str:
    if written == "ResourceQuantity":
        return "io.k8s.apimachinery.pkg.api.resource.Quantity"
    parts = _NAME.fullmatch(written)
    if parts is None:
        return ""
    if parts["type"] in {"ObjectMeta", "ListMeta", "LabelSelector"}:
        return f"io.k8s.apimachinery.pkg.apis.meta.{parts['version'].lower()}.{parts['type']}"
    return f"io.k8s.api.{(parts['group'] or 'core').lower()}.{parts['version'].lower()}.{parts['type']}"


def main() -> int:
    """Validate the files that the command line names."""
    found = 0
    for file in sys.argv[1:]:
        for manifest in yaml.safe_load_all(Path(file).read_text("utf-8")):
            about = f"{Path(file).name}: {manifest.get('kind')} {manifest.get('metadata', {}).get('name')}"
            wrong = list(mistakes(manifest))
            found += len(wrong)
            print("\n".join(f"{about}: {line}" for line in wrong) or f"{about}: valid")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
