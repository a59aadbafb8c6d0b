"""The text and the JSON that ``lite serve`` prints when it answers: addresses, models, notes, a request to try."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Sequence
from typing import Any

from lite_serve.models.repository import READY, Repository
from lite_serve.protocol.errors import ProtocolError
from lite_serve.protocol.messages import ModelMetadata
from lite_serve.server.running import Addresses
from lite_serve.server.settings import ServerSettings
from lite_tools.commands import console, print_text, table

__all__ = ["print_ready", "ready_document"]

#: Elements of the inputs of a request that is shown, at most.
_MOST_SHOWN = 32


def ready_document(
    source: str, addresses: Addresses, repository: Repository, settings: ServerSettings, notes: Sequence[str]
) -> dict[str, Any]:
    """Return what the command prints with ``--json`` when the server is ready."""
    models = [_described(repository, *entry) for entry in repository.index()]
    return {
        "model": source,
        "pid": os.getpid(),
        "http": addresses.http,
        "grpc": addresses.grpc,
        "tls": settings.tls is not None,
        "tokens": len(settings.tokens),
        "control": settings.repository_control,
        "models": models,
        "notes": list(dict.fromkeys(notes)),
        "next": _request_to_try(addresses, repository, settings, models),
    }


def print_ready(document: dict[str, Any], *, only_checked: bool = False) -> None:
    """Print what a person wants to know when the server is ready, or when it has only been checked that it can be."""
    rows = [
        (
            each["name"],
            each["version"],
            each["state"],
            each["properties"].get("devices", ""),
            _run_by(each["properties"]),
        )
        for each in document["models"]
    ]
    table(("model", "version", "state", "devices", "runs"), rows)
    console.print()
    for name, address in (("HTTP", document["http"]), ("gRPC", document["grpc"])):
        if address:
            console.print(f"{name}  {address}", markup=False)
    if only_checked:
        console.print("checked: it can be served", markup=False)
        return
    console.print("ready; Ctrl-C answers what was accepted, and ends\n", markup=False)
    if document["next"]:
        print_text(f"next: {document['next']}")


def _run_by(properties: dict[str, str]) -> str:
    if "instances" not in properties:
        return ""
    threads = properties["threads"]
    return f"{properties['instances']} at once, with {threads} thread{'s' if threads != '1' else ''} each"


def _described(repository: Repository, name: str, version: str, state: str, reason: str) -> dict[str, Any]:
    metadata = _metadata(repository, name, version) if state == READY else None
    return {
        "name": name,
        "version": version,
        "state": state,
        "reason": reason,
        "inputs": [] if metadata is None else [_tensor(each) for each in metadata.inputs],
        "outputs": [] if metadata is None else [_tensor(each) for each in metadata.outputs],
        "properties": {} if metadata is None else dict(metadata.properties),
    }


def _metadata(repository: Repository, name: str, version: str) -> ModelMetadata | None:
    try:
        return repository.metadata(name, version)
    except ProtocolError:
        return None


def _tensor(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _request_to_try(
    addresses: Addresses, repository: Repository, settings: ServerSettings, models: Sequence[dict[str, Any]]
) -> str:
    """Return a line for curl: a request for inference if it is short, else one for the model's metadata."""
    ready = next((each for each in models if each["state"] == READY), None)
    if ready is None or not addresses.http:
        return ""
    for anywhere, here in (("://0.0.0.0:", "://127.0.0.1:"), ("://[::]:", "://[::1]:")):
        addresses = Addresses(addresses.http.replace(anywhere, here), addresses.grpc)
    words = ["curl", "-s"]
    if "[" in addresses.http:
        words.append("-g")
    if settings.tls is not None:
        words += ["--cacert", str(settings.tls.certificate)]
        if settings.tls.client_ca is not None:
            words += ["--cert", "CERTIFICATE", "--key", "KEY"]
    line = shlex.join(words)
    if settings.tokens:
        line += ' -H "Authorization: Bearer TOKEN"'
    url = f"{addresses.http}/v2/models/{ready['name']}"
    inputs = [_example(each) for each in ready["inputs"]]
    if any(each is None for each in inputs):
        return f"{line} {shlex.quote(url)}"
    return f"{line} {shlex.quote(url + '/infer')} -d {shlex.quote(json.dumps({'inputs': inputs}))}"


def _example(tensor: dict[str, Any]) -> dict[str, Any] | None:
    """Return an input of zeros; None if it is long."""
    shape = [1 if size < 0 else size for size in tensor["shape"]]
    count = math.prod(shape)
    if count > _MOST_SHOWN or tensor["datatype"] in ("FP16", "BF16"):  # which JSON has no numbers for
        return None
    element: Any = {"BYTES": "a", "BOOL": False}.get(tensor["datatype"], 0)
    return {**tensor, "shape": shape, "data": [element] * count}
