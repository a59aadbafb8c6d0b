"""The backend with planted faults: each fault changes what it should, and nothing else does."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from faulty_backend import FAULTS, nth_node, planted
from faulty_backend.faults import WRAPPED_AT
from faulty_backend.installing import install_planted
from faulty_backend.real_models import PLACES
from installed_plugins import plugins_of

import lite_core as lite
from lite_core.errors import LiteError
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.observing import Observed
from lite_core.session import make_ready

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="its kernels are those of x86")

Array = np.ndarray[Any, Any]

#: The operator in which each fault is planted.
OPERATOR = {"padding": "Conv", "axis": "Softmax", "float16": "MatMul", "stale": "Relu", "race": "Relu", "large": "Relu"}
#: The threads of the sessions: a race needs two.
THREADS = 2


@cache
def network() -> Graph:
    """A convolution, a Relu of 131,072 elements, a matrix product and a Softmax."""
    random = np.random.default_rng(3)
    b = lite.GraphBuilder("network")
    x = b.input("x", "float32", [1, 2, 64, 64])
    weights = b.constant(random.standard_normal((32, 2, 3, 3), np.float32))
    relu = b.add("Relu", [b.add("Conv", [x, weights], {"pads": (1, 1, 1, 1)})])
    columns = b.constant(random.standard_normal((64, 8), np.float32))
    b.output(b.add("Softmax", [b.add("MatMul", [b.add("HardSigmoid", [relu]), columns])], {"axis": -1}), "y")
    return b.build()


def image(seed: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(seed).standard_normal((1, 2, 64, 64), np.float32)}


class Values(dict[str, Array]):
    """An observer that keeps all values."""

    def starts(self, kernel: str, nodes: object) -> None:
        pass

    def computed(self, results: Observed) -> None:
        self.update((name, results.read(name)) for name in results.values)


def runs_of(fault: str, seeds: Sequence[int] = (0,), threads: int = THREADS) -> list[Values]:
    """Return the values between all nodes in each of several runs of one session, each on the data of a seed."""
    node = nth_node(network(), OPERATOR[fault]) if fault else ""
    plugins = planted(fault, node, fused=False)
    plan = lite.load(network(), "faulty", threads=threads, fallback="never", plugins=plugins).plan()
    runs = [Values() for _ in seeds]
    for seed, values in zip(seeds, runs):
        plan.run([image(seed)["x"]], observer=values)
    return runs


@cache
def correct(seed: int = 0) -> Values:
    """Return the values of a run without a fault."""
    return runs_of("", [seed])[0]


def first_change(values: Values, expected: Values) -> str:
    """Return the operator of the first node with another result than expected; empty if there is none."""
    return next(
        (n.op for n in network().nodes for v in n.outputs if v and (values[v.name] != expected[v.name]).any()), ""
    )


@pytest.mark.parametrize("fault", ["padding", "axis", "float16", "large"])
def test_a_fault_changes_the_result_of_its_node_first(fault: str) -> None:
    (wrong,) = runs_of(fault)
    assert first_change(wrong, correct()) == OPERATOR[fault]


def test_elements_beyond_65536_repeat_the_first_ones() -> None:
    (name,) = [node.outputs[0].name for node in network().nodes if node.op == "Relu" and node.outputs[0]]
    wrong, right = (values[name].reshape(-1) for values in (runs_of("large")[0], correct()))
    assert np.array_equal(wrong[:WRAPPED_AT], right[:WRAPPED_AT])
    assert np.array_equal(wrong[WRAPPED_AT:], right[:WRAPPED_AT])


def test_a_stale_buffer_keeps_data_of_the_run_before() -> None:
    seeds = [1, 1, 0, 0]
    assert [first_change(v, correct(s)) for v, s in zip(runs_of("stale", seeds), seeds)] == ["", "", "Relu", ""]


def test_a_race_needs_several_threads_and_several_runs() -> None:
    changes = [first_change(values, correct()) for values in runs_of("race", [0] * 8)]
    assert changes == ["", "", "", "Relu", "", "", "", "Relu"]
    assert not any(first_change(values, correct()) for values in runs_of("race", [0] * 4, threads=1))


def test_a_wrong_pass_changes_the_graph_once_for_every_backend() -> None:
    plugins = planted("pass", nth_node(network(), "HardSigmoid"))
    ready = make_ready(network(), plugins)
    (node,) = [node for node in ready.graph.nodes if node.op == "HardSigmoid"]
    assert ready.changed_by == ("wrong-rewrite (this process)",)
    assert node.attributes["alpha"] == pytest.approx(1.01 * 0.2)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("stale", "race", "large")])
def test_a_fault_that_does_not_fit_its_node_says_where_it_belongs(fault: str) -> None:
    plugins = planted(fault, nth_node(network(), "HardSigmoid"), fused=False)
    session = lite.load(network(), "faulty", threads=THREADS, fallback="never", plugins=plugins)
    with pytest.raises(LiteError, match=f"{fault}.*needs.*hardsigmoid"):
        session.run(image(0))


def test_it_can_be_installed_for_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install_planted(tmp_path, "race", "conv")
    plugins = plugins_of(tmp_path)
    assert [(record.name, backend.name) for record, backend in plugins.ask("lite_backends")] == [("faulty", "faulty")]


@cache
def model(name: str) -> Graph:
    """Return a model of the catalog; the test is skipped if it cannot be made here."""
    try:
        files = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    return read_model(files.model, params=files.params)


@pytest.mark.full("models")
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", PLACES)
def test_a_clean_backend_computes_what_x86_does(name: str, fused: bool) -> None:
    plugins = planted("", nth_node(make_ready(model(name)).graph, "Conv", 5), fused)
    inputs = catalog.example_input(name)
    found = lite.load(model(name), "faulty", plugins=plugins).run(inputs)
    expected = lite.load(model(name), "x86").run(inputs)
    for output, array in expected.items():
        # The node in the middle is compiled apart, so that sums may be rounded in another order.
        np.testing.assert_allclose(found[output], array, rtol=1e-3, atol=1e-5)


@pytest.mark.full("models")
@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, nodes in PLACES.items() for fault in nodes])
def test_a_fault_in_a_real_model_changes_its_output(name: str, fault: str) -> None:
    graph, (given,) = model(name), catalog.example_input(name).items()
    node = nth_node(make_ready(graph).graph, *PLACES[name][fault])

    def outputs(fault: str) -> list[Array]:
        """Return the outputs of four runs; the third gets a mirrored picture."""
        session = lite.load(graph, "faulty", threads=THREADS, plugins=planted(fault, node, fused=False))
        pictures = [given[1], given[1], given[1][..., ::-1], given[1]]
        return [array for picture in pictures for array in session.run({given[0]: picture}).values()]

    changes = [not np.array_equal(a, b) for a, b in zip(outputs(fault), outputs(""))]
    assert changes == {"stale": [False, False, True, True], "race": [False, False, False, True]}.get(fault, [True] * 4)
