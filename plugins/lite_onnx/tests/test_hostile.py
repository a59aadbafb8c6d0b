"""Damaged and hostile models raise Lite's errors, in bounded time and memory."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from damage import damaged
from onnx import TensorProto, helper

import lite_core as lite
from lite_core.errors import InputError, LiteError, ModelFormatError, UnsupportedOperatorError

_DATA = Path(onnx.__file__).parent / "backend/test/data"
#: Cases of ONNX's data: graphs in nodes, sequences, optionals, recurrent networks, quantization, and convolutions.
_CASES = [
    *(
        f"node/test_{name}"
        for name in ("if", "if_seq", "loop11", "loop13_seq", "scan9_sum", "sequence_map_add_2_sequences")
    ),
    *(
        f"node/test_{name}"
        for name in ("lstm_with_peepholes", "qlinearconv", "resize_tf_crop_and_resize", "einsum_inner_prod")
    ),
    *(f"node/test_{name}" for name in ("constantofshape_int_zeros", "range_float_type_positive_delta_expanded")),
    "pytorch-converted/test_Conv2d_groups",
    "pytorch-operator/test_operator_conv",
]
_SEEDS_OF_EACH = 20
#: A load takes milliseconds. A load that hangs is aborted after this number of seconds.
_MAX_SECONDS = 60


class _HangsError(BaseException):
    """A load took too long. It is not an Exception, so that no handler mistakes it for an error of a damaged model."""


@contextmanager
def _limits() -> Iterator[None]:
    """Limit the time, and on Unix the memory, of the context's body."""
    resource = pytest.importorskip("resource", reason="resource limits need Unix")

    def end(signal_: int, frame: Any) -> None:
        raise _HangsError(f"more than {_MAX_SECONDS} seconds")

    status = Path("/proc/self/statm")
    used = int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _MAX_SECONDS)
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _load(content: bytes | onnx.ModelProto, folder: Path) -> lite.Session:
    path = folder / "model.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    with _limits():
        return lite.load(path, backend="host")


def _refused(content: bytes | onnx.ModelProto, folder: Path) -> str:
    """Load a model that must be refused; return the message."""
    with pytest.raises(LiteError) as caught:
        _load(content, folder)
    assert isinstance(caught.value, (ModelFormatError, UnsupportedOperatorError)), repr(caught.value)
    return str(caught.value)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Build a model on vectors of two elements."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in inputs]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "hostile", values, results, initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def _function(name: str, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["x"], ["y"], nodes, opsets)


def _call(name: str, x: str = "x", y: str = "y") -> onnx.NodeProto:
    return helper.make_node(name, [x], [y], domain="own")


def _with_functions() -> bytes:
    """Build a model with nested functions, and a branch in one of them."""
    condition = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op, ["x"], ["z"])], name, [], [onnx.ValueInfoProto(name="z")]
        )
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    inner = _function("inner", [condition, helper.make_node("If", ["c"], ["y"], **branches)])
    outer = _function("outer", [_call("inner", y="a"), helper.make_node("Selu", ["a"], ["y"], alpha=0.5)])
    return bytes(_model([_call("outer", y="b"), _call("inner", "b")], functions=[inner, outer]).SerializeToString())


# **** any damage ****


@pytest.mark.parametrize("case", [*_CASES, "functions"])
def test_damaged_models_raise_errors_of_lite(case: str, tmp_path: Path) -> None:
    if case != "functions" and not (_DATA / case).exists():
        pytest.skip("this version of the package onnx is without the data")
    content = _with_functions() if case == "functions" else (_DATA / case / "model.onnx").read_bytes()
    errors: dict[int, LiteError] = {}
    for seed in range(_SEEDS_OF_EACH):
        try:
            _load(damaged(content, seed), tmp_path)
        except LiteError as error:
            errors[seed] = error
    assert errors
    # "the reader 'onnx' failed with ..." is the message for unexpected exceptions.
    known = (ModelFormatError, UnsupportedOperatorError)
    assert {s: e for s, e in errors.items() if not isinstance(e, known) or "the reader 'onnx'" in str(e)} == {}


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    content = _with_functions()
    for length in range(0, len(content), 7):
        _refused(content[:length], tmp_path)


# **** models that need many resources ****


def _doubling(levels: int) -> list[onnx.FunctionProto]:
    """Return functions f0, f1, ... each of which calls the next one twice; the last one has one node."""
    twice = [_function(f"f{i}", [_call(f"f{i + 1}", "x", "a"), _call(f"f{i + 1}", "a")]) for i in range(levels)]
    return [*twice, _function(f"f{levels}", [helper.make_node("Relu", ["x"], ["y"])])]


@pytest.mark.parametrize("levels", [16, 38])
def test_functions_that_expand_exponentially_are_counted_before_they_are_expanded(levels: int, tmp_path: Path) -> None:
    model = _model([_call("f0")], functions=_doubling(levels))
    # Each function has two nodes, and the nodes of two calls of the next one.
    message = _refused(model, tmp_path)
    assert f"expand to {3 * 2**levels - 2} nodes, more than 100000" in message


def test_functions_in_branches_are_counted(tmp_path: Path) -> None:
    branch = helper.make_graph([_call("f0", y="z")], "branch", [], [onnx.ValueInfoProto(name="z")])
    model = _model(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], functions=_doubling(30)
    )
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    assert f"expand to {2 * (3 * 2**30 - 2)} nodes" in _refused(model, tmp_path)


def test_functions_that_are_nested_too_deep(tmp_path: Path) -> None:
    assert "nested too deep" in _refused(_model([_call("f0")], functions=_doubling(41)), tmp_path)


def test_recursion_that_multiplies(tmp_path: Path) -> None:
    calls = [[_call(f"f{i + 1}", "x", "a"), _call(f"f{i + 1}", "x", "b")] for i in range(25)]
    functions = [
        _function(f"f{i}", [*pair, helper.make_node("Add", ["a", "b"], ["y"])]) for i, pair in enumerate(calls)
    ]
    model = _model([_call("f0")], functions=[*functions, _function("f25", [_call("f0")])])
    assert "the function 'f0' calls itself" in _refused(model, tmp_path)


def test_functions_that_copy_constants(tmp_path: Path) -> None:
    large = onnx.numpy_helper.from_array(np.zeros(1 << 20, np.float32))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=large),
        helper.make_node("ReduceSum", ["c"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    twice = [_function(f"f{i}", [_call(f"f{i + 1}", "x", "a"), _call(f"f{i + 1}", "a")]) for i in range(12)]
    model = _model([_call("f0")], functions=[*twice, _function("f12", nodes)])
    assert "copies of constants" in _refused(model, tmp_path)


def test_recursive_functions(tmp_path: Path) -> None:
    functions = [_function("a", [_call("b")]), _function("b", [_call("a")])]
    assert "the function 'a' calls itself" in _refused(_model([_call("a")], functions=functions), tmp_path)


@pytest.mark.parametrize("depth", [8, 30])
def test_nested_loops(depth: int, tmp_path: Path) -> None:
    body, kinds = None, {"i": TensorProto.INT64, "c": TensorProto.BOOL, "v": TensorProto.FLOAT}
    for level in range(depth):
        last = f"y{level - 1}" if body is not None else "x"
        nodes = [] if body is None else [helper.make_node("Loop", ["m", "", "x"], [last], body=body)]
        nodes += [helper.make_node("Identity", [f"c{level}"], [f"d{level}"])]
        nodes += [helper.make_node("Concat", [last, f"v{level}"], [f"w{level}"], axis=0)]
        values = [helper.make_tensor_value_info(f"{name}{level}", kind, None) for name, kind in kinds.items()]
        results = [onnx.ValueInfoProto(name=f"{name}{level}") for name in "dw"]
        body = helper.make_graph(nodes, f"body{level}", values, results)
    model = _model([helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)], ("x",))
    model.graph.input.append(helper.make_tensor_value_info("m", TensorProto.INT64, []))
    if depth == 8:
        assert list(_load(model, tmp_path).outputs) == ["y"]
    else:
        assert "nested too deep" in _refused(model, tmp_path)


def test_huge_results_are_not_folded(tmp_path: Path) -> None:
    def integers(name: str, *elements: int, rank: int = 1) -> onnx.TensorProto:
        return helper.make_tensor(name, TensorProto.INT64, [len(elements)] if rank else [], elements)

    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    huge = 1 << 40
    for node, constants in [
        (helper.make_node("ConstantOfShape", ["s"], ["y"]), [integers("s", huge, huge)]),
        (helper.make_node("Expand", ["one", "s"], ["y"]), [one, integers("s", huge)]),
        (helper.make_node("Tile", ["one", "s"], ["y"]), [one, integers("s", huge)]),
        (helper.make_node("Pad", ["one", "s"], ["y"]), [one, integers("s", 0, huge)]),
        (
            helper.make_node("Range", ["a", "b", "c"], ["y"]),
            [integers("a", 0, rank=0), integers("b", huge, rank=0), integers("c", 1, rank=0)],
        ),
    ]:
        session = _load(_model([node], (), initializers=constants), tmp_path)
        assert session.outputs["y"].size >= huge, node.op_type


def test_constant_that_is_doubled_repeatedly(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", [f"a{i}", f"a{i}"], [f"a{i + 1}"], axis=0) for i in range(50)]
    session = _load(_model(nodes, (), ["a50"], [helper.make_tensor("a0", TensorProto.FLOAT, [1], [1.0])]), tmp_path)
    assert session.outputs["a50"].shape == (1 << 50,)


def test_unbounded_shape_arithmetic(tmp_path: Path) -> None:
    shape = helper.make_node("Shape", ["x"], ["a0"])
    squares = [helper.make_node("Mul", [f"a{i}", f"a{i}"], [f"a{i + 1}"]) for i in range(40)]
    model = _model([shape, *squares, helper.make_node("ConstantOfShape", ["a40"], ["y"])])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    assert len(str(_load(model, tmp_path).outputs["y"])) < 10_000
    doubled = [helper.make_node("Concat", [f"a{i}", f"a{i}"], [f"a{i + 1}"], axis=0) for i in range(30)]
    model = _model([shape, *doubled, helper.make_node("ConstantOfShape", ["a30"], ["y"])])
    assert "at most 64 dimensions" in _refused(model, tmp_path)


@pytest.mark.parametrize("dims", [[1 << 40], [-1], [1 << 62, 1 << 62, 0], [1] * 100, [3]])
def test_initializers_of_impossible_sizes(dims: list[int], tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * 8)
    message = _refused(_model([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[tensor]), tmp_path)
    assert "w: it " in message


def test_dense_size_of_sparse_tensors_is_limited(tmp_path: Path) -> None:
    model = _model([helper.make_node("Add", ["x", "w"], ["y"])])
    values, indices = np.ones(1, np.float32), np.zeros(1, np.int64)
    sparse = model.graph.sparse_initializer.add(dims=[1 << 40])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(values, "w"))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(indices, "indices"))
    assert "too large" in _refused(model, tmp_path)
    sparse.dims[:] = [2]
    np.testing.assert_array_equal(_load(model, tmp_path).run(x=np.zeros(2, np.float32))["y"], [1, 0])


def test_many_nodes_with_one_name(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", [f"a{i}"], [f"a{i + 1}"], name="same") for i in range(5000)]
    session = _load(_model(nodes, ["a0"], ["a5000"]), tmp_path)
    assert len(session.graph.nodes) == 5000


def test_cycles(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"])]
    assert "node 'first' is in a cycle" in _refused(_model(nodes, outputs=["b"]), tmp_path)


def test_signal_with_huge_frames(tmp_path: Path) -> None:
    numbers = {"step": 1, "length": 1 << 40}
    constants = [helper.make_tensor(name, TensorProto.INT64, [], [number]) for name, number in numbers.items()]
    model = _model([helper.make_node("STFT", ["x", "step", "", "length"], ["y"])], initializers=constants)
    assert "frames of 1099511627776 elements" in _refused(model, tmp_path)


def _external(name: str, offset: int, length: int) -> TensorProto:
    """Return a float vector that is kept in the file ``data``."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[length // 4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data"), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def test_tensors_that_read_one_region_again_and_again(tmp_path: Path) -> None:
    """Each could be copied, to align it: the copies are limited by the size of the files."""
    size = 1 << 28  # takes no space on the disk
    with (tmp_path / "data").open("wb") as file:
        file.truncate(size + 4)
    tensors = [_external(f"w{i}", 4, size) for i in range(8)]
    sums = [helper.make_node("ReduceSum", [f"w{i}"], [f"s{i}"], keepdims=0) for i in range(8)]
    nodes = [*sums, helper.make_node("Sum", ["x", *(f"s{i}" for i in range(8))], ["y"])]
    message = _refused(_model(nodes, initializers=tensors), tmp_path)
    assert f"{4 * size} bytes so far" in message
    assert "too many copies of constants" in message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_tensors_in_pipes_and_devices(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "data")
    model = _model([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[_external("w", 0, 8)])
    assert "not an ordinary file" in _refused(model, tmp_path)
    (tmp_path / "data").unlink()
    (tmp_path / "data").symlink_to("/dev/zero")
    assert "outside the model's folder" in _refused(model, tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_beside_a_model_in_a_folder(tmp_path: Path) -> None:
    _load(_model([helper.make_node("Relu", ["x"], ["y"])]), tmp_path)
    (tmp_path / "model.onnx").rename(tmp_path / "other.onnx")
    os.mkfifo(tmp_path / "model.onnx")  # the preferred name
    with _limits():
        assert list(lite.load(tmp_path, backend="host").inputs) == ["x"]


@pytest.mark.parametrize("length", [(1 << 31) - 8, 1 << 30])
def test_huge_empty_graphs_are_refused_before_they_are_read(length: int, tmp_path: Path) -> None:
    size = [length >> shift & 127 | 128 for shift in (0, 7, 14, 21)] + [length >> 28]
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.write(bytes([8, 8, 0x3A, *size]))  # the version, and a graph of this length
        file.truncate(8 + length - 9)
    tracemalloc.start()
    with pytest.raises(ModelFormatError, match=r"intact up to byte [28]\b"):
        lite.load(path, backend="host")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 16 << 20


# **** how far it got ****


def test_damage_is_located(tmp_path: Path) -> None:
    content = _model([helper.make_node("Relu", ["x"], ["y"])]).SerializeToString()
    cut = content[: len(content) - 3]
    message = _refused(cut, tmp_path)
    assert f"of its {len(cut)} bytes, it is intact up to byte" in message
    assert "lite-onnx" in message


def test_the_node_that_is_damaged_is_counted(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", [f"a{i}"], [f"a{i + 1}"]) for i in range(9)]
    nodes[6].input[0] = "nowhere"
    nodes.append(helper.make_node("Add", ["a6", "a9"], ["y"]))
    message = _refused(_model(nodes, ["a0"]), tmp_path)
    assert "reads 'nowhere'" in message
    assert "(at node 7 of 10)" in message


# **** options ****


@pytest.mark.parametrize(
    "options",
    [
        {"lengths": 3},
        {"lengths": {"x": "3"}},
        {"lengths": {"x": -1}},
        {"lengths": {"x": 10**9}},
        {"constants": [1]},
        {"constants": {"x": "text"}},
        {"constants": {"x": [[1], [1, 2]]}},
        {"shapes": "2"},
        {"shapes": {"x": 2}},
        {"shapes": {"x": [1.5]}},
    ],
)
def test_options_of_a_wrong_kind(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model([helper.make_node("Relu", ["x"], ["y"])]), path)
    with pytest.raises(InputError, match=f"^{next(iter(options))}"):
        lite.load(path, backend="host", reader_options=options)
