"""Paddle-Lite's model files: container, damage, and the results of files that its converter wrote."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import random
import struct
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from stream_writer import write_file, write_parameters, write_topology

from lite_core.errors import InputError, LiteError, ModelFormatError, UnsupportedOperatorError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.paddle_lite.container import decode, encode, read_model
from lite_paddle.paddle_lite.program import Attribute, AttributeKind, Block, Operator, Program, Variable, VariableKind
from lite_paddle.paddle_lite.program_desc import from_message, to_message
from lite_paddle.plugin import PaddleFormat
from lite_paddle.reader import read, sniff
from lite_paddle.reader.paddle_lite import source_of

FIXTURES = Path(__file__).parent / "fixtures"
with np.load(FIXTURES / "paddle_lite.npz") as _archive:
    ARCHIVE = {name: _archive[name] for name in _archive.files}
FILES = {name: array.tobytes() for name, array in ARCHIVE.items() if array.dtype == np.uint8}
#: The distance that narrow weights and the order of additions may cause: steps of 16-bit weights are 1e-5.
TOLERANCES = {"arm_weights_16": 1e-4}


def outputs_of(content: bytes, folder: Path, x: np.ndarray) -> np.ndarray:
    """Return the only output of a file, as the references compute it."""
    file = folder / "model.nb"
    file.write_bytes(content)
    assert sniff(file) == "paddle_lite"
    (y,) = evaluate_graph(PaddleFormat().read(file), [x])
    return y


@pytest.mark.parametrize("name", [name for name in FILES if name != "int8_arm"])
def test_files_for_every_target_have_paddle_lites_outputs(name: str, tmp_path: Path) -> None:
    expected = ARCHIVE.get(f"{name}_answer", ARCHIVE["x86_answer"])
    y = outputs_of(FILES[name], tmp_path, ARCHIVE["x"])
    np.testing.assert_allclose(y, expected, rtol=0, atol=TOLERANCES.get(name, 1e-6))


def test_eight_bit_kernels(tmp_path: Path) -> None:
    """No element of this model is half way between two integers, see test_quantized_models.py."""
    with np.load(FIXTURES / "quantized" / "ptq_onnx_format" / "answer.npz") as answer:
        y = outputs_of(FILES["int8_arm"], tmp_path, answer["x"])
        np.testing.assert_allclose(y, answer["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FILES)
def test_encoding_keeps_the_program(name: str) -> None:
    program = decode(FILES[name])
    content = encode(program)
    again = decode(content)
    assert again.blocks == program.blocks
    assert again.version == program.version
    assert list(again.parameters) == sorted(program.parameters, key=str.encode)
    for parameter, array in program.parameters.items():
        np.testing.assert_array_equal(again.parameters[parameter], array)
        assert again.parameters[parameter].dtype == array.dtype
    assert encode(again) == content
    assert len(content) < len(FILES[name])


def test_slots_and_attributes_are_sorted_by_their_bytes() -> None:
    values = {"é": 1, "b": 2, "_a": 3, "B": 4}
    attributes = {name: Attribute(AttributeKind.INT, value) for name, value in values.items()}
    operator = Operator("o", {"b": ("x",), "B": ()}, {}, attributes)
    program = Program((Block(0, -1, (), (operator,)),), {})
    (read_back,) = decode(encode(program)).blocks[0].operators
    assert list(read_back.attributes) == ["B", "_a", "b", "é"]
    assert list(read_back.inputs) == ["B", "b"]
    assert read_back == operator


def test_every_type_of_attribute_is_kept() -> None:
    kinds = AttributeKind
    values = {
        kinds.INT: -(2**31), kinds.FLOAT: 0.5, kinds.STRING: "a\udcff", kinds.INTS: (1, -2), kinds.FLOATS: (0.25,),
        kinds.STRINGS: ("", "b"), kinds.BOOLEAN: True, kinds.BOOLEANS: (True, False), kinds.BLOCK: 3,
        kinds.LONG: -(2**63), kinds.BLOCKS: (1, 2), kinds.LONGS: (2**40,), kinds.FLOAT64: 0.1,
        kinds.FLOAT64S: (0.1, 2.0),
    }  # fmt: skip
    operator = Operator("o", {}, {}, {kind.name: Attribute(kind, value) for kind, value in values.items()})
    program = Program((Block(0, -1, (), (operator,)),), {})
    assert decode(encode(program)).blocks[0].operators == (operator,)
    kept = {k: v for k, v in operator.attributes.items() if v.kind not in (AttributeKind.BLOCK, AttributeKind.BLOCKS)}
    message = to_message(Program((Block(0, -1, (), (dataclasses.replace(operator, attributes=kept),)),), {}))
    assert from_message(message, {}).blocks[0].operators[0].attributes == kept


@pytest.mark.parametrize(
    ("kind", "value"), [(AttributeKind.INT, 2**31), (AttributeKind.INTS, (2**31,)), (AttributeKind.VAR, "x")]
)
def test_an_attribute_that_the_format_cannot_hold(kind: AttributeKind, value: object) -> None:
    operator = Operator("conv2d", {}, {}, {"groups": Attribute(kind, value)})
    with pytest.raises(ModelFormatError, match=r"conv2d: its attribute 'groups'"):
        encode(Program((Block(0, -1, (), (operator,)),), {}))


def test_a_parameter_that_the_format_cannot_hold() -> None:
    with pytest.raises(ModelFormatError, match=r"'w' has the element type float64"):
        encode(Program((), {"w": np.zeros(2)}))


@pytest.mark.parametrize("name", ["x86", "int8_arm"])
def test_container_version_0_and_folders(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = decode(FILES[name])
    old = decode(write_file(program))
    assert (old.blocks, old.version, old.meta_version, old.opt_version) == (
        program.blocks,
        program.version,
        0,
        "v2.6.1",
    )
    (tmp_path / "__model__.nb").write_bytes(write_topology(program))
    (tmp_path / "param.nb").write_bytes(write_parameters(program))
    for given in (old, read_model(tmp_path)):
        assert given.blocks == program.blocks
        for parameter, array in program.parameters.items():
            np.testing.assert_array_equal(given.parameters[parameter], array)
    assert sniff(tmp_path) == "paddle_lite"
    with caplog.at_level(logging.WARNING, "lite.paddle"):
        graph = PaddleFormat().read(tmp_path)
    assert "before 2.3" in caplog.text
    assert graph.metadata["opt_version"] == "before 2.3"


def test_another_version_loads_with_a_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "lite.paddle"):
        outputs_of(FILES["x86"], tmp_path, ARCHIVE["x"])
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "lite.paddle"):
        outputs_of(encode(decode(FILES["x86"]), "v2.10"), tmp_path, ARCHIVE["x"])
    assert "v2.10" in caplog.text


def test_names_that_are_written_several_times(tmp_path: Path) -> None:
    """Paddle-Lite reuses variables: operators count in the order of the file."""
    blocks = (_block(_operator("relu", "x", "t"), _operator("exp", "t", "x"), _operator("tanh", "x", "t")),)
    x = np.array([[-1.0, 0.5]], np.float32)
    y = outputs_of(encode(Program(blocks, {})), tmp_path, x)
    np.testing.assert_allclose(y, np.tanh(np.exp(np.maximum(x, 0))), rtol=1e-6)


def test_unreadable_operators_are_listed_with_reasons() -> None:
    blocks = (_block(_operator("subgraph", "x", "a"), _operator("sparse_conv2d", "a", "t")),)
    with pytest.raises(UnsupportedOperatorError) as error:
        lower(source_of(Program(blocks, {}), Path("m.nb")))
    assert "accelerator" in str(error.value)
    assert "without sparse_model" in str(error.value)


@pytest.mark.parametrize(("name", "padding"), [("x86", 0), ("x86_version_1", 8)])
def test_truncated_files(name: str, padding: int, tmp_path: Path) -> None:
    content = FILES[name]
    for end in (0, 1, 25, 26, 27, 100, 3000, len(content) // 2, len(content) - padding - 1):
        with pytest.raises(ModelFormatError):
            decode(content[:end])
    file = tmp_path / "model.nb"
    file.write_bytes(content[:3000])
    with pytest.raises(ModelFormatError, match=r"truncated.*topology"):
        read(file)


def test_a_parameter_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.nb"
    file.write_bytes(FILES["x86"])
    with pytest.raises(InputError, match="leave out params"):
        read(file, params=file)


def _changed(content: bytes, position: int, replacement: bytes) -> bytes:
    return content[:position] + replacement + content[position + len(replacement) :]


def test_forged_files_say_what_was_expected() -> None:
    content = FILES["x86"]
    (size,) = struct.unpack_from("<Q", content, 18)
    for forged, message in (
        (_changed(content, 0, b"\3\0"), "not a Paddle-Lite model"),
        (b"PK\3\4" + content, "not a Paddle-Lite model"),
        (_changed(content, 26, struct.pack("<I", 2**31)), "needs 4 bytes"),
        (_changed(content, 26 + size, b"\1\0"), "version 1, expected 0"),
        (_changed(content, 26 + size + 4, b"\2\0"), "header of the parameters has 2 bytes"),
        (_changed(content, 26 + size + 16, b"\xff\xff\xff\xff"), "begins at"),
    ):
        with pytest.raises(ModelFormatError, match=message):
            decode(forged)


def test_many_offsets_to_one_table_do_not_take_long() -> None:
    """A list names one block 1000 times, whose list of operators names one operator 1000 times."""
    builder = flatbuffers.Builder(0)

    def repeated(table: int) -> int:
        builder.StartVector(4, 1000, 4)
        for _ in range(1000):
            builder.PrependUOffsetTRelative(table)
        return int(builder.EndVector())

    def holder(slot: int, content: int) -> int:
        builder.StartObject(5)
        builder.PrependUOffsetTRelativeSlot(slot, content, 0)
        return int(builder.EndObject())

    operator = holder(0, builder.CreateString("relu"))
    builder.Finish(holder(0, repeated(holder(3, repeated(operator)))))
    topology = bytes(builder.Output())
    with pytest.raises(ModelFormatError, match=r"its parts overlap|more than 1000000 tables"):
        decode(struct.pack("<H16sQ", 2, b"v2.13-rc", len(topology)) + topology)


def damages(content: bytes, chance: random.Random, count: int) -> list[bytes]:
    """Return damaged copies of a file: changed bytes and numbers, mostly in its structure, cuts and repetitions."""
    (size,) = struct.unpack_from("<Q", content, 18)
    found = []
    for _ in range(count):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 1, 2, 8))):
            position = chance.randrange(26 + size + 40 if chance.random() < 0.8 else len(content))
            numbers = [bytes([chance.randrange(256)]), struct.pack("<I", chance.choice((0, 1, 2**31, 2**32 - 1)))]
            numbers += [struct.pack("<i", chance.randrange(-64, 64)), struct.pack("<Q", 2**62)]
            replacement = chance.choice(numbers)
            changed[position : position + len(replacement)] = replacement
        if chance.random() < 0.1:
            del changed[chance.randrange(len(changed)) :]
        found.append(bytes(changed))
    return found


def check_damages(count: int, seed: int, folder: Path) -> None:
    """Read damaged files; each is a graph, or an error of Lite."""
    chance = random.Random(seed)
    program = decode(FILES["x86"])
    sources = [*FILES.values(), encode(program), write_file(program)]
    file = folder / "model.nb"
    for content in sources:
        for damaged in damages(content, chance, count // len(sources) + 1):
            file.write_bytes(damaged)
            with contextlib.suppress(LiteError):
                PaddleFormat().read(file)


def test_damaged_files(tmp_path: Path) -> None:
    check_damages(30, 1, tmp_path)


@pytest.mark.full("paddle-lite")
def test_five_thousand_damaged_files(tmp_path: Path) -> None:
    check_damages(5000, 2, tmp_path)


def _operator(type_: str, source: str, target: str) -> Operator:
    return Operator(type_, {"X": (source,)}, {"Out": (target,)})


def _block(*operators: Operator) -> Block:
    """Return a block that feeds ``x`` and fetches ``t``."""
    column = {"col": Attribute(AttributeKind.INT, 0)}
    feed = Operator("feed", {"X": ("feed",)}, {"Out": ("x",)}, column)
    fetch = Operator("fetch", {"X": ("t",)}, {"Out": ("fetch",)}, column)
    variables = (
        Variable("feed", VariableKind.FEED_MINIBATCH, persistable=True),
        Variable("fetch", VariableKind.FETCH_LIST, persistable=True),
        Variable("x", element_type="float32", shape=(-1, 2)),
        Variable("t", element_type="float32"),
    )
    return Block(0, -1, variables, (feed, *operators, fetch))
