"""Quantization of layers: statistics, ranges, the graph that results, the search for layers to keep, and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph
from lite_tools.conversion import convert
from lite_tools.quantization import METHODS, QuantizedModel, quantize_model
from lite_tools.quantization.histograms import Histogram
from lite_tools.quantization.layer_noise import measure_noise
from lite_tools.quantization.ranges import Range, parameters_of, range_of, statistics_for

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run everything with the references: compiled kernels are tested with the command."""
    monkeypatch.setenv("LITE_BACKENDS", "host")


def normal(*shape: int, seed: int = 0) -> Array:
    """Return normally distributed numbers, float32, the same ones in each call."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def network(spread: float = 1.0) -> Graph:
    """Return a small network; with a large ``spread`` the activation of its third layer has an outlying channel."""
    b = GraphBuilder("network")
    x = b.input("x", "float32", ["batch", 3, 12, 12])

    def weights(*shape: int) -> Value:
        return b.constant(normal(*shape) / np.float32(np.sqrt(np.prod(shape[1:]))))

    y = b.add("Conv", [x, weights(8, 3, 3, 3), weights(8)], {"pads": (1, 1, 1, 1)}, name="first")
    y = b.add("MaxPool", [b.add("Relu", [y])], {"kernel_shape": (2, 2), "strides": (2, 2)})
    y = b.add("Conv", [y, weights(8, 1, 3, 3)], {"group": 8, "pads": (1, 1, 1, 1)}, name="depthwise")
    scales = np.ones((8, 1, 1), np.float32)
    scales[3] = spread
    narrow = normal(16, 8, 1, 1) / 3 / scales
    y = b.add("Conv", [b.add("Mul", [y, b.constant(scales)]), b.constant(narrow)], name="pointwise")
    y = b.add("Flatten", [b.add("GlobalAveragePool", [b.add("Relu", [y])])])
    y = b.add("Gemm", [y, weights(5, 16), weights(5)], {"transB": 1}, name="classes")
    b.output(b.add("MatMul", [y, weights(5, 4)], name="last"), "scores")
    return b.build()


def samples(count: int) -> list[dict[str, Array]]:
    return [{"x": normal(2, 3, 12, 12, seed=number)} for number in range(count)]


def quantized(graph: Graph, data: Sequence[Mapping[str, Array]], **settings: Any) -> QuantizedModel:
    """Quantize a graph, and check that the result is valid, and that the original is as it was."""
    text = str(graph)
    result = quantize_model(graph, data, **settings)
    assert str(graph) == text
    ops.verify(result.graph)
    again = result.graph.copy()
    infer_graph(again)
    assert str(again) == str(result.graph)
    return result


def node(graph: Graph, name: str) -> Any:
    return next(node for node in graph.nodes if node.name == name)


# **** statistics and ranges ****


def test_a_histogram_counts_every_element_although_its_range_grows() -> None:
    histogram = Histogram()
    parts = [scale * normal(5000, seed=n) for n, scale in enumerate(np.float32([0.01, 1, 0.1, 300]))]
    parts[1][:700] = 0
    for part in parts:
        histogram.add(part.reshape(50, 100))
    elements = np.concatenate(parts)
    edges = (histogram.first + np.arange(histogram.counts.size + 1)) * histogram.width
    expected, _ = np.histogram(elements[elements != 0], edges)
    np.testing.assert_array_equal(histogram.counts, expected)
    assert (histogram.zeros, histogram.low, histogram.high) == (700, elements.min(), elements.max())
    assert histogram.counts.size <= 8192


def test_percentiles_are_those_of_the_elements() -> None:
    elements = np.exp(normal(100_000)) - 2
    histogram = Histogram()
    for part in np.split(elements, 10):
        histogram.add(part)
    found = range_of(histogram, "percentile", 99)
    low, high = np.percentile(elements, [0.5, 99.5])
    assert found.low == pytest.approx(low, abs=histogram.width)
    assert found.high == pytest.approx(high, abs=histogram.width)


def test_entropy_leaves_out_the_tail_of_a_distribution_but_few_elements() -> None:
    elements = normal(200_000) ** 3
    histogram = Histogram()
    histogram.add(elements)
    found = range_of(histogram, "entropy", 0)
    assert found.span < 0.9 * (histogram.high - histogram.low)
    assert np.mean((elements < found.low) | (elements > found.high)) <= 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_a_value_of_zeros_and_one_of_equal_numbers(method: str) -> None:
    for number, high in ((0.0, 0.0), (3.0, 3.0)):
        statistics = statistics_for(method)
        statistics.add(np.full(10, number, np.float32))
        assert range_of(statistics, method, 100).high == pytest.approx(high, rel=1e-3)


@pytest.mark.parametrize("ends", [(0.0, 5.0), (-1.0, 3.0), (-7.0, 0.0), (0.0, 0.0), (-1e-40, 1e-40)])
def test_parameters_represent_zero_exactly_and_other_numbers_to_half_a_step(ends: tuple[float, float]) -> None:
    parameters = parameters_of(Range(*ends))
    scale, zero = float(parameters.scale), int(parameters.zero_point)
    numbers = np.concatenate([np.zeros(1), np.linspace(*ends, 1001)])
    restored = (np.clip(np.rint(numbers / scale) + zero, 0, 255) - zero) * scale
    assert restored[0] == 0
    # The zero point is rounded, so that one end can be half a step outside.
    assert np.abs(restored - numbers).max() <= 1.001 * scale


# **** the graph ****


def test_layers_have_int8_weights_and_uint8_activations() -> None:
    result = quantized(network(), samples(3), min_snr=-np.inf)
    graph = result.graph
    producers = graph.producers()
    for name, axis in (("first", 0), ("depthwise", 0), ("pointwise", 0), ("classes", 0), ("last", 1)):
        activation, weights = (producers[value] for value in node(graph, name).inputs[:2])
        assert {activation.op, weights.op} == {"DequantizeLinear"}
        stored, scales = (graph.constants[value] for value in weights.inputs)
        assert (stored.dtype, stored.min(), stored.max()) == (np.int8, -127, 127) or np.abs(stored).max() == 127
        assert scales.shape == (stored.shape[axis],)
        assert activation.inputs[0].dtype is DType.UINT8
    assert producers[node(graph, "classes").inputs[2]].inputs[0].dtype is DType.INT32
    assert graph.op_counts()["QuantizeLinear"] == 5
    assert next(n for n in graph.nodes if n.op == "MaxPool").inputs[0].dtype is DType.UINT8
    assert not [array for array in graph.constants.values() if array.dtype == np.float32 and array.size > 16]


@pytest.mark.parametrize("method", METHODS)
def test_the_outputs_are_close_and_the_report_says_how_close(method: str) -> None:
    graph, data = network(), samples(12)
    result = quantized(graph, data, method=method, percentile=99.9, min_snr=-np.inf)
    report = result.report
    assert (report.samples, report.measured, len(report.kept)) == (12, 8, 0)
    assert report.outputs[0].snr_db > 25
    pairs = [
        [evaluate_graph(each, [data[i]["x"]])[0] for each in (graph, result.graph)] for i in (0, 1, 3, 4, 6, 7, 9, 10)
    ]
    signal = sum(float(np.square(a).sum()) for a, _ in pairs)
    noise = sum(float(np.square(a - b).sum()) for a, b in pairs)
    assert report.outputs[0].snr_db == pytest.approx(10 * np.log10(signal / noise), abs=1)
    assert all(layer.snr_db is not None and layer.snr_db > 25 for layer in report.layers)
    assert [layer.bytes_after < 0.55 * layer.bytes_before for layer in report.layers].count(True) == 5


def test_a_value_that_is_also_an_output_or_read_elsewhere_stays_exact() -> None:
    b = GraphBuilder("shared")
    x = b.input("x", "float32", [4, 8])
    y = b.add("Tanh", [x])
    b.output(y, "exact")
    product = b.add("MatMul", [y, b.constant(normal(8, 8))])
    b.output(b.add("Add", [product, b.add("Exp", [y])]), "sum")
    data = [{"x": normal(4, 8)}]
    result = quantized(b.build(), data)
    exact, _ = evaluate_graph(result.graph, [data[0]["x"]])
    np.testing.assert_array_equal(exact, np.tanh(data[0]["x"]))


def test_shared_weights_are_stored_once_and_each_layer_has_its_own_bias() -> None:
    b = GraphBuilder("tied")
    x, w = b.input("x", "float32", [4, 6]), b.constant(normal(6, 6), "w")
    bias = b.constant(normal(6), "bias")
    y = b.add("Gemm", [x, w, bias])
    b.output(b.add("Gemm", [b.add("Sigmoid", [y]), w, bias]), "y")
    result = quantized(b.build(), [{"x": normal(4, 6)}], min_snr=-np.inf)
    types = [str(array.dtype) for array in result.graph.constants.values()]
    assert (types.count("int8"), types.count("int32")) == (1, 2)


def test_products_of_two_activations_stay_in_float32() -> None:
    b = GraphBuilder("attention")
    x, y = b.input("x", "float32", [4, 6]), b.input("y", "float32", [6, 4])
    w = b.constant(normal(4, 3))
    b.output(b.add("MatMul", [b.add("MatMul", [x, y], name="scores"), w], name="projection"), "z")
    data = [{"x": normal(4, 6), "y": normal(6, 4)}]
    report = quantized(b.build(), data).report
    assert [(layer.name, bool(layer.kept)) for layer in report.layers] == [("scores", True), ("projection", False)]


# **** layers that stay in float32 ****


def test_the_search_keeps_the_layer_that_does_the_damage() -> None:
    # One channel is a thousand times larger than the others, of which a scale for all leaves nothing.
    report = quantized(network(spread=1000), samples(8), min_snr=25).report
    assert [layer.name for layer in report.kept] == ["pointwise"]
    kept = report.kept[0]
    assert kept.alone_db is not None
    assert kept.without_db is not None
    assert max(kept.alone_db, kept.without_db) < 25 < report.outputs[0].snr_db
    assert "dB" in kept.kept


def test_patterns_keep_layers_in_float32() -> None:
    result = quantized(network(), samples(2), keep_float=["op:Gemm", "*wise"], min_snr=-np.inf)
    assert [layer.name for layer in result.report.kept] == ["depthwise", "pointwise", "classes"]
    assert result.graph.op_counts()["QuantizeLinear"] == 2
    with pytest.raises(InputError, match="depthwide.*depthwise"):
        quantize_model(network(), samples(1), keep_float=["depthwide"])


def test_the_noise_of_a_model_beside_itself_is_zero() -> None:
    graph = network()
    names = [value.name for n in graph.nodes if n.op == "Conv" for value in n.outputs if value]
    noise = measure_noise(graph, graph, names, samples(1), lite.load, lambda text: None)
    assert {*noise.layers.values(), noise.outputs[0].snr_db} == {np.inf}


# **** samples ****


def test_a_folder_of_samples(tmp_path: Path) -> None:
    data = samples(3)
    for number, sample in enumerate(data):
        np.savez(tmp_path / f"{number}.npz", **sample, label=np.zeros(1))
    np.save(tmp_path / "3.npy", data[0]["x"])
    report = convert(
        network(), tmp_path / "m.lite", ["host"], quantize="int8", calibrate=tmp_path, calibration_samples=3, min_snr=0
    )
    assert report.quantization is not None
    assert (report.quantization.samples, report.quantization.measured, report.agrees) == (3, 3, True)
    assert '"quantized": 5' in lite.load(tmp_path / "m.lite").file.metadata["quantization"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"y": np.zeros((1, 3, 12, 12), np.float32)}, "expected x"),
        ({"x": np.zeros((1, 3, 12, 13), np.float32)}, "13"),
        ({"x": np.zeros((1, 3, 12, 12), np.int64)}, "int64"),
        ({"x": np.full((1, 3, 12, 12), np.nan, np.float32)}, "'x' has NaN"),
    ],
)
def test_a_sample_that_does_not_fit_is_named(tmp_path: Path, sample: dict[str, Array], message: str) -> None:
    np.savez(tmp_path / "odd.npz", **sample)
    with pytest.raises(InputError, match=message) as caught:
        convert(network(), tmp_path / "m.lite", ["host"], quantize="int8", calibrate=tmp_path)
    assert "odd.npz" in str(caught.value)
    assert not (tmp_path / "m.lite").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calibrate": "nowhere"}, "'nowhere' is not a folder"),
        ({"calibrate": "."}, r"picture.png|\.png"),
        ({}, "--calibrate FOLDER"),
        ({"calibrate": [], "quantize": None}, "--quantize int8"),
        ({"calibrate": [], "quantize": "int2"}, "'int2'"),
        ({"calibrate": [], "weights": "int8"}, "exclude each other"),
        ({"calibrate": []}, "at least one sample"),
        ({"calibrate": [{}], "percentile": 99.0}, "calibration_method='percentile'"),
        ({"calibrate": [{}], "calibration_method": "median"}, "'median'.*entropy"),
        ({"calibrate": [{}], "keep_float": "op:Conv"}, "list of patterns"),
    ],
)
def test_arguments_that_do_not_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], message: str
) -> None:
    (tmp_path / "picture.png").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        convert(network(), tmp_path / "m.lite", ["host"], **{"quantize": "int8", **settings})


def test_a_model_without_layers_and_one_that_computes_infinities() -> None:
    b = GraphBuilder("plain")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    with pytest.raises(InputError, match="no Conv, Gemm or MatMul"):
        quantize_model(b.build(), [{"x": np.zeros(2, np.float32)}])
    b = GraphBuilder("infinite")
    x = b.input("x", "float32", [2, 2])
    b.output(b.add("MatMul", [b.add("Log", [x]), b.constant(np.eye(2, dtype=np.float32))]), "y")
    with pytest.raises(InputError, match="4 NaN or infinite elements"):
        quantize_model(b.build(), [{"x": np.zeros((2, 2), np.float32)}])
