"""Sessions: checks of inputs, ownership of outputs, plans, thread safety."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import Graph, SymbolicDim
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.session import RunProfile, Session, load

PLUGINS = plugins_with()
F32 = np.float32
Array = np.ndarray[Any, Any]


def linear() -> Graph:
    b = GraphBuilder("linear")
    x = b.input("x", "float32", ["n", 3])
    weights = b.constant(np.arange(6, dtype=F32).reshape(3, 2), "weights")
    b.output(b.add("MatMul", [x, weights]), "y")
    b.output(x, "same")
    b.output(weights, "w")
    return b.build()


def two_inputs() -> Graph:
    b = GraphBuilder("two")
    x, ids = b.input("x", "float32", ["n", 3]), b.input("ids", "int64", ["n"])
    b.output(b.add("Add", [x, x]), "twice")
    b.output(b.add("Add", [ids, ids]), "ids2")
    return b.build()


def session(graph: Graph | None = None, **options: Any) -> Session:
    return load(graph or linear(), plugins=PLUGINS, **options)


X = np.array([[1, 2, 3], [4, 5, 6]], dtype=F32)


def test_inputs_and_outputs_are_mappings_in_the_models_order() -> None:
    s = session()
    assert {n: str(t) for n, t in s.inputs.items()} == {"x": "float32[n, 3]"}
    assert list(s.outputs) == ["y", "same", "w"]
    assert list(s.run({"x": X})) == ["y", "same", "w"]


def test_inputs_may_be_keywords_and_lists() -> None:
    assert session().run(x=[[1, 2, 3]])["y"].tolist() == [[16, 22]]


# **** ownership ****


def test_outputs_belong_to_the_caller() -> None:
    s = session()
    x = X.copy()
    first = s.run({"x": x})
    kept = {n: a.copy() for n, a in first.items()}
    x[:] = -1
    s.run({"x": X * 100})
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(s.run, [{"x": X * k} for k in range(8)]))
    del s
    gc.collect()
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])
        assert array.flags.writeable
    assert not any(np.shares_memory(a, b) for n, a in first.items() for m, b in first.items() if n != m)


def test_outputs_share_nothing_with_inputs_or_constants() -> None:
    s = session()
    outputs = s.run({"x": X})
    outputs["same"][:] = 0
    outputs["w"][:] = 0
    assert X[0].tolist() == [1, 2, 3]
    assert s.run({"x": X})["y"].tolist() == [[16, 22], [34, 49]]
    assert s.run({"x": X})["w"].tolist() == np.arange(6).reshape(3, 2).tolist()


def test_one_value_under_two_names_is_two_arrays() -> None:
    b = GraphBuilder("twins")
    y = b.add("Neg", [b.input("x", "float32", [2])])
    b.output(y, "a")
    b.output(y, "b")
    outputs = session(b.build()).run({"x": np.ones(2, F32)})
    assert not np.shares_memory(outputs["a"], outputs["b"])
    outputs["a"][:] = 5
    assert outputs["b"].tolist() == [-1, -1]


def test_out_and_bind_write_into_the_callers_arrays() -> None:
    s = session()
    y = np.empty((2, 2), F32)
    outputs = s.run({"x": X}, out={"y": y})
    assert outputs["y"] is y
    x = X.copy()
    binding = s.bind({"x": x})
    before = binding.outputs["y"].copy()
    x *= 2
    assert binding.run()["y"] is binding.outputs["y"]
    np.testing.assert_allclose(binding.outputs["y"], before * 2)


def test_a_binding_runs_again_and_again_on_the_present_content() -> None:
    s, x = session(), X.copy()
    every = {"y": np.empty((2, 2), F32), "same": np.empty((2, 3), F32), "w": np.empty((3, 2), F32)}
    bindings = [s.bind({"x": x}), s.bind({"x": x}, every), s.bind({"x": x}, {"y": np.empty((2, 2), F32)})]
    for factor in (1, 2, 3, 4):
        x[...] = X * factor
        for binding in bindings:
            outputs = binding.run()
            assert list(outputs) == ["y", "same", "w"]
            np.testing.assert_array_equal(outputs["y"], x @ outputs["w"])
            np.testing.assert_array_equal(outputs["same"], x)
            assert all(outputs[name] is array for name, array in binding.outputs.items())
    assert s.plan_statistics.misses == 1


def test_a_bound_output_may_share_memory_with_the_input() -> None:
    b = GraphBuilder("twice")
    x = b.input("x", "float32", [4])
    b.output(b.add("Add", [x, x]), "y")
    block = np.arange(6, dtype=F32)
    binding = session(b.build()).bind({"x": block[:4]}, {"y": block[2:]})
    for _ in range(3):
        expected = 2 * block[:4]
        binding.run()
        np.testing.assert_array_equal(block[2:], expected)


def test_a_binding_checks_arrays_that_it_has_not_run_on() -> None:
    binding = session().bind({"x": X}, {"y": np.empty((2, 4), F32)})
    for _ in range(2):
        with pytest.raises(InputError, match="'y'"):
            binding.run()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ({"z": np.empty(1)}, "'z'.*: y, same, w"),
        ({"y": np.empty((2, 2))}, "contiguous.*float32"),
        ({"y": np.empty((2, 3), F32)}, "contiguous.*float32"),
        ({"y": np.empty((2, 4), F32)[:, ::2]}, "contiguous"),
    ],
)
def test_invalid_out_arrays_are_refused(out: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        session().run({"x": X}, out=out)


# **** input errors ****


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"'x' is missing.*float32\[n, 3\]"),
        ({"x": X, "y": X}, "input 'y'.*: x"),
        ({"x": X[0]}, r"\[n, 3\].*\[3\]"),
        ({"x": X[:, :2]}, r"\[n, 3\].*\[2, 2\]"),
        ({"x": X.astype(np.float64)}, r"float32.*float64.*x\.astype\('float32'\)"),
        ({"x": X.astype(np.int32)}, "float32.*int32"),
        ({"x": [["a"]]}, "<U1"),
        ({"x": X.astype(np.complex64)}, "complex64"),
    ],
)
def test_invalid_inputs_are_refused(inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        session().run(inputs)


def test_every_input_problem_is_in_one_error() -> None:
    with pytest.raises(InputError) as caught:
        session(two_inputs()).run({"x": np.zeros((2, 4), F32), "idz": [1]})
    for part in ("'ids' is missing", "'idz'", "[n, 3]"):
        assert part in str(caught.value)


def test_symbol_has_one_size_in_all_inputs() -> None:
    with pytest.raises(InputError, match=r"'n' is 2 .*'x' and 5"):
        session(two_inputs()).run({"x": np.zeros((2, 3), F32), "ids": np.zeros(5, np.int64)})


@pytest.mark.parametrize("ids", [np.array([1, 2], np.int32), np.array([1, 2], np.uint8), [1, 2]])
def test_integers_are_widened(ids: Any) -> None:
    assert session(two_inputs()).run({"x": X, "ids": ids})["ids2"].tolist() == [2, 4]


@pytest.mark.parametrize("ids", [np.array([1.0, 2.0]), [1.5, 2.0], np.array([1, 2], np.uint64)])
def test_conversions_that_may_change_numbers_are_refused(ids: Any) -> None:
    with pytest.raises(InputError, match=r"'ids'.*int64"):
        session(two_inputs()).run({"x": X, "ids": ids})


def test_non_contiguous_inputs_give_right_results() -> None:
    s = session()
    np.testing.assert_array_equal(s.run({"x": X[:, ::-1]})["y"], s.run({"x": X[:, ::-1].copy()})["y"])


def unaligned(array: Array) -> Array:
    """Return the same numbers, misaligned by one byte."""
    shifted = np.frombuffer(b"\0" + array.tobytes(), array.dtype, array.size, 1).reshape(array.shape)
    assert not shifted.flags.aligned
    return shifted


class Subclass(np.ndarray[Any, Any]):
    """A subclass of arrays without a meaning."""


@pytest.mark.parametrize("known", [False, True], ids=["first run", "plan is known"])
@pytest.mark.parametrize(
    "given",
    [
        {"x": X},
        MappingProxyType({"x": X}),
        {"x": unaligned(X)},
        {"x": np.asfortranarray(X)},
        {"x": X.view(Subclass)},
        {"x": X.astype(">f4")},
        {"x": X.tolist()},
    ],
    ids=["array", "mapping", "unaligned", "column by column", "subclass", "byte order", "list"],
)
def test_backend_gets_plain_arrays_for_every_kind_of_input(given: Any, known: bool) -> None:
    b = GraphBuilder("look")
    b.output(b.add("Neg", [b.input("x", "float32", ["n", 3])]), "y")
    seen: list[Array] = []
    backend = KernelBackend("looking")

    @backend.kernel("Neg")
    def negate(x: Array) -> Array:
        seen.append(x)
        return -x

    s = load(b.build(), backend="looking", fallback="never", plugins=plugins_with(backend))
    if known:
        s.prepare({"x": X.shape})
    np.testing.assert_array_equal(s.run(given)["y"], -X)
    (array,) = seen
    assert type(array) is np.ndarray
    assert array.flags.c_contiguous
    assert array.flags.aligned
    assert not array.flags.writeable


@pytest.mark.parametrize("wrong", [{"x": X[:, :2]}, {"x": X, "z": X}, {"x": X.astype(np.float64)}, {}])
def test_invalid_inputs_are_refused_after_a_valid_run(wrong: Any) -> None:
    s = session()
    s.run({"x": X})
    with pytest.raises(InputError, match="cannot run"):
        s.run(wrong)


def test_value_that_is_listed_twice_as_output() -> None:
    graph = two_inputs()
    graph.outputs = [graph.outputs[0], graph.outputs[0], graph.outputs[1]]
    s = load(graph, plugins=PLUGINS, optimize=False)
    outputs = s.run({"x": X, "ids": np.array([1, 2])})
    assert {n: a.tolist() for n, a in outputs.items()} == {"twice": (X + X).tolist(), "ids2": [2, 4]}


def test_backends_get_aligned_constants() -> None:
    b = GraphBuilder("odd")
    weights = unaligned(np.arange(6, dtype=F32).reshape(3, 2))
    b.output(b.add("MatMul", [b.input("x", "float32", ["n", 3]), b.constant(weights, "w")]), "y")
    s = session(b.build())
    (kept,) = s.graph.constants.values()
    assert kept.flags.aligned
    assert not kept.flags.writeable
    assert s.run({"x": X})["y"].tolist() == [[16, 22], [34, 49]]


# **** plans, threads ****


def test_session_runs_many_signatures() -> None:
    s = session()
    for rows in [1, 2, 3, 40, 2, 0, 1]:
        x = np.ones((rows, 3), F32)
        assert s.run({"x": x})["y"].shape == (rows, 2)


def test_prepare_needs_shapes_of_symbolic_inputs() -> None:
    s = session()
    with pytest.raises(InputError, match=r"prepared: .*'x' is missing.*float32\[n, 3\]"):
        s.prepare()
    s.prepare({"x": (2, 3)})
    assert s.run({"x": X})["y"].shape == (2, 2)


def test_sixteen_threads_on_one_session() -> None:
    s = session()
    weights = np.arange(6, dtype=F32).reshape(3, 2)

    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x = rng.standard_normal((rng.integers(1, 6), 3)).astype(F32)
            outputs = s.run({"x": x})
            if not (np.allclose(outputs["y"], x @ weights, atol=1e-5) and np.array_equal(outputs["same"], x)):
                return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_same_input_gives_bit_equal_output() -> None:
    s = session()
    first = s.run({"x": X})
    assert all(np.array_equal(s.run({"x": X})["y"], first["y"]) for _ in range(20))


# **** descriptions ****


def test_describe_shows_inputs_outputs_and_devices() -> None:
    text = session().describe()
    for part in ("model linear", "input  x: float32[n, 3]", "output y: float32[n, 2]", "on host"):
        assert part in text


def test_the_graph_that_was_given_is_not_changed() -> None:
    graph = linear()
    before = str(graph)
    session(graph).run({"x": X})
    assert str(graph) == before


# **** user errors ****


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X], "mapping.*list"),
        ({"x": [[1, 2, 3], [4, 5]]}, "'x'.*array"),
        ({"x": [[1e300, 1, 2]]}, "'x'.*float32"),
        ({"x": np.ma.masked_array(X, X > 2)}, "'x'.*masked array"),
        ({"x": [[True, False, True]]}, "'x'.*float32"),
    ],
)
def test_inputs_that_cannot_be_converted_are_refused(inputs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        session().run(inputs)


def test_inputs_may_have_any_byte_order() -> None:
    s = session()
    np.testing.assert_array_equal(s.run({"x": X.astype(">f4")})["y"], s.run({"x": X})["y"])


def test_bfloat16_inputs_may_be_lists() -> None:
    b = GraphBuilder()
    b.output(b.add("Neg", [b.input("x", "bfloat16", [2])]), "y")
    assert session(b.build()).run({"x": [1.0, 2.0]})["y"].astype(float).tolist() == [-1, -2]


def test_expressions_of_symbols_are_checked() -> None:
    b = GraphBuilder()
    n = SymbolicDim.named("n")
    b.output(b.add("Neg", [b.input("x", "float32", [n, 2 * n])]), "y")
    s = session(b.build())
    assert s.run({"x": np.zeros((2, 4), F32)})["y"].shape == (2, 4)
    with pytest.raises(InputError, match=r"dimension 1 of input 'x'.*2\*n = 6.* 5"):
        s.run({"x": np.zeros((3, 5), F32)})


@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 4), (-1, 3), 3, ("a", 3)])
def test_prepare_checks_shapes(shape: Any) -> None:
    with pytest.raises(InputError, match=r"'x'.*\[n, 3\]"):
        session().prepare({"x": shape})


def test_prepare_checks_names() -> None:
    with pytest.raises(InputError, match="input 'q'"):
        session().prepare({"x": (1, 3), "q": (1,)})


def relu_and_reshape() -> Graph:
    b = GraphBuilder("views")
    x = b.input("x", "float32", [4])
    b.output(b.add("Reshape", [x, b.ints(2, 2)]), "z")
    b.output(b.add("Relu", [x]), "y")
    return b.build()


def test_out_may_overlap_an_input() -> None:
    a = np.array([-1, -2, 3, 4], F32)
    outputs = session(relu_and_reshape()).run({"x": a}, out={"y": a})
    assert outputs["y"] is a
    assert a.tolist() == [0, 0, 3, 4]
    assert outputs["z"].tolist() == [[-1, -2], [3, 4]]


def test_out_arrays_must_not_overlap() -> None:
    big = np.zeros(4, F32)
    with pytest.raises(InputError, match=r"out\['y'\].*out\['z'\]"):
        session(relu_and_reshape()).run({"x": np.ones(4, F32)}, out={"y": big, "z": big.reshape(2, 2)})


def test_out_of_the_wrong_size_is_not_broadcast() -> None:
    with pytest.raises(InputError, match=r"out\['y'\].*\[1, 2\].*\[5, 2\]"):
        session().run({"x": X[:1]}, out={"y": np.empty((5, 2), F32)})


def test_profile_holds_only_the_last_run() -> None:
    s, profile = session(), RunProfile()
    for _ in range(3):
        s.run({"x": X}, profile=profile)
    assert len(profile.partitions) == 1


@pytest.mark.parametrize("enabled", [False, True])
def test_loading_restores_the_garbage_collector(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        session()
        assert gc.isenabled() == enabled
        with pytest.raises(InputError):
            session(backend=[])
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("options", [{"threads": "2"}, {"backend": 5}, {"backend": []}, {"backend": ["host", ""]}])
def test_options_of_the_wrong_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        session(**options)


def test_load_refuses_other_types() -> None:
    with pytest.raises(InputError, match=r"model.*NoneType"):
        load(None)  # type: ignore[arg-type]
