"""Comparing two runs: errors of arrays, the noise floor, runs in step, files of values, the node at fault."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core import GraphBuilder, KernelBackend
from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_node
from lite_core.plugins import PluginManager, hookimpl
from lite_tools.comparing import (
    RunningTruth,
    Side,
    StoredTruth,
    compare,
    report_of,
    save_values,
    summary_of,
    verdict_of,
)
from lite_tools.comparing.compare import Found
from lite_tools.comparing.errors import difference_picture, error_histogram, measure, same_bits
from lite_tools.comparing.float64 import exact_result
from lite_tools.comparing.regions import Network
from lite_tools.comparing.values import Key, RunningSource

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)


# **** errors of arrays ****


def plain_errors(a: Array, b: Array) -> dict[str, float]:
    """Return some of the figures by their definitions."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    floor = 1e-3 * np.sqrt((x**2).mean())
    return {
        "max_abs": float(np.abs(x - y).max()),
        "mean_abs": float(np.abs(x - y).mean()),
        "max_rel": float((np.abs(x - y) / np.maximum(np.abs(x), floor)).max()),
        "relative": float(np.abs(x - y).max() / np.abs(x).max()),
        "cosine": float((x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum())),
    }


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_figures_follow_their_definitions_whatever_the_order_in_memory(order: tuple[int, ...], dtype: str) -> None:
    a = RANDOM.standard_normal((2, 30, 40, 50)).astype(dtype)
    b = (a + RANDOM.standard_normal(a.shape) * 1e-2).astype(dtype)
    a = np.asarray(a.transpose(order), order="C").transpose(np.argsort(order))
    errors = measure(a, b)
    for name, expected in plain_errors(a, b).items():
        assert getattr(errors, name) == pytest.approx(expected, rel=1e-4), name
    assert (errors.elements, errors.misplaced) == (a.size, 0)
    assert errors.different == np.count_nonzero(a != b)
    assert abs(float(a[errors.at]) - float(b[errors.at])) == pytest.approx(errors.max_abs, rel=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "ulps"), [(1.0, np.nextafter(np.float32(1), 2), 1), (-1e-45, 1e-45, 2), (0.0, -0.0, 0)]
)
def test_units_in_the_last_place_are_counted_across_zero(a: float, b: float, ulps: int) -> None:
    errors = measure(np.array([a, 5], np.float32), np.array([b, 5], np.float32))
    assert errors.max_ulp == ulps
    assert errors.is_equal == (ulps == 0)


def test_nan_and_infinity_count_where_only_one_side_has_them() -> None:
    a = np.array([1, np.nan, np.inf, -np.inf, 2, 3], np.float32)
    b = np.array([1, np.nan, np.inf, np.inf, np.nan, 3.5], np.float32)
    errors = measure(a, b)
    assert (errors.nan_a, errors.nan_b, errors.inf_a, errors.inf_b) == (1, 2, 2, 2)
    assert (errors.misplaced, errors.different, errors.at) == (2, 3, (3,))
    assert errors.max_abs == 0.5
    assert errors.as_dict()["value_b"] == "inf"


def test_integers_strings_and_empty_arrays_are_compared() -> None:
    assert measure(np.array([1, 2]), np.array([1, 4])).max_abs == 2
    words = np.array(["a", "b"], object)
    assert measure(words, words.copy()).is_equal
    assert not measure(words, np.array(["a", "c"], object)).is_equal
    assert measure(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).is_equal
    with pytest.raises(ValueError, match="cannot be compared"):
        measure(np.zeros(2), np.zeros(3))


def test_bits_are_compared_not_values() -> None:
    assert same_bits(np.array([np.nan]), np.array([np.nan]))
    assert not same_bits(np.array([0.0]), np.array([-0.0]))


def test_histogram_and_picture_show_where_the_differences_are() -> None:
    a = np.zeros((2, 3, 200, 130), np.float32)
    b = a.copy()
    b[1, 2, 199, 129] = 0.5
    b[0, 0, 0, 0] = np.nan
    histogram = error_histogram(a, b)
    assert sum(histogram["counts"]) == 1
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1
    picture = difference_picture(a, b)
    assert picture is not None
    assert (picture["width"], picture["height"], picture["scale"]) == (64, 64, 0.5)
    assert difference_picture(a[0, 0, 0], b[0, 0, 0]) is None


# **** the noise floor ****


def network(*, wide: bool = False) -> Graph:
    """Return a convolution, an activation, a product with a long sum and a softmax."""
    builder = GraphBuilder("small")
    x = builder.input("x", "float32", (1, 3, 12, 12))
    channels = 64 if wide else 8
    weights = np.random.default_rng(1).normal(0, 0.3, (channels, 3, 3, 3)).astype(np.float32)
    x = builder.add("Conv", [x, builder.constant(weights)], {"pads": (1, 1, 1, 1)}, name="conv", output="mapped")
    x = builder.add("Relu", [x], name="relu", output="rectified")
    x = builder.add("Flatten", [x], name="flatten", output="flat")
    table = np.random.default_rng(2).normal(0, 0.05, (channels * 144, 10)).astype(np.float32)
    x = builder.add("MatMul", [x, builder.constant(table)], name="product", output="scores")
    builder.output(builder.add("Softmax", [x], name="softmax"), "shares")
    return builder.build()


def test_noise_floor_lies_between_rounding_and_half_precision() -> None:
    region = Network(network(wide=True)).region("scores", {"flat"})
    assert region is not None
    flat = RANDOM.standard_normal((1, 64 * 144)).astype(np.float32)
    exact = exact_result(region, {"flat": flat})
    assert exact is not None
    table = next(iter(region.constants.values()))
    in_single = np.abs(flat @ table - exact.array).max()
    in_half = np.abs((flat.astype(np.float16) @ table.astype(np.float16)).astype(np.float64) - exact.array).max()
    assert in_single < 5 * exact.floor
    assert in_half > 100 * exact.floor


def test_regions_end_at_known_values() -> None:
    found = Network(network()).region("shares", {"rectified"})
    assert found is not None
    assert [node.name for node in found.nodes] == ["flatten", "product", "softmax"]
    assert [value.name for value in found.inputs] == ["rectified"]
    assert found.ops == "Flatten+MatMul+Softmax"


# **** two runs in step ****


def inputs_of(graph: Graph, seed: int = 3) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {v.name: random.standard_normal(v.shape).astype(np.float32) for v in graph.inputs}


def side(graph: Graph, backend: str = "host", plugins: PluginManager | None = None, label: str = "") -> Side:
    return Side.of(label or backend, lite.load(graph, backend, plugins=plugins), inputs_of(graph))


@pytest.mark.parametrize("most_ahead", [0, 1 << 30])
def test_a_run_waits_for_its_reader(most_ahead: int) -> None:
    graph = network()
    keys = [Key("mapped"), Key("rectified"), Key("scores"), Key("shares")]
    plan = side(graph).plan
    arrays = [*inputs_of(graph).values()]
    with RunningSource(plan, arrays, keys, most_ahead) as source:
        found = [source.get(key) for key in (keys[1], keys[0], keys[3], keys[2])]  # not in the order of the run
        assert source.get(Key("mapped", 1)) is None
    assert all(array is not None for array in found)
    with RunningSource(plan, arrays, keys, most_ahead) as source:
        assert source.get(keys[0]) is not None  # the rest is not read: the run is stopped


def test_an_error_of_the_trusted_run_is_raised() -> None:
    graph = network()
    broken = planted(lambda op, results: (_ for _ in ()).throw(RuntimeError("the driver is gone")))
    plan = side(graph, "suspect", broken).plan
    source = RunningSource(plan, [*inputs_of(graph).values()], [Key("mapped")])
    with pytest.raises(lite.ExecutionError, match="the driver is gone"), source:
        source.get(Key("mapped"))


# **** finding the fault ****


def planted(spoil: Callable[[str, list[Array]], list[Array]], ops: tuple[str, ...] = ()) -> PluginManager:
    """Return plugins with a backend whose results are those of the references after ``spoil``."""
    backend = KernelBackend("suspect")

    for op in ops or ("Conv", "Relu", "Flatten", "MatMul", "Softmax"):

        def kernel(*arrays: Array, op: str = op, **attributes: Any) -> Any:
            builder = GraphBuilder("node")
            values = [builder.input(f"i{i}", a.dtype, a.shape) for i, a in enumerate(arrays) if a is not None]
            builder.add(op, values, {name: given for name, given in attributes.items() if given is not None})
            results = evaluate_node(builder.graph.nodes[0], [a for a in arrays if a is not None])
            return tuple(spoil(op, results))

        backend.kernel(op)(kernel)

    class Plugin:
        LITE_API_VERSION = 1

        @hookimpl
        def lite_backends(self) -> list[KernelBackend]:
            return [backend]

    plugins = PluginManager()
    plugins.register(Plugin(), "suspect")
    return plugins


def found_in(graph: Graph, plugins: PluginManager, runs: int = 2, folder: Path | None = None) -> Found:
    inputs = inputs_of(graph)
    b = Side.of("suspect", lite.load(graph, "suspect", plugins=plugins), inputs)
    truth = RunningTruth(side(graph), inputs)
    return compare(truth, b, inputs, other_inputs=inputs_of(graph, 4), runs=runs, repro_folder=folder)


def test_equal_backends_agree() -> None:
    found = found_in(network(), planted(lambda op, results: results))
    assert verdict_of(found) == "agree"
    assert [row.key.value for row in found.comparison.rows] == ["mapped", "rectified", "flat", "scores", "shares"]
    assert {row.status for row in found.comparison.rows} == {"equal"}
    assert found.comparison.outputs["shares"].is_equal


def test_the_first_wrong_step_is_named_although_all_later_results_are_wrong(tmp_path: Path) -> None:
    def spoil(op: str, results: list[Array]) -> list[Array]:
        return [r * np.float32(1.001) for r in results] if op == "Relu" else results

    found = found_in(network(), planted(spoil), folder=tmp_path)
    assert verdict_of(found) == "differ"
    assert [node.name for node in found.culprit] == ["relu"]
    rows = {row.key.value: row for row in found.comparison.rows}
    assert rows["scores"].status == "equal"  # its inputs were true ones
    assert rows["scores"].accumulated is not None
    assert not rows["scores"].accumulated.is_equal
    assert "relu (Relu)" in summary_of(found, ("host", "suspect"))
    report = report_of(found, model="m", inputs=[], a={"label": "host"}, b={"label": "suspect"}, settings={})
    assert report["rows"][report["first"]]["nodes"] == ["relu"]


def test_the_script_repeats_the_fault(tmp_path: Path) -> None:
    def spoil(op: str, results: list[Array]) -> list[Array]:
        return [r + np.float32(0.1) for r in results] if op == "Conv" else results

    found = found_in(network(), planted(spoil), folder=tmp_path)
    assert found.repro is not None
    script = found.repro[0]
    compile(script.read_text(), str(script), "exec")
    done = subprocess.run([sys.executable, str(script), "host"], capture_output=True, text=True, check=False)
    assert (done.returncode, "0 of 1 run(s) differ" in done.stdout) == (0, True), done.stdout + done.stderr


def test_rounding_in_half_precision_is_found_and_rounding_in_single_is_not() -> None:
    def halves(op: str, results: list[Array]) -> list[Array]:
        return [r.astype(np.float16).astype(np.float32) for r in results] if op == "MatMul" else results

    def singles(op: str, results: list[Array]) -> list[Array]:
        return [np.nextafter(r, np.float32(np.inf)) for r in results] if op == "MatMul" else results

    assert [n.name for n in found_in(network(), planted(halves)).culprit] == ["product"]
    assert verdict_of(found_in(network(), planted(singles))) == "agree"


def test_a_result_that_changes_between_runs_is_named() -> None:
    kept: dict[str, Array] = {}

    def stale(op: str, results: list[Array]) -> list[Array]:
        if op != "Relu":
            return results
        before = kept.get("relu", results[0]).copy()
        kept["relu"] = results[0].copy()
        own = results[0].copy()
        own[..., 0] = before[..., 0]
        return [own]

    found = found_in(network(), planted(stale))
    assert verdict_of(found) == "not deterministic"
    assert [node.name for node in found.culprit] == ["relu"]


def test_results_of_a_loop_are_compared_in_each_iteration() -> None:
    outer = GraphBuilder("looped")
    x = outer.input("x", "float32", (4,))
    body = GraphBuilder("body", outer=outer)
    body.input("i", "int64", ())
    condition = body.input("keep_going", "bool", ())
    value = body.input("value", "float32", (4,))
    inner = body.add("Relu", [body.add("Add", [value, x], name="sum", output="added")], name="cut", output="cut_off")
    body.output(body.add("Identity", [condition]), "again")
    body.output(inner)
    true = outer.constant(np.array(True))
    looped = outer.add("Loop", [outer.constant(np.int64(3)), true, x], {"body": body.build()}, name="loop")
    outer.output(looped, "y")
    calls = {"count": 0}

    def spoil(op: str, results: list[Array]) -> list[Array]:
        if op != "Relu":
            return results
        calls["count"] += 1
        return [results[0] + np.float32(1)] if calls["count"] % 3 == 2 else results

    found = found_in(outer.build(), planted(spoil, ("Relu", "Add")), runs=1)
    assert found.first is not None
    assert found.first.key == Key("cut_off", 1)
    assert [node.name for node in found.culprit] == ["cut"]


# **** files of values ****


def test_values_of_another_machine_are_compared(tmp_path: Path) -> None:
    graph = network()
    inputs = inputs_of(graph)
    file = tmp_path / "values.npz"
    assert save_values(file, side(graph), inputs, "model") == 5
    stored = StoredTruth(file)
    assert stored.label == "host"
    np.testing.assert_array_equal(stored.inputs["x"], inputs["x"])

    def spoil(op: str, results: list[Array]) -> list[Array]:
        return [r[..., ::-1].copy() for r in results] if op == "MatMul" else results

    b = Side.of("suspect", lite.load(graph, "suspect", plugins=planted(spoil)), stored.inputs)
    found = compare(stored, b, stored.inputs)
    assert [node.name for node in found.culprit] == ["product"]


@pytest.mark.parametrize("spoil", [lambda b: b[: len(b) // 2], lambda b: b"PK" + b[2:60], lambda b: b""])
def test_a_damaged_file_of_values_is_an_error(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    graph = network()
    file = tmp_path / "values.npz"
    save_values(file, side(graph), inputs_of(graph), "model")
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(InputError, match="no file of values"):
        StoredTruth(file)


def test_different_models_are_refused() -> None:
    graph = network()
    inputs: Mapping[str, Array] = inputs_of(graph)
    other = GraphBuilder("other")
    other.output(other.add("Exp", [other.input("x", "float32", (1, 3, 12, 12))]), "z")
    truth = RunningTruth(Side.of("a", lite.load(other.build(), "host"), inputs), inputs)
    with pytest.raises(InputError, match=r"do not run the same model: a has the outputs z, host has shares"):
        compare(truth, side(graph), inputs)


def test_a_model_with_other_shapes_is_no_fault_of_a_kernel() -> None:
    inputs = inputs_of(network())
    with pytest.raises(InputError, match=r"not in the same sizes: of mapped, its shape is .* \(on b and a\)"):
        compare(RunningTruth(side(network(wide=True), label="a"), inputs), side(network(), label="b"), inputs)
