"""The messages of gRPC, field by field against those of clients that others wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import ROOT

CLIENTS = ROOT / ".venv-clients/bin/python"
PROGRAM = Path(__file__).parents[1] / "client_messages.py"

pytestmark = [
    pytest.mark.full("serving"),
    pytest.mark.skipif(sys.platform != "linux", reason="the environment of the clients is made for Linux"),
    pytest.mark.skipif(not CLIENTS.exists(), reason="no environment with clients: make clients"),
]

_LOADING = {f"inference.RepositoryModel{verb}{kind}" for verb in ("Load", "Unload") for kind in ("Request", "Response")}
# Messages that a client has with other fields, or not at all. Those to load a model follow Triton; kserve's requests
# have only a name, where Triton has that of a repository. The answers have kserve's fields, Triton's have none.
_DIFFERENT = {
    "tritonclient": {name for name in _LOADING if name.endswith("Response")},
    "kserve": {name for name in _LOADING if name.endswith("Request")} | {"inference.InferParameter"},
}


@pytest.mark.parametrize("client", ["tritonclient", "kserve"])
def test_messages_and_methods_are_those_of_the_client(client: str) -> None:
    done = subprocess.run([CLIENTS, PROGRAM, client], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    theirs, ours = found["client"], found["lite"]
    assert ours["service"] == theirs["service"]
    common = ours["messages"].keys() & theirs["messages"].keys()
    assert {name for name in common if ours["messages"][name] != theirs["messages"][name]} == _DIFFERENT[client]
    absent = {name for name in ours["messages"].keys() - common if "Repository" not in name or client == "tritonclient"}
    assert not absent
    methods = ours["methods"].keys() & theirs["methods"].keys()
    assert {name: ours["methods"][name] for name in methods} == {name: theirs["methods"][name] for name in methods}
    # kserve has no index, and Triton everything.
    missing = set(ours["methods"]) - set(theirs["methods"])
    assert missing == ({"RepositoryIndex"} if client == "kserve" else set())


def test_kserve_names_the_model_where_triton_names_the_repository() -> None:
    done = subprocess.run([CLIENTS, PROGRAM, "kserve"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for verb in ("Load", "Unload"):
        (field,) = found["client"]["messages"][f"inference.RepositoryModel{verb}Request"]
        first = found["lite"]["messages"][f"inference.RepositoryModel{verb}Request"][0]
        assert (field[0], field[2]) == (first[0], first[2])  # number and type
    parameter = found["lite"]["messages"]["inference.InferParameter"]
    assert parameter[:3] == found["client"]["messages"]["inference.InferParameter"]
