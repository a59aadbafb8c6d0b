"""What the conformance suite does not ask: the process, the memory and the saved programs. Run ``pytest`` here."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import lite_core as lite
from lite_conformance.pytest_plugin import conformance_tests
from lite_core.backend import Buffer, Options, Partition, Stale
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.helpers import reference
from lite_jax import kernels
from lite_jax.backend import JaxBackend
from lite_jax.program import Folded, Program

CASES = ["probe[*", "contract[*", "Conv[f32,*]", "Resize[f32,linear*", "graph[f32,elementwise-*"]

test_conformance = conformance_tests("jax", cases=CASES)

BACKEND = JaxBackend()
(DEVICE,) = BACKEND.probe()


def layer(seed: int = 0) -> Graph:
    b = lite.GraphBuilder("layer")
    x = b.input("x", "float32", [4, 64])
    weight = np.random.default_rng(seed).standard_normal((64, 256)).astype(np.float32)
    b.output(b.add("Relu", [b.add("MatMul", [x, b.constant(weight)])]), "y")
    return b.build()


def test_jax_itself_stays_as_it_was() -> None:
    """Programs use 64-bit types, but other users of JAX in the process do not get them."""
    b = lite.GraphBuilder("wide")
    b.output(b.add("Add", [b.input("x", "int64", [2]), b.constant(np.array(1 << 40))]), "y")
    session = lite.load(b.build(), backend="jax", fallback="never")
    assert session.run(x=[1, 2])["y"].tolist() == [(1 << 40) + 1, (1 << 40) + 2]
    assert not jax.config.jax_enable_x64
    assert jnp.arange(3).dtype == jnp.int32


def test_an_upload_copies() -> None:
    memory = BACKEND.memory(DEVICE)
    array = np.zeros(1 << 16, np.float32)
    data = memory.allocate(lite.TensorType.of_array(array))
    memory.upload(array, data)
    array[:] = 1
    assert not memory.download(data).any()


def test_results_are_immutable_arrays_on_the_device() -> None:
    graph, memory = layer(), BACKEND.memory(DEVICE)
    program = Program(Folded(graph), jax.devices()[0])
    x, y = (Buffer(v.type, memory, memory.allocate(v.type)) for v in (graph.inputs[0], graph.outputs[0]))
    memory.upload(np.ones((4, 64), np.float32), x.data)
    program.run([x], [y], None)
    first = y.data.array
    memory.upload(np.zeros((4, 64), np.float32), x.data)
    program.run([x], [y], None)
    assert isinstance(first, jax.Array)
    assert np.asarray(first).any()
    assert not memory.download(y.data).any()


def test_a_saved_program_takes_the_weights_of_its_partition() -> None:
    """Weights are arguments of a program, which is saved without them."""
    (piece,) = Program(Folded(layer()), jax.devices()[0]).save()
    assert len(piece) < 64 * 256  # a quarter of the weight's bytes
    other, memory = layer(seed=1), BACKEND.memory(DEVICE)
    program = BACKEND.restore([memoryview(piece)], Partition("part", other), DEVICE, Options())
    assert isinstance(program, Program)
    x, y = (Buffer(v.type, memory, memory.allocate(v.type)) for v in (other.inputs[0], other.outputs[0]))
    array = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    memory.upload(array, x.data)
    program.run([x], [y], None)
    np.testing.assert_allclose(memory.download(y.data), evaluate_graph(other, [array])[0], rtol=1e-4, atol=1e-4)


def test_a_program_of_another_partition_is_stale() -> None:
    (piece,) = Program(Folded(layer()), jax.devices()[0]).save()
    b = lite.GraphBuilder("other")
    b.output(b.add("Relu", [b.input("x", "float32", [4, 64])]), "y")
    found = BACKEND.restore([memoryview(piece)], Partition("part", b.build()), DEVICE, Options())
    assert found == Stale("it was saved for another partition")
    assert BACKEND.restore([], Partition("part", layer()), DEVICE, Options()) == Stale("this is no saved program")


def test_numbers_that_depend_on_data() -> None:
    """The Reshape runs on the host, between two programs."""
    b = lite.GraphBuilder("stages")
    x, shape = b.input("x", "float32", [2, 6]), b.input("shape", "int64", [2])
    b.output(b.add("Exp", [b.add("Reshape", [b.add("Neg", [x]), shape])]), "y")
    session = lite.load(b.build(), backend="jax", fallback="never")
    data = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)
    for wanted in ([3, 4], [12, 1]):
        np.testing.assert_allclose(session.run(x=data, shape=wanted)["y"], np.exp(-data).reshape(wanted), rtol=1e-6)


def test_a_kernel_against_the_reference() -> None:
    b = lite.GraphBuilder("gelu")
    b.output(b.add("Gelu", [b.input("x", "float32", [101])], {"approximate": "tanh"}), "y")
    x = np.linspace(-6, 6, 101, dtype=np.float32)
    session = lite.load(b.build(), backend="jax", fallback="never")
    np.testing.assert_allclose(session.run(x=x)["y"], reference("Gelu", approximate="tanh")(x.astype(float)), atol=1e-6)


def test_the_page_counts_the_operators() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"run {len(kernels._KERNELS)} operators" in page
