"""Files for Paddle-Lite: what is written computes the same, with kernels that Paddle-Lite has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paddle_lite_cases import CASES, MATRIX, SmallProgram, one

from lite_core.errors import InputError, ModelFormatError, UnsupportedOperatorError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle import paddlelite
from lite_paddle.lowering import lower
from lite_paddle.paddle_lite.container import decode, encode
from lite_paddle.paddle_lite.kernels import all_kernels
from lite_paddle.paddle_lite.placing import parse_targets
from lite_paddle.paddle_lite.program import KERNEL_ATTRIBUTE, Program
from lite_paddle.paddle_lite.writing import paddle_lite_program, write_protobuf
from lite_paddle.reader import read
from lite_paddle.reader.paddle_lite import source_of
from lite_paddle.source import SourceProgram

GOLDENS = Path(__file__).parents[3] / "tests/models/goldens"
KERNELS = {str(kernel) for kernels in all_kernels().values() for kernel in kernels}
TARGETS = {
    "x86": parse_targets(["x86"]),
    "arm": parse_targets(["arm"]),
    "arm16": parse_targets(["arm"], fp16=True),
    "opencl": parse_targets(["opencl", "arm"]),
}


def computed(source: SourceProgram, feeds: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    graph = lower(source)
    return evaluate_graph(graph, [feeds[value.name] for value in graph.inputs])


def assert_same_results(found: list[Any], expected: list[Any]) -> None:
    """Compare results; a number without dimensions has one of size 1 in Paddle-Lite."""
    for one_found, one_expected in zip(found, expected, strict=True):
        assert one_found.size == one_expected.size
        # Folded weights round once more.
        np.testing.assert_allclose(one_found.reshape(-1), one_expected.reshape(-1), rtol=1e-5, atol=1e-5)


def types_of(program: Program) -> list[str]:
    return [operator.type for operator in program.blocks[0].operators]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_written_programs_compute_the_same(case: SmallProgram, target: str) -> None:
    program = decode(encode(paddle_lite_program(case.source(), TARGETS[target])))
    for operator in program.blocks[0].operators:
        assert operator.get(KERNEL_ATTRIBUTE) in KERNELS
    found = computed(source_of(program, Path("written.nb")), dict(case.feeds))
    assert_same_results(found, computed(case.source(), dict(case.feeds)))


@pytest.mark.parametrize("flavour", ["legacy", "pir"])
@pytest.mark.parametrize("name", ["tiny_conv", "tiny_transformer", "tiny_recurrent", "tiny_conv_detector"])
def test_networks_compute_what_paddle_computes(name: str, flavour: str, tmp_path: Path) -> None:
    source = read(GOLDENS / name / flavour)
    with np.load(GOLDENS / name / "inputs.npz") as given, np.load(GOLDENS / name / flavour / "outputs.npz") as outputs:
        feeds, expected = dict(given), list(dict(outputs).values())
    first, second = (encode(paddle_lite_program(source, TARGETS["x86"])) for _ in range(2))
    assert first == second
    program = decode(first)
    assert_same_results(computed(source_of(program, Path("written.nb")), feeds), expected)
    # The same program as Paddle stores programs.
    write_protobuf(program, tmp_path / "p")
    assert_same_results(computed(read(tmp_path / "p/model", tmp_path / "p/params"), feeds), expected)


def test_opencl_programs_copy_once_and_compute_on_images() -> None:
    program = paddle_lite_program(read(GOLDENS / "tiny_conv/pir"), TARGETS["opencl"])
    kernels = [operator.get(KERNEL_ATTRIBUTE) for operator in program.blocks[0].operators]
    assert kernels[1:4] == ["io_copy/host_to_device/5/4/2", "layout/NCHW_to_ImageDefault/5/4/4", "conv2d/image2d/5/5/4"]
    assert kernels[-2] == "io_copy/device_to_host/5/4/2"


def test_float16_kernels_read_marked_float32_weights() -> None:
    program = paddle_lite_program(read(GOLDENS / "tiny_conv/pir"), TARGETS["arm16"])
    (convolution, *_) = (operator for operator in program.blocks[0].operators if operator.type == "conv2d")
    assert convolution.get(KERNEL_ATTRIBUTE) == "conv2d/def/4/5/1"
    assert convolution.get(f"{convolution.inputs['Filter'][0]}_fp16") == "fp16"
    assert {array.dtype.name for array in program.parameters.values()} == {"float32"}


@pytest.mark.parametrize("bits", [8, 16])
def test_narrow_weights_are_widened_again(bits: int) -> None:
    source = read(GOLDENS / "tiny_conv/pir")
    program = paddle_lite_program(source, TARGETS["x86"], weight_bits=bits)
    names = {array.dtype.name for array in program.parameters.values()}
    assert names == {f"int{bits}", "float32"}
    with np.load(GOLDENS / "tiny_conv/inputs.npz") as given:
        (found,) = computed(source_of(program, Path("written.nb")), dict(given))
        (expected,) = computed(source, dict(given))
    # Half a step of the largest of 2 ** (bits - 1) steps, summed over the products of one output.
    np.testing.assert_allclose(found, expected, atol=4 / 2 ** (bits - 1))


def test_fused_vocabulary() -> None:
    by_name = {case.name: case for case in CASES}
    for name, types in {
        "batch_norm-relu": ["conv2d"],
        "bias-reshape2": ["conv2d"],
        "factors": ["conv2d"],
        "residual": ["conv2d", "fusion_elementwise_add_activation"],
        "both-used": ["conv2d", "relu", "elementwise_add"],
        "shuffle_channel": ["shuffle_channel"],
        "linear-relu": ["fc"],
        "flatten-linear": ["fc"],
        "scales": ["scale"],
    }.items():
        assert types_of(paddle_lite_program(by_name[name].source(), TARGETS["x86"]))[1:-1] == types, name


def test_all_operators_without_kernels_are_refused_at_once() -> None:
    case = SmallProgram(
        "refused",
        {"x": MATRIX},
        {},
        [
            ("digamma", {"X": "x"}, {"Out": "a"}, {}),
            ("lgamma", {"X": "a"}, {"Out": "b"}, {}),
            ("digamma", {"X": "b"}, {"Out": "out"}, {}),
        ],
    )
    with pytest.raises(UnsupportedOperatorError) as caught:
        paddle_lite_program(case.source(), TARGETS["x86"])
    found = {(problem.op, len(problem.nodes)) for problem in caught.value.problems}
    assert found == {("digamma", 2), ("lgamma", 1)}
    with pytest.raises(UnsupportedOperatorError, match="opencl only, not for x86"):
        paddle_lite_program(one("acos").source(), TARGETS["x86"])


@pytest.mark.parametrize(("names", "part"), [(["x86", "arm"], "x86 and arm"), (["metal"], "'metal'")])
def test_targets_that_no_file_can_serve(names: list[str], part: str) -> None:
    with pytest.raises(InputError, match=part):
        parse_targets(names)


def test_predictor_saves_the_files_of_opt(tmp_path: Path) -> None:
    config = paddlelite.CxxConfig()
    config.set_model_dir(str(GOLDENS / "tiny_conv/legacy"))
    config.set_valid_places([paddlelite.Place(paddlelite.TargetType.X86)])
    predictor = paddlelite.create_paddle_predictor(config)
    predictor.save_optimized_model(str(tmp_path / "m"))
    predictor.save_optimized_pb_model(str(tmp_path / "p"))
    expected = paddle_lite_program(read(GOLDENS / "tiny_conv/legacy"), TARGETS["x86"])
    assert (tmp_path / "m.nb").read_bytes() == encode(expected)
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["model", "params"]
    with pytest.raises(ModelFormatError, match="already"):
        paddle_lite_program(read(tmp_path / "m.nb"), TARGETS["arm"])
