"""NumbaBackend: what a loop receives, when it is compiled, and what its errors say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import Array, Graph
from lite_core.plugins import plugins_with
from lite_numba import NumbaBackend, compiling, flat, numba_backend

README = Path(__file__).resolve().parents[1] / "README.md"


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NumbaBackend:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    return NumbaBackend("acme")


def graph_of(op: str, *inputs: Array | None, outputs: int = 1, domain: str = "", **attributes: Any) -> Graph:
    """Return a graph of one node whose inputs are the graph's."""
    b = GraphBuilder(op)
    values = [None if a is None else b.input(f"x{i}", str(a.dtype), a.shape) for i, a in enumerate(inputs)]
    for value in b.add_node(op, values, attributes, outputs=outputs, domain=domain):
        assert value is not None
        b.output(value)
    return b.build()


def run(backend: NumbaBackend, op: str, *inputs: Array | None, **more: Any) -> list[Array]:
    session = lite.load(graph_of(op, *inputs, **more), backend="acme", fallback="never", plugins=plugins_with(backend))
    return list(session.run({f"x{i}": a for i, a in enumerate(inputs) if a is not None}).values())


def relu(x, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out.flat[i] = np.maximum(x.flat[i], 0)


# **** what a loop receives ****


@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4), (0, 3)])
def test_a_loop_sees_arrays_of_the_nodes_rank(backend: NumbaBackend, shape: tuple[int, ...]) -> None:
    backend.kernel("Relu")(relu)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(run(backend, "Relu", x)[0], np.maximum(x, 0))


def test_half_precision_arrives_as_float32(backend: NumbaBackend) -> None:
    @backend.kernel("Relu")
    def third(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = x.itemsize * x[i] / 3

    found = run(backend, "Relu", np.float16([1.0, 60000.0]))[0]
    np.testing.assert_array_equal(found, np.float16([4 / 3, np.inf]))


def test_attributes_have_the_precision_of_the_arrays_and_texts_choose_a_branch(backend: NumbaBackend) -> None:
    @backend.kernel("LeakyRelu")
    def leaky(x, alpha, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = alpha * x[i]

    @backend.kernel("Gelu")
    def gelu(x, approximate, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = 1 if approximate == "tanh" else 2

    x = np.ones(1)
    assert run(backend, "LeakyRelu", x, alpha=0.1)[0][0] == 0.1
    assert run(backend, "LeakyRelu", x.astype(np.float32), alpha=0.1)[0][0] == np.float32(0.1)
    assert [run(backend, "Gelu", x, approximate=mode)[0][0] for mode in ("tanh", "none")] == [1, 2]


def test_inputs_that_are_left_out_are_none_and_several_outputs_are_a_tuple(backend: NumbaBackend) -> None:
    @backend.kernel("Clip")
    def clip(x, low, high, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = x[i] if high is None else min(x[i], high[()])

    @backend.kernel("TopK")
    def top(x, k, axis, largest, sorted, out):  # type: ignore[no-untyped-def]
        out[0][0], out[1][0] = x[1], 1

    x, one = np.float32([1, 2, 3]), np.float32(2)
    np.testing.assert_array_equal(run(backend, "Clip", x, None, one)[0], [1, 2, 2])
    np.testing.assert_array_equal(run(backend, "Clip", x)[0], x)
    assert [a[0] for a in run(backend, "TopK", x, np.int64([1]), outputs=2)] == [2, 1]


def test_results_whose_size_depends_on_data_are_returned(backend: NumbaBackend) -> None:
    @backend.kernel("NonZero")
    def non_zero(x):  # type: ignore[no-untyped-def]
        found = np.empty((1, x.size), np.int64)
        count = 0
        for i in range(x.size):
            if x[i] != 0:
                found[0, count] = i
                count += 1
        return found[:, :count]

    np.testing.assert_array_equal(run(backend, "NonZero", np.int32([0, 3, 0, 4]))[0], [[1, 3]])


def test_prepare_may_run_a_loop_several_times(backend: NumbaBackend) -> None:
    def parts(*inputs: Array, axis: int, out: Array) -> Iterator[tuple[Any, ...]]:
        start = 0
        for x in inputs:
            yield x, start, out
            start += len(x)

    @backend.kernel("Concat", prepare=parts)
    def copy(x, start, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[start + i] = x[i]

    np.testing.assert_array_equal(run(backend, "Concat", np.int8([1]), np.int8([2, 3]), axis=0)[0], [1, 2, 3])


def test_arithmetic_is_that_of_numpy(backend: NumbaBackend) -> None:
    @backend.kernel("Div", prepare=flat)
    def divide(a, b, out):  # type: ignore[no-untyped-def]
        for i in range(a.size):
            out[i] = a[i] / b[i]

    found = run(backend, "Div", np.float32([[1, 0, -1]]), np.float32([[0, 0, 0]]))[0]
    np.testing.assert_array_equal(found, [[np.inf, np.nan, -np.inf]])


# **** when it is compiled ****


def test_nothing_is_compiled_while_a_model_runs(backend: NumbaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.kernel("Relu", prepare=flat)(relu)
    x = np.float32([[-1, 2]])
    session = lite.load(graph_of("Relu", x), backend="acme", fallback="never", plugins=plugins_with(backend))
    session.prepare({"x0": x.shape})

    def refuse(*_: Any) -> Callable[..., Any]:
        raise AssertionError("a loop is compiled in a run")

    monkeypatch.setattr(compiling, "compiled", refuse)
    np.testing.assert_array_equal(session.run({"x0": x})["relu"], [[0, 2]])
    other = lite.load(
        graph_of("Relu", x[0]), backend="acme", fallback="never", plugins=plugins_with(backend)
    )  # another rank, the same vectors
    np.testing.assert_array_equal(next(iter(other.run({"x0": x[0]}).values())), [0, 2])


def test_the_decorator_returns_the_function(backend: NumbaBackend) -> None:
    assert backend.kernel("Relu")(backend.kernel("Abs")(relu)) is relu


def test_other_functions_are_refused(backend: NumbaBackend) -> None:
    with pytest.raises(ValueError, match="a loop is a Python function, <ufunc"):
        backend.kernel("Abs")(np.abs)


def test_texts_and_narrow_types_are_refused(backend: NumbaBackend) -> None:
    backend.kernel("Identity", prepare=flat)(relu)
    graph = GraphBuilder("texts")
    graph.output(graph.add("Identity", [graph.input("x", "string", [2])]))
    [node], [device] = graph.build().nodes, backend.probe()  # type: ignore[misc]
    assert "'x' is string" in backend.supports(node, device).reason  # type: ignore[union-attr]


def test_listing_backends_imports_no_numba() -> None:
    code = "import sys; from lite_numba.backend import backend; print(len(backend.probe()), 'numba' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "1 False"


def test_the_loops_run_as_python_without_the_compiler() -> None:
    """``NUMBA_DISABLE_JIT=1`` lets a debugger step through a loop."""
    code = """
        import numpy as np, sys
        import lite_core as lite
        from lite_core.builder import GraphBuilder
        from lite_core.plugins import plugins_with
        from lite_numba import NumbaBackend
        backend = NumbaBackend("acme")
        @backend.kernel("Relu")
        def relu(x, out):
            print("in", sys._getframe().f_code.co_name)
            out[:] = 1
        b = GraphBuilder("g")
        b.output(b.add("Relu", [b.input("x", "float32", [2])]))
        session = lite.load(b.build(), backend="acme", plugins=plugins_with(backend))
        session.run({"x": np.zeros(2, np.float32)})
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.check_output(command, text=True, env={"NUMBA_DISABLE_JIT": "1"}).strip() == "in relu"


# **** errors ****


def test_a_loop_that_cannot_be_compiled_is_named(backend: NumbaBackend) -> None:
    @backend.kernel("Relu")
    def wrong(x, out):  # type: ignore[no-untyped-def]
        out[0] = x[0] + "a"

    with pytest.raises(ExecutionError) as caught:
        run(backend, "Relu", np.zeros(1, np.float32))
    message, line = str(caught.value), wrong.__code__.co_firstlineno
    assert "backend 'acme': node 'relu' (Relu) on (float32[1]): kernel wrong" in message
    assert f"test_numba_backend.py:{line})" in message
    assert 'out[0] = x[0] + "a"' in message
    assert "nopython" not in message


def test_inputs_cannot_be_written(backend: NumbaBackend) -> None:
    @backend.kernel("Relu")
    def writes(x, out):  # type: ignore[no-untyped-def]
        x[0] = 1

    with pytest.raises(ExecutionError, match="readonly array"):
        run(backend, "Relu", np.zeros(1, np.float32))


def test_bounds_are_checked_on_request(backend: NumbaBackend) -> None:
    @backend.kernel("Gather", check_bounds=True)
    def gather(x, indices, axis, out):  # type: ignore[no-untyped-def]
        for i in range(indices.size):
            out[i] = x[indices[i]]

    x = np.float32([1, 2])
    assert run(backend, "Gather", x, np.int64([1]))[0] == [2]
    with pytest.raises(ExecutionError, match="node 'gather'.*out of bounds"):
        run(backend, "Gather", x, np.int64([2]))


def test_a_missing_numba_is_a_reason_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numba" else real(name))
    numba_backend._missing.cache_clear()
    try:
        found = NumbaBackend("acme").probe()
    finally:
        numba_backend._missing.cache_clear()
    assert found == Unavailable("the package numba is not installed", 'pip install "numba>=0.62"')


def test_a_numpy_that_numba_does_not_know_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "__version__", "9.0.0")
    numba_backend._missing.cache_clear()
    try:
        found = NumbaBackend("acme").probe()
    finally:
        numba_backend._missing.cache_clear()
    assert isinstance(found, Unavailable)
    assert "installed is 9.0.0" in found.reason


# **** the documentation ****


def test_the_example_of_the_readme_runs() -> None:
    code = README.read_text().split("```python\n")[1].split("```")[0]
    namespace: dict[str, Any] = {"__name__": "acme"}
    exec(compile(code, str(README), "exec"), namespace)
    [backend] = namespace["lite_backends"]()
    x = np.float32([[-1, np.nan, 2]])
    np.testing.assert_array_equal(run(backend, "Relu", x)[0], [[0, np.nan, 2]])
