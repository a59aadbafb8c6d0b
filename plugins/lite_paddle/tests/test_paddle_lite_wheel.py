"""Files that Lite writes for Paddle-Lite, in the predictor of Paddle-Lite's own wheel."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paddle_lite_cases import CASES, IMAGE, SmallProgram
from paddle_lite_wheel import convert as convert_in_wheel

from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.paddle_lite.container import decode, read_model
from lite_paddle.paddle_lite.control_flow import Variables
from lite_paddle.paddle_lite.draft import Draft
from lite_paddle.paddle_lite.emitting import emit
from lite_paddle.paddle_lite.kernels import all_kernels
from lite_paddle.paddle_lite.placing import parse_targets
from lite_paddle.paddle_lite.program import KERNEL_ATTRIBUTE, Program
from lite_paddle.paddle_lite.writing import paddle_lite_program, write_naive_buffer, write_protobuf

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests/models"))

import catalog  # noqa: E402  (its folder was put on the path just before)

pytestmark = pytest.mark.full("paddle-lite")

Array = np.ndarray[Any, Any]
RUNNER = Path(__file__).parent / "paddle_lite_runner.py"
# Paddle-Lite's own spelling of targets, precisions and layouts, by its numbers.
_TARGETS = {"Host": 1, "X86": 2, "ARM": 4, "OpenCL": 5}
_PRECISIONS = {"Float": 1, "Int8": 2, "Int32": 3, "Any": 4, "FP16": 5, "Bool": 6, "Int64": 7}
_LAYOUTS = {"NCHW": 1, "Any": 2, "NHWC": 3, "ImageDefault": 4, "ImageFolder": 5}


def run_in_wheel(python: Path, folder: Path) -> None:
    subprocess.run([python, RUNNER, folder], check=True)


def results_of(model: Path) -> list[Array]:
    """Return the outputs of a model that ran, or fail with its last words."""
    outputs = model.with_suffix(".outputs.npz")
    assert outputs.exists(), model.with_suffix(".errors").read_text()[-2000:]
    with np.load(outputs) as kept:
        return list(kept.values())


@pytest.fixture(scope="session")
def wheel_kernels(paddle_lite_python: Path) -> set[str]:
    """Return the kernels of the wheel, from the symbols that register them."""
    (library,) = paddle_lite_python.parents[1].glob("lib/python*/site-packages/paddlelite/lite.so")
    pattern = (
        rf"touch_([a-z0-9_]+?)k({'|'.join(_TARGETS)})k({'|'.join(_PRECISIONS)})k({'|'.join(_LAYOUTS)})(\w+)v\b"
    ).encode()
    return {
        f"{op}/{alias}/{_TARGETS[target]}/{_PRECISIONS[precision]}/{_LAYOUTS[layout]}"
        for op, target, precision, layout, alias in (
            tuple(part.decode() for part in match) for match in re.findall(pattern, library.read_bytes())
        )
    }


@pytest.fixture(scope="session")
def small_results(
    paddle_lite_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[SmallProgram], list[Array]]:
    """Run every small program on x86 in the wheel; return a function from a program to its outputs."""
    folder = tmp_path_factory.mktemp("small")
    for number, case in enumerate(CASES):
        write_naive_buffer(paddle_lite_program(case.source(), parse_targets(["x86"])), folder / f"{number}.nb")
        np.savez(folder / f"{number}.inputs.npz", **case.feeds)
    run_in_wheel(paddle_lite_python, folder)
    return lambda case: results_of(folder / f"{CASES.index(case)}.nb")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_small_programs(case: SmallProgram, small_results: Callable[[SmallProgram], list[Array]]) -> None:
    graph = lower(case.source())
    expected = evaluate_graph(graph, [case.feeds[value.name] for value in graph.inputs])
    for found, wanted in zip(small_results(case), expected, strict=True):
        # Paddle-Lite approximates exponentials with polynomials.
        np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=2e-5, atol=2e-5)


def test_the_list_of_kernels_is_that_of_the_wheel(wheel_kernels: set[str]) -> None:
    assert {str(kernel) for kernels in all_kernels().values() for kernel in kernels} == wheel_kernels


_SIZE = {"out_h": 12, "out_w": 12, "scale": [2.0, 2.0], "align_corners": False}
_PLAIN = (
    "abs acos asin atan cos exp gelu hard_sigmoid hard_swish log relu relu6 rsqrt sigmoid sin sqrt square swish tanh"
)
#: Operators with one input, on images by OpenCL, and their attributes.
ON_IMAGES: dict[str, dict[str, Any]] = {
    **{name: {} for name in _PLAIN.split()},
    "bilinear_interp_v2": _SIZE,
    "clip": {"min": -1.0, "max": 1.0},
    "leaky_relu": {"alpha": 0.1},
    "nearest_interp_v2": _SIZE,
    "pad2d": {"paddings": [1, 1, 1, 1], "mode": "constant", "pad_value": 0.0},
    "pool2d": {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0]},
    "reshape2": {"shape": [2, 8, 3, 6]},
    "scale": {"scale": 2.0, "bias": 1.0, "bias_after_scale": True},
    "shuffle_channel": {"group": 2},
    "transpose2": {"axis": [0, 2, 3, 1]},
}


@pytest.mark.parametrize("op", ON_IMAGES)
def test_opencl_kernels_are_those_that_paddle_lite_chooses(op: str, tmp_path: Path, paddle_lite_python: Path) -> None:
    case = SmallProgram(op, {"x": IMAGE}, {}, [(op, {"X": "x"}, {"Out": "out"}, ON_IMAGES[op])])
    write_protobuf(emit(Draft.of(case.source()), Variables()), tmp_path / "plain")
    options = ["--valid_targets=opencl,arm"]
    files = tmp_path / "plain/model", tmp_path / "plain/params"
    expected = decode(convert_in_wheel(paddle_lite_python, *files, tmp_path / "theirs", options, {}))
    found = paddle_lite_program(case.source(), parse_targets(["opencl", "arm"]))
    assert kernels_named(found) == kernels_named(expected)


def kernels_named(program: Program) -> list[str]:
    return [operator.get(KERNEL_ATTRIBUTE) for operator in program.blocks[0].operators]


def convert(name: str, output: Path, *options: str) -> Path:
    """Convert a model of the catalog with the command and return the file."""
    files = catalog.ensure(name)
    given = [f"--model_file={files.model}", f"--param_file={files.params}", f"--optimize_out={output}"]
    completed = subprocess.run(
        [sys.executable, "-m", "lite_core", "opt", *given, *options], capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    return output.with_suffix(".nb")


def expected_of(name: str) -> Mapping[str, Array]:
    try:
        return catalog.paddle_answer(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", catalog.NAMES)
def test_models_compute_what_paddle_computes(name: str, tmp_path: Path, paddle_lite_python: Path) -> None:
    expected = expected_of(name)
    written = convert(name, tmp_path / "model", "--valid_targets=x86")
    assert written.read_bytes() == convert(name, tmp_path / "again", "--valid_targets=x86").read_bytes()
    (tmp_path / "again.nb").unlink()
    np.savez(tmp_path / "model.inputs.npz", **catalog.example_input(name))
    run_in_wheel(paddle_lite_python, tmp_path)
    for found, wanted in zip(results_of(written), expected.values(), strict=True):
        # Sums of up to 4608 float32 products in another order, through up to 50 layers.
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("options", [("arm",), ("arm", "--enable_fp16=true"), ("opencl,arm",), ("x86_opencl",)])
@pytest.mark.parametrize("name", catalog.NAMES)
def test_files_for_other_devices_name_kernels_of_the_wheel(
    name: str, options: tuple[str, ...], tmp_path: Path, wheel_kernels: set[str]
) -> None:
    program = read_model(convert(name, tmp_path / "model", f"--valid_targets={options[0]}", *options[1:]))
    named = {operator.get(KERNEL_ATTRIBUTE) for block in program.blocks for operator in block.operators}
    assert named <= wheel_kernels


@pytest.mark.parametrize(("kind", "difference"), [("QUANT_INT8", 0.05), ("QUANT_INT16", 2e-4)])
@pytest.mark.parametrize("name", ["squeezenet1_1-legacy", "mobilenet_v1-pir", "pp_ocrv4_cls"])
def test_narrow_weights(name: str, kind: str, difference: float, tmp_path: Path, paddle_lite_python: Path) -> None:
    """Paddle-Lite widens the weights; its own converter leaves those of matrix products without values."""
    expected = expected_of(name)
    options = ("--valid_targets=x86", "--quant_model=true", f"--quant_type={kind}")
    written = convert(name, tmp_path / "model", *options)
    np.savez(tmp_path / "model.inputs.npz", **catalog.example_input(name))
    run_in_wheel(paddle_lite_python, tmp_path)
    for found, wanted in zip(results_of(written), expected.values(), strict=True):
        # The share of the largest output that rounding to 127 or 32767 steps costs in these networks.
        np.testing.assert_allclose(found, wanted, atol=difference * np.abs(wanted).max())
