"""The command ``lite bisect``: faults planted in a backend and in a pass are named; it can be killed and goes on."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Mapping
from math import ceil, log2
from pathlib import Path
from typing import Any

import catalog
import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from faulty_backend import nth_node, planted
from faulty_backend.real_models import PLACES
from installed_plugins import lite

import lite_core
from lite_core.backend import Unavailable
from lite_core.builder import GraphBuilder
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.plugins import available_backends
from lite_core.session import make_ready
from lite_tools.bisecting import Agreement, Answers, Criterion, Findings, Trials, bisect_passes, bisect_units
from lite_tools.cli.bisect import command
from lite_tools.commands.errors import UnavailableError

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="its kernels are those of x86")

Array = np.ndarray[Any, Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with a small network, in which x86 and host round differently."""
    random = np.random.default_rng(0)
    b = GraphBuilder("network")
    x = b.input("x", "float32", ["N", 8])
    for number in range(4):
        weights = b.constant(random.standard_normal((8, 8), np.float32))
        x = b.add("Tanh", [b.add("MatMul", [x, weights], name=f"product{number}")], name=f"tanh{number}")
    b.output(x, "y")
    path = tmp_path / "network.lite"
    lite_core.convert(b.build(), path, "host", verify=False)
    return path


def invoke(*words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False)


def test_difference_beyond_the_limit_is_found_and_the_next_command_named(model: Path, tmp_path: Path) -> None:
    state = tmp_path / "answers.json"
    options = [model, "--by", "node", "--b", "x86", "--limit", 0, "--state", state]
    text = invoke(*options).stdout
    assert all(part in text for part in ("0 of the output's range", "MatMul", "'product0': 'host'", "lite.load("))
    assert text.splitlines()[-1] == f"next: lite compare {model} --a host --b x86"
    result = invoke(*options, "--json")
    found = json.loads(result.stdout)
    assert (result.return_value, found["schema_version"], found["verdict"]) == (1, 1, "found")
    assert found["culprits"][0]["name"] == "product0"
    assert found["inputs"][0] == {"name": "x", "type": "float32[1, 8]", "source": "random, seed 0"}
    assert found["reused"] > 0  # from the first time


def test_side_b_that_is_good_enough_exits_with_0(model: Path) -> None:
    result = invoke(model, "--by", "node", "--b", "x86")
    assert result.return_value == 0
    assert "side b is good in 2 runs" in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last == f"next: lite bisect {model} --by node --a host --b x86 --repeat 20"
    assert invoke(*shlex.split(last)[3:]).stdout.count("good in 40 runs") == 1


def test_device_without_the_precision_has_nothing_to_bisect(model: Path) -> None:
    error = invoke(model, "--by", "precision", "--b", "host").exception
    assert isinstance(error, UnavailableError)
    assert "float16 was asked for, but host computes" in error.message
    assert invoke(model, "--by", "precision", "--b", "x86", "--limit", 1).return_value == 0


def test_named_device_that_runs_nothing_is_noted(model: Path) -> None:
    words = [model, "--by", "backend", "--a", "host", "--b", "x86,null", "--limit", 0]
    assert "no node of side b runs on null" in invoke(*words).stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--check", "x.py:f", "--limit", "1"],
        ["--limit", "1", "--atol", "1"],
        ["--by", "pass", "--precision", "float16", "--precision", "product0=float32"],
        ["--precision", "product0=half"],
        ["--by", "color"],
        [],
    ],
)
def test_wrong_usage(model: Path, options: list[str]) -> None:
    words = options if "--by" in options or not options else ["--by", "node", *options]
    assert isinstance(invoke(model, *words).exception, click.UsageError)


# **** the full tier ****

#: Limits of faults that change the outputs by less than 0.001 of their range.
LIMITS = {"float16": 1e-4}


def network(name: str) -> tuple[Graph, dict[str, Array]]:
    """Return a model of the catalog with an input; the test is skipped if it cannot be made here."""
    try:
        files = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    return read_model(files.model, params=files.params), catalog.example_input(name)


def bisect(by: str, name: str, fault: str, state: Path, repeat: int = 1) -> tuple[Findings, str]:
    """Bisect a model between x86 and the backend with a fault; return the findings, and the node with the fault."""
    graph, inputs = network(name)
    node = nth_node(make_ready(graph).graph, *PLACES[name][fault])
    plugins = planted(fault, node)

    def criterion_of(outputs: Mapping[str, Array]) -> Criterion:
        return Agreement(dict(outputs), LIMITS.get(fault, 1e-3))

    def trials_of(criterion: Criterion) -> Trials:
        return Trials(criterion, Answers({}, state), {}, lambda text: None, repeat)

    if by == "pass":

        def run(graph: Graph) -> Mapping[str, Array]:
            return lite_core.load(graph, "faulty", optimize=False, plugins=plugins).run(inputs)

        return bisect_passes(graph, plugins, run, run, criterion_of, trials_of), node
    ready = make_ready(graph, plugins).graph
    sides = (("faulty", 1), ("faulty", 2)) if by == "threads" else (("x86", 2), ("faulty", 2))
    a, b = (lite_core.load(ready, name, threads, optimize=False, plugins=plugins) for name, threads in sides)
    return bisect_units(by, a, b, inputs, criterion_of, trials_of), node


@pytest.mark.full("models")
@pytest.mark.parametrize(
    ("name", "fault"), [(n, f) for n in PLACES for f in PLACES[n] if f not in ("pass", "race", "stale")]
)
def test_planted_fault_in_a_real_model_is_named(name: str, fault: str, tmp_path: Path) -> None:
    findings, node = bisect("node", name, fault, tmp_path / "answers.json")
    assert [(c.name, c.kernel) for c in findings.culprits] == [(node, "faulty")]
    assert findings.runs <= 2 * ceil(log2(findings.units)) + 8


@pytest.mark.full("models")
@pytest.mark.parametrize("name", PLACES)
def test_planted_race_in_a_real_model_is_named_by_repeating(name: str, tmp_path: Path) -> None:
    findings, node = bisect("threads", name, "race", tmp_path / "answers.json", repeat=16)  # one run in three is wrong
    assert [(c.name, c.kernel) for c in findings.culprits] == [(node, "faulty")]


@pytest.mark.full("opencl")
def test_smallest_float32_part_of_a_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = pytest.importorskip("lite_opencl.device.devices")
    if isinstance(available_backends()["opencl"].probe(), Unavailable):
        pytest.skip("no OpenCL device")
    # Kernels store 16-bit floats and compute in float32, which works on every device.
    monkeypatch.setattr(devices.FoundDevice, "half", property(lambda found: True))
    graph, inputs = network("mobilenet_v3_small-legacy")
    np.savez(tmp_path / "inputs.npz", **inputs)
    lite_core.convert(graph, tmp_path / "model.lite", "host", verify=False)
    words = [tmp_path / "model.lite", "--by", "precision", "--b", "opencl", "-i", tmp_path / "inputs.npz", "--json"]
    assert json.loads(invoke(*words).stdout)["verdict"] == "nothing found"  # float16 is good enough by default
    found = json.loads(invoke(*words, "--limit", 9e-4).stdout)
    names = [culprit["name"] for culprit in found["culprits"]]
    assert found["precision"] == {**dict.fromkeys(names, "float32"), "*": "float16"}
    assert found["verified"]["verdict"] == "good"
    assert found["runs"] <= len(names) * (ceil(log2(found["units"])) + 2) + 8


@pytest.mark.full("models")
@pytest.mark.parametrize("name", PLACES)
def test_planted_pass_in_a_real_model_is_named(name: str, tmp_path: Path) -> None:
    findings, node = bisect("pass", name, "pass", tmp_path / "answers.json")
    (culprit,) = findings.culprits
    assert culprit.name == "wrong-rewrite"
    assert any(f"changed {node} " in detail for detail in culprit.details)
    assert findings.runs <= 2 * ceil(log2(findings.units)) + 8


@pytest.mark.full("reliability")
def test_killed_bisection_goes_on(model: Path, tmp_path: Path) -> None:
    script = tmp_path / "check.sh"  # its sixth call kills the bisection
    script.write_text(
        'echo call >> "$0.calls"\n'
        'if [ "$(wc -l < "$0.calls")" = 6 ]; then kill -9 $PPID; fi\n'
        f'exec {sys.executable} "{tmp_path}/judge.py" "$1"\n'
    )
    (tmp_path / "judge.py").write_text(
        "import sys, numpy as np\n"
        f"good = np.load({str(tmp_path / 'good.npz')!r})\n"
        "sys.exit(0 if (np.load(sys.argv[1])['y'] == good['y']).all() else 1)\n"
    )
    given = tmp_path / "x.npy"
    x = np.random.default_rng(1).standard_normal((1, 8), np.float32)
    np.save(given, x)
    np.savez(tmp_path / "good.npz", **lite_core.load(model, "host").run({"x": x}))
    words = ["bisect", str(model), "--by", "node", "--b", "x86", "-i", str(given), "--check", f"sh {script}", "--json"]
    killed = lite(tmp_path, *words)
    assert killed.returncode == -9
    again = lite(tmp_path, *words)
    found = json.loads(again.stdout)
    assert (found["verdict"], found["culprits"][0]["name"]) == ("found", "product0")
    assert found["reused"] > 0
    assert "answers are known" in again.stderr
    assert not list((tmp_path / "cache/bisect").iterdir())  # what is over is not kept
