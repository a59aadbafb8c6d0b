"""The suite's trained networks: they are small, valid, and solve their tasks."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
import pytest

import lite_core
from lite_conformance.cases.networks import NETWORKS, Network, drawing
from lite_conformance.cases.networks.layers import Layers, load_weights
from lite_conformance.cases.networks.line_reader import edit_distance, greedy_decode
from lite_conformance.cases.networks.shape_detector import DrawnShape, iou, matches
from lite_conformance.cases.networks.upscaler import bilinear, psnr, shrink
from lite_core import Graph, passes
from lite_core.ir import SymbolicDim
from lite_core.ops.evaluate import evaluate_graph
from lite_tools.checking import optimize_checked

Array = np.ndarray[Any, Any]

SEEDS = range(4)
LARGEST_TOTAL = 1_500_000  # bytes of all weights

every_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)


def run_references(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    arrays = evaluate_graph(graph, [inputs[v.name] for v in graph.inputs])
    return dict(zip((v.name for v in graph.outputs), arrays))


# **** every network ****


@every_network
def test_network_solves_its_task(network: Network) -> None:
    graph = network.build()
    for seed in SEEDS:
        assert network.task_error(seed, run_references(graph, network.examples(seed))) is None


@every_network
def test_inputs_fit_the_graph_and_have_several_signatures(network: Network) -> None:
    graph = network.build()
    signatures = set()
    for seed in SEEDS:
        inputs = network.examples(seed)
        assert list(inputs) == [v.name for v in graph.inputs]
        for value in graph.inputs:
            assert inputs[value.name].dtype == value.dtype.numpy
        signatures.add(tuple(a.shape for a in inputs.values()))
    assert len(signatures) >= 2
    (value,) = graph.inputs
    assert value.shape is not None
    assert isinstance(value.shape[0], SymbolicDim)


@every_network
def test_examples_depend_on_the_seed_only(network: Network) -> None:
    for name, array in network.examples(3).items():
        assert np.array_equal(array, network.examples(3)[name])
        assert not np.array_equal(array, network.examples(4)[name])


@every_network
def test_outputs_for_other_inputs_do_not_solve_the_task(network: Network) -> None:
    """Seeds whose difference is 60 have the same shapes, and different answers."""
    outputs = run_references(network.build(), network.examples(61))
    problem = network.task_error(1, outputs)
    assert problem


@every_network
def test_session_agrees_with_the_references(network: Network) -> None:
    graph = network.build()
    session = lite_core.load(graph, backend="host")
    for seed in (0, 1):
        inputs = network.examples(seed)
        expected, found = run_references(graph, inputs), session.run(inputs)
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].shape == array.shape
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4)
        assert network.task_error(seed, found) is None


@every_network
def test_passes_keep_the_results(network: Network) -> None:
    """The results are compared on random input by the checks of the passes, and on examples."""
    graph = network.build()
    optimized, _ = optimize_checked(graph)
    inputs = network.examples(2)
    expected, found = run_references(graph, inputs), run_references(optimized, inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("glyph_classifier", "BatchNormalization", "Conv"),
        ("line_reader", "BatchNormalization", "Conv"),
        ("sequence_transformer", "Erf", "Gelu"),
        ("shape_detector", "BatchNormalization", "Conv"),
    ],
)
def test_networks_have_patterns_for_the_passes(name: str, before: str, after: str) -> None:
    graph = next(n for n in NETWORKS if n.name == name).build()
    optimized = {node.op for node in passes.optimize(graph)[0].nodes}
    assert before in {node.op for node in graph.nodes}
    assert before not in optimized
    assert after in optimized


@every_network
def test_small_errors_do_not_change_boxes_classes_and_letters(network: Network) -> None:
    """On the examples, backends that round differently find the same boxes, classes and letters."""
    graph = network.build()
    generator = np.random.default_rng(0)
    for seed in SEEDS:
        inputs = network.examples(seed)
        if any(a.dtype.kind != "f" for a in inputs.values()):
            continue
        shaken = {n: (a + generator.normal(0, 1e-5, a.shape)).astype(np.float32) for n, a in inputs.items()}
        expected, found = run_references(graph, inputs), run_references(graph, shaken)
        for name, array in expected.items():
            assert found[name].shape == array.shape
            if array.dtype.kind == "i":
                assert np.array_equal(found[name], array)
            else:
                np.testing.assert_allclose(found[name], array, atol=1e-2)


def test_names_are_unique_and_summaries_are_one_line() -> None:
    assert len({n.name for n in NETWORKS}) == len(NETWORKS)
    assert all(n.name.isidentifier() and n.summary and "\n" not in n.summary for n in NETWORKS)


def test_weights_are_small_and_each_file_is_used() -> None:
    folder = resources.files("lite_conformance.cases.networks").joinpath("weights")
    sizes = {file.name: len(file.read_bytes()) for file in folder.iterdir()}
    assert set(sizes) == {f"{n.name}.npz" for n in NETWORKS}
    assert sum(sizes.values()) < LARGEST_TOTAL


def test_networks_cover_the_main_kinds_of_operators() -> None:
    operators = {node.op for network in NETWORKS for node in network.build().nodes}
    layers = {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "Softmax", "LayerNormalization", "MaxPool", "Resize"}
    assert layers <= operators
    assert {"Reshape", "Transpose", "Concat", "Split", "Gather", "GatherND", "Shape", "Range"} <= operators
    assert "NonMaxSuppression" in operators


# **** weights and layers ****


def test_weights_are_float32() -> None:
    assert {a.dtype for a in load_weights("upscaler").values()} == {np.dtype(np.float32)}


def test_missing_weights_are_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load_weights("no_such_network")


def test_unused_weights_are_an_error() -> None:
    layers = Layers("upscaler")
    layers.builder.output(layers.builder.add("Relu", [layers.constant("stem.weight")]))
    with pytest.raises(ValueError, match=r"weights of upscaler are not used: .*stem\.bias"):
        layers.build()


# **** checks of the tasks ****


def test_greedy_decoding_joins_repetitions_and_drops_blanks() -> None:
    classes = np.array([0, 3, 3, 0, 3, 5, 5, 0])
    log_probabilities = np.log(np.eye(6)[classes] + 1e-3)[:, None]
    assert greedy_decode(log_probabilities) == [[2, 2, 4]]


@pytest.mark.parametrize(
    ("a", "b", "distance"), [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
)
def test_edit_distance(a: str, b: str, distance: int) -> None:
    assert edit_distance([*map(ord, a)], [*map(ord, b)]) == distance


def test_iou() -> None:
    assert iou((0, 0, 2, 2), (0, 0, 2, 2)) == 1.0
    assert iou((0, 0, 2, 2), (0, 1, 2, 3)) == pytest.approx(1 / 3)
    assert iou((0, 0, 1, 1), (5, 5, 6, 6)) == 0.0


def test_box_of_the_wrong_kind_or_image_is_no_match() -> None:
    drawn = [[DrawnShape(1, (0, 0, 8, 8))], []]

    def found(kind: int, image: int) -> int:
        outputs = {"boxes": np.array([[0, 0, 8, 7.0]]), "kind": np.array([kind]), "image": np.array([image])}
        return matches(drawn, outputs)[0]

    assert [found(1, 0), found(2, 0), found(1, 1)] == [1, 0, 0]


def test_bilinear_agrees_with_resize() -> None:
    image = np.random.default_rng(0).uniform(size=(2, 3, 5, 7)).astype(np.float32)
    builder = lite_core.GraphBuilder()
    scales = builder.constant([1, 1, 2, 2], dtype="float32")
    x = builder.input("x", "float32", image.shape)
    builder.output(builder.add("Resize", [x, None, scales], {"mode": "linear"}))
    (expected,) = evaluate_graph(builder.build(), [image])
    np.testing.assert_allclose(bilinear(image), expected, atol=1e-6)
    np.testing.assert_allclose(shrink(np.repeat(np.repeat(image, 2, 2), 2, 3)), image, atol=1e-6)


def test_psnr() -> None:
    assert psnr(np.full((2, 2), 0.1), np.zeros((2, 2))) == pytest.approx(20.0)


# **** drawing ****


def test_glyphs_of_the_font_are_distinct() -> None:
    glyphs = drawing.bitmaps()
    assert glyphs.shape == (len(drawing.ALPHABET), drawing.GLYPH_HEIGHT, drawing.GLYPH_WIDTH)
    assert len({g.tobytes() for g in glyphs}) == len(glyphs)


def test_samples_at_cell_centres_equal_the_cells_and_are_zero_outside() -> None:
    glyphs = drawing.bitmaps()[:3]
    y, x = np.meshgrid(np.arange(-4.0, 12), np.arange(-4.0, 10), indexing="ij")
    samples = drawing.sample_bitmaps(glyphs, *(np.broadcast_to(c, (3, *c.shape)) for c in (y, x)))
    np.testing.assert_allclose(samples[:, 4:11, 4:9], glyphs)
    assert samples.sum() == glyphs.sum()


@pytest.mark.parametrize(("kind", "area"), [(0, np.pi * 100), (1, 400.0), (2, 200.0)])
def test_shapes_cover_their_area(kind: int, area: float) -> None:
    mask = drawing.shape_mask(kind, (16.0, 15.0), 10.0, 32, 32)
    assert mask.sum() == pytest.approx(area, rel=0.03)
    assert not mask[:, 25:].any()
