"""Decoders: the examples' models on x86, with caches updated in place, compared with ONNX Runtime."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core.builder import GraphBuilder

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples/decoding"))

from generate import generate  # noqa: E402
from make_model import Decoder, make_model  # noqa: E402

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86 runs on x86-64 only")

TINY = Decoder(layers=2, hidden=64, heads=4, groups=2, inner=96, words=128, positions=96)
PROMPT = list(range(5, 21))


def by_onnxruntime(path: Path, prompt: list[int], count: int, decoder: Decoder) -> list[int]:
    """Generate as :func:`generate.generate` does, with separate arrays for past and present."""
    runtime = pytest.importorskip("onnxruntime", "1.31", reason="the tokens are compared with ONNX Runtime's")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = [value.name for value in session.get_inputs()]
    is_buffer = "position_ids" not in given
    length = decoder.positions if is_buffer else 0
    caches = {name: np.zeros((1, decoder.groups, length, decoder.size), np.float32) for name in given if "past" in name}
    tokens: list[int] = []
    ids, total = np.array([prompt]), len(prompt)
    for _ in range(count):
        inputs = {"input_ids": ids, "attention_mask": np.ones((1, total), np.int64), **caches}
        if not is_buffer:
            inputs["position_ids"] = np.arange(total - ids.shape[1], total)[None]
        logits, *presents = session.run(None, inputs)
        caches = dict(zip(caches, presents))
        tokens.append(int(logits[0, -1].argmax()))
        ids, total = np.array([tokens[-1:]]), total + 1
    return tokens


@pytest.mark.parametrize("form", ["past", "buffer"])
def test_tokens_of_a_small_decoder(form: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    make_model(path, TINY, form)
    session = lite.load(path, backend="x86", fallback="never", threads=2)
    assert {node.op for node in session.graph.nodes} >= {"Attention", "RMSNormalization", "RotaryEmbedding"}
    assert generate(session, PROMPT, 20, TINY.positions).tokens == by_onnxruntime(path, PROMPT, 20, TINY)


@pytest.mark.full("models")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", ["past", "buffer"])
def test_two_hundred_tokens(form: str, threads: int, tmp_path: Path) -> None:
    decoder = Decoder(layers=8, hidden=512, inner=1408, words=32000)
    path = tmp_path / "model.onnx"
    make_model(path, decoder, form)
    session = lite.load(path, backend="x86", fallback="never", threads=threads)
    assert generate(session, PROMPT, 200).tokens == by_onnxruntime(path, PROMPT, 200, decoder)


# **** caches in place ****


def update_graph() -> Any:
    """Return a graph that appends to a cache, and one that writes into a cache."""
    b = GraphBuilder("caches")
    past, new = b.input("past", "float32", [1, 2, "t", 8]), b.input("new", "float32", [1, 2, 1, 8])
    buffer, at = b.input("buffer", "float32", [1, 2, 9, 8]), b.input("at", "int64", [1])
    query = b.input("query", "float32", [1, 4, 1, 8])
    b.output(b.add("Concat", [past, new], {"axis": 2}), "grown")
    b.output(b.add("TensorScatter", [buffer, new, at], {"axis": 2}), "written")
    for name in ("grown", "written"):
        keys = next(v for v in b.graph.outputs if v.name == name)
        b.output(b.add("Attention", [query, keys, keys]), f"{name}_attention")
    return b.build()


def arrays_of(length: int) -> dict[str, Array]:
    random = np.random.default_rng(length)
    shapes = {"past": (1, 2, length, 8), "new": (1, 2, 1, 8), "buffer": (1, 2, 9, 8), "query": (1, 4, 1, 8)}
    return {n: random.standard_normal(s, np.float32) for n, s in shapes.items()} | {"at": np.array([4])}


def test_only_new_positions_are_written(tmp_path: Path) -> None:
    graph = update_graph()
    expected = lite.load(graph, backend="host").run(arrays_of(5))
    session = lite.load(graph, backend="x86", fallback="never")
    assert session.plan({"past": (1, 2, 5, 8)}).in_place == {"grown": "past", "written": "buffer"}
    inputs = arrays_of(5)
    memory = np.full((1, 2, 20, 8), 7, np.float32)
    memory[:, :, :5] = inputs["past"]
    inputs["past"] = memory[:, :, :5]
    out = {"grown": memory[:, :, :6], "written": inputs["buffer"]}
    found = session.run(inputs, out=out)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)
    assert found["grown"] is out["grown"]
    assert np.array_equal(memory[:, :, :6], expected["grown"])
    assert np.array_equal(inputs["buffer"], expected["written"])
    assert (memory[:, :, 6:] == 7).all()  # what follows the new position is untouched


def test_a_cache_that_overlaps_its_past_elsewhere_is_written_last() -> None:
    session = lite.load(update_graph(), backend="x86", fallback="never")
    inputs = arrays_of(5)
    expected = lite.load(update_graph(), backend="host").run(inputs)
    memory = np.zeros((1, 2, 12, 8), np.float32)
    memory[:, :, 1:6] = inputs["past"]
    found = session.run({**inputs, "past": memory[:, :, 1:6]}, out={"grown": memory[:, :, :6]})
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


def test_bound_caches_are_read_where_they_are() -> None:
    session = lite.load(update_graph(), backend="x86", fallback="never")
    inputs = arrays_of(5)
    memory = np.zeros((1, 2, 12, 8), np.float32)
    memory[:, :, :5] = inputs["past"]
    inputs["past"] = memory[:, :, :5]
    out = {name: np.empty_like(array) for name, array in session.run(inputs).items()}
    out["grown"] = memory[:, :, :6]
    binding = session.bind(inputs, out)
    for number in range(3):
        memory[:, :, :5] += number
        expected = lite.load(update_graph(), backend="host").run({**inputs, "past": memory[:, :, :5].copy()})
        for name, array in binding.run().items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


def test_a_profile_and_taps_of_caches_in_place() -> None:
    session = lite.load(update_graph(), backend="x86", fallback="never")
    inputs = arrays_of(5)
    memory = np.zeros((1, 2, 12, 8), np.float32)
    memory[:, :, :5] = inputs["past"]
    expected = lite.load(update_graph(), backend="host").run(inputs)
    given = {**inputs, "past": memory[:, :, :5]}
    found = session.run(given, out={"grown": memory[:, :, :6]}, profile=True)
    np.testing.assert_allclose(found["grown_attention"], expected["grown_attention"], rtol=1e-5, atol=1e-6)
    shown = session.run(given, outputs=["*"])
    np.testing.assert_allclose(shown["written"], expected["written"], rtol=1e-5, atol=1e-6)


def test_a_prepared_decoder_updates_in_place(tmp_path: Path) -> None:
    from lite_tools.conversion import convert

    path = tmp_path / "decoder.lite"
    convert(update_graph(), path, targets=["x86"], shapes=[{"past": (1, 2, 5, 8)}])
    session = lite.load(path, saved="trust")
    inputs = arrays_of(5)
    expected = lite.load(update_graph(), backend="host").run(inputs)
    out = {"written": inputs["buffer"]}
    found = session.run(inputs, out=out)
    assert session.plan({"past": (1, 2, 5, 8)}).in_place == {"grown": "past", "written": "buffer"}
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)
