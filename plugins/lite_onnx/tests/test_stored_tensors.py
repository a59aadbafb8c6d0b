"""Large tensors inside a model file are mapped: the same model, without copies in memory."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from small_models import call, function, graph, make, node, value

import lite_core as lite
from lite_onnx import read
from lite_onnx.reader.stored_tensors import StoredTensors

Array = np.ndarray[Any, Any]

COUNT = 5000  # 20 kB: large enough to be mapped


def numbers(seed: int, dtype: type[np.generic] = np.float32, count: int = COUNT) -> Array:
    """Return random numbers."""
    return np.random.default_rng(seed).integers(-99, 99, count).astype(dtype)


def model_with_tensors_everywhere() -> onnx.ModelProto:
    """Return a model with large tensors in its graph, a node, a branch and a function."""
    tensors = [numpy_helper.from_array(numbers(seed)) for seed in range(3)]
    branches = {
        name: graph([node("Constant", [], [name], value=tensor)], [name])
        for name, tensor in (("then_branch", tensors[0]), ("else_branch", tensors[1]))
    }
    nodes = [
        node("Constant", [], ["a"], value=tensors[2]),
        node("If", ["c"], ["b"], **branches),
        call("own_sum", "x", "s"),
        node("Sum", ["a", "b", "s", "w", "small"], ["y"]),
    ]
    own = function(
        "own_sum",
        [node("Constant", [], ["k"], value=numpy_helper.from_array(numbers(3))), node("Add", ["x", "k"], ["y"])],
    )
    constants = {"w": numbers(4), "small": numbers(5, count=1), "padding": numbers(6, np.int8, 1 << 20)}
    inputs = [value("x", (COUNT,)), value("c", (), TensorProto.BOOL)]
    return make(nodes, inputs, constants=constants, functions=[own])


def write(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_the_results_are_those_of_the_whole_message(tmp_path: Path) -> None:
    path, x = write(model_with_tensors_everywhere(), tmp_path), numbers(7)
    assert path.stat().st_size > 1 << 20  # smaller files are parsed
    session = lite.load(path, backend="host")
    common = x + sum(numbers(seed) for seed in (2, 3, 4)) + numbers(5, count=1)
    for condition, seed in ((True, 0), (False, 1)):
        assert np.array_equal(session.run(x=x, c=np.array(condition))["y"], common + numbers(seed))


def test_the_message_has_references_in_place_of_large_tensors(tmp_path: Path) -> None:
    model = model_with_tensors_everywhere()
    stored = StoredTensors(write(model, tmp_path))
    message = stored.message()
    assert len(message) < 4000 < stored.total_bytes
    found = onnx.ModelProto.FromString(message)
    for before, after in zip(model.graph.initializer, found.graph.initializer):
        mapped = stored.find(after.raw_data)
        is_large = len(before.raw_data) >= 1 << 14
        assert (mapped is not None) == is_large
        assert (after.raw_data if mapped is None else mapped.tobytes()) == before.raw_data
    assert (found.graph.input, found.opset_import) == (model.graph.input, model.opset_import)


def test_constants_are_views_of_the_file(tmp_path: Path) -> None:
    constants = {name: numbers(seed, np.int8, 1 << 20) for seed, name in enumerate("vw")}
    model = make([node("Add", ["x", "v"], ["a"]), node("Add", ["a", "w"], ["y"])], [value("x", (1,), TensorProto.INT8)])
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    found = read(write(model, tmp_path)).constants
    assert {constant.name for constant in found} == {"v", "w"}
    for constant, array in found.items():
        base: Any = array
        while isinstance(base, (np.ndarray, memoryview)):
            base = base.obj if isinstance(base, memoryview) else base.base
        assert isinstance(base, mmap.mmap)
        assert not array.flags.writeable
        assert np.array_equal(array, constants[constant.name])


def test_content_that_looks_like_a_reference_is_content(tmp_path: Path) -> None:
    reference = bytes(16) + np.array([0, 1 << 14], np.uint64).tobytes()
    path = write(make([node("Neg", ["x"], ["y"])], constants={"w": numbers(0)}), tmp_path)
    stored = StoredTensors(path)
    assert stored.find(reference) is None
    assert stored.find(b"") is None
    assert StoredTensors(path).message() != stored.message()  # the references cannot be guessed


@pytest.mark.parametrize("shape", [[COUNT + 1], [-1], [1] * 40])
def test_a_mapped_tensor_that_does_not_fit_its_shape_is_an_error(shape: list[int], tmp_path: Path) -> None:
    model = model_with_tensors_everywhere()
    model.graph.initializer[0].dims[:] = shape
    with pytest.raises(lite.ModelFormatError, match="w: it"):
        lite.load(write(model, tmp_path), backend="host")


def test_damage_is_an_error_or_harmless(tmp_path: Path) -> None:
    path = write(model_with_tensors_everywhere(), tmp_path)
    content, random = path.read_bytes(), np.random.default_rng(0)
    heads = [*range(40), *(len(content) - n for n in range(1, 120))]
    for position in [*heads, *random.integers(0, len(content), 60).tolist()]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(random.integers(8))
        end = position if position % 3 == 0 else len(content)
        path.write_bytes(damaged[:end])
        try:
            read(path)
        except lite.LiteError as error:
            assert str(path) in str(error)  # noqa: PT017 - most positions are harmless
