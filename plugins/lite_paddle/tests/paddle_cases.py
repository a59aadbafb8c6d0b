"""Comparison of lowered models with Paddle, which exports all cases of a module in a separate process, once.

A test module lists :class:`Case` objects in ``CASES``::

    @parametrize_cases(CASES)
    def test_matches_paddle(case: Case, kind: str, paddle_models) -> None:
        check(case, paddle_models(kind), kind)

Paddle runs every case in dynamic mode, exports it, and writes inputs and results beside the model;
:func:`check` reads the model with lite_paddle, runs it with the operators' references, and compares. Paddle is
never imported by the tests themselves.

To run it by hand: ``python paddle_cases.py test_lowering_pooling.py pir models [name ...]``.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]

KINDS = ("pir", "legacy")

# Error message of Paddle 3.3 for functions that moved to C++ and support only PIR.
_NO_LEGACY_FORM = "must be Value, but got Variable"


@dataclass(frozen=True, slots=True)
class Case:
    """One small model.

    Attributes:
        name: unique in its module, and a file name.
        build: receives the paddle module, returns a function of tensors or a Layer.
        inputs: arrays.
        shapes: input shapes to export with, None for open sizes; by default those of the arrays.
        rtol: relative tolerance.
        atol: absolute tolerance.
        kinds: the kinds of file that Paddle can export it to.
    """

    name: str
    build: Callable[[Any], Callable[..., Any]]
    inputs: Sequence[Array]
    shapes: Sequence[Sequence[int | None]] | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    kinds: tuple[str, ...] = KINDS


def fixed_and_open(name: str, build: Callable[[Any], Any], *inputs: Any, **options: Any) -> list[Case]:
    """Return a case with fixed shapes and one whose sizes are all open."""
    open_shapes = [[None] * a.ndim for a in inputs]
    return [Case(name, build, inputs, **options), Case(f"{name}_open", build, inputs, shapes=open_shapes, **options)]


def tensor_method(method: str, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    """Return a case's function: ``paddle.method(x, *arguments, **options)``."""
    return lambda p: lambda x: getattr(p, method)(x, *arguments, **options)


def parametrize_cases(cases: Sequence[Case]) -> Any:
    """Parametrize a test with ``case`` and ``kind``."""
    found = [pytest.param(case, kind, id=f"{case.name}-{kind}") for case in cases for kind in case.kinds]
    return pytest.mark.parametrize(("case", "kind"), found)


def paddle_is_installed() -> bool:
    return importlib.util.find_spec("paddle") is not None


def export_cases(module: str | Path, directory: Path, kind: str) -> Path:
    """Export all cases of a test module as one kind of file, in a separate process; return the directory."""
    target = Path(directory) / kind
    target.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "FLAGS_enable_pir_api": "1" if kind == "pir" else "0", "GLOG_minloglevel": "2"}
    command = [sys.executable, __file__, str(module), kind, str(target)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stderr[-4000:]}")
    return target


def check(case: Case, directory: Path, kind: str) -> None:
    """Compare one exported case with Paddle's results."""
    from lite_core.ops.evaluate import evaluate_graph
    from lite_paddle.lowering import lower
    from lite_paddle.reader import read

    failure = directory / f"{case.name}.error"
    if failure.exists():
        text = failure.read_text()
        if kind == "legacy" and _NO_LEGACY_FORM in text:
            pytest.skip("this Paddle can no longer export the function as a legacy file")
        pytest.fail(f"Paddle could not export the case:\n{text}")
    program = read(directory / f"{case.name}{'.json' if kind == 'pir' else '.pdmodel'}")
    graph = lower(program)
    with np.load(directory / f"{case.name}.npz") as stored:
        arrays = [stored[f"in{i}"] for i in range(len(case.inputs))]
        expected = [stored[f"out{i}"] for i in range(sum(k.startswith("out") for k in stored.files))]
    by_name = {f"x{i}": a for i, a in enumerate(arrays)}
    got = evaluate_graph(graph, [by_name[v.name] for v in graph.inputs])
    assert len(got) == len(expected)
    for value, actual, wanted in zip(graph.outputs, got, expected):
        assert actual.dtype == wanted.dtype, f"{value.name}: {actual.dtype}, Paddle has {wanted.dtype}\n{graph}"
        assert actual.shape == wanted.shape, f"{value.name}: {actual.shape}, Paddle has {wanted.shape}\n{graph}"
        assert value.type.accepts(actual.shape), f"{value} was inferred, but the shape is {actual.shape}\n{graph}"
        np.testing.assert_allclose(actual, wanted, rtol=case.rtol, atol=case.atol, err_msg=str(graph))


# Paddle counts the parameters of forward, does not support ``*args`` there, and reads its source.


def _forward0(self: Any) -> Any:
    return self.function()


def _forward1(self: Any, a: Any) -> Any:
    return self.function(a)


def _forward2(self: Any, a: Any, b: Any) -> Any:
    return self.function(a, b)


def _forward3(self: Any, a: Any, b: Any, c: Any) -> Any:
    return self.function(a, b, c)


def _forward4(self: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return self.function(a, b, c, d)


_FORWARDS = (_forward0, _forward1, _forward2, _forward3, _forward4)


def _export(case: Case, directory: Path) -> None:
    import paddle

    paddle.seed(0)
    function = case.build(paddle)

    class Model(paddle.nn.Layer):  # type: ignore[misc]
        forward = _FORWARDS[len(case.inputs)]

        def __init__(self) -> None:
            super().__init__()
            self.function = function

    model = Model()
    model.eval()
    tensors = [paddle.to_tensor(a) for a in case.inputs]
    results = model(*tensors)
    results = results if isinstance(results, list | tuple) else [results]
    arrays = {f"in{i}": np.asarray(a) for i, a in enumerate(case.inputs)}
    arrays |= {f"out{i}": r.numpy() for i, r in enumerate(results)}
    np.savez(directory / f"{case.name}.npz", **arrays)  # type: ignore[arg-type]
    shapes = case.shapes or [a.shape for a in case.inputs]
    specs = [
        paddle.static.InputSpec([-1 if d is None else d for d in shape], str(a.dtype), f"x{i}")
        for i, (shape, a) in enumerate(zip(shapes, case.inputs))
    ]
    paddle.jit.save(model, str(directory / case.name), input_spec=specs)


def _load_cases(module: str) -> list[Case]:
    path = Path(module)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None, f"{module} is no Python file"
    assert specification.loader is not None, f"{module} is no Python file"
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    cases: list[Case] = loaded.CASES
    return cases


def main(module: str, kind: str, directory: str, *names: str) -> None:
    # The test module imports this file under its own name; both must see one class.
    sys.modules["paddle_cases"] = sys.modules["__main__"]
    sys.path.insert(0, str(Path(__file__).parent))
    for case in _load_cases(module):
        if kind not in case.kinds or (names and case.name not in names):
            continue
        try:
            _export(case, Path(directory))
        except Exception:
            (Path(directory) / f"{case.name}.error").write_text(traceback.format_exc()[-3000:])


if __name__ == "__main__":
    main(*sys.argv[1:])
