"""Details of PIR, on programs written here as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lite_core.errors import ModelFormatError
from lite_paddle.reader import read, sniff
from lite_paddle.reader.pir_names import PIR_NAMES, find_name
from lite_paddle.source import SourceOp, SourceProgram

FIXTURES = Path(__file__).parent / "fixtures" / "pir_3.3"

Json = dict[str, Any]


def tensor(dims: list[int], element: str = "f32") -> Json:
    return {"#": "0.t_dtensor", "D": [{"#": f"0.t_{element}"}, dims, "NCHW", [], 0]}


def attribute(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {"#": "0.a_array", "D": [attribute(item) for item in value]}
    kind = {bool: "0.a_bool", int: "0.a_i64", float: "0.a_f64", str: "0.a_str"}[type(value)]
    return {"#": kind, "D": value}


def op(name: str, inputs: list[int], outputs: list[int], attrs: Json | None = None, **more: Any) -> Json:
    types = more.pop("types", [tensor([2])] * len(outputs))
    return {
        "#": name,
        "A": [{"N": key, "AT": attribute(value)} for key, value in (attrs or {}).items()],
        "I": [{"%": number} for number in inputs],
        "O": [{"%": number, "TT": found} for number, found in zip(outputs, types)],
        **more,
    }


def data(number: int, name: str) -> Json:
    return op("1.data", [], [number], {"name": name})


def full(number: int, value: Any, shape: list[int] | None = None, dtype: str = "float32") -> Json:
    return op(
        "1.full",
        [],
        [number],
        {"value": value, "shape": shape or [], "dtype": {"#": "1.a_dtype", "D": dtype}},
    )


def ints(number: int, values: list[int]) -> Json:
    return op("1.full_int_array", [], [number], {"value": values, "dtype": {"#": "1.a_dtype", "D": "int64"}})


def fetch(number: int, column: int = 0, name: str | None = None) -> Json:
    return op("1.fetch", [number], [1000 + column], {"name": name or f"fetch_name_{column}", "col": column})


def document(ops: list[Json], version: int = 4) -> Json:
    block = {"#": "block_0", "args": [], "ops": ops}
    return {
        "base_code": {"magic": "pir", "trainable": True, "version": version},
        "program": {"regions": [{"#": "region_0", "blocks": [block]}]},
    }


def load(path: Path, ops: list[Json], version: int = 4) -> SourceProgram:
    file = path / "model.json"
    file.write_text(json.dumps(document(ops, version), separators=(",", ":")))
    assert sniff(file) == "pir"
    return read(file)


def first(program: SourceProgram, op_type: str) -> SourceOp:
    return next(found for found in program.block.walk() if found.type == op_type)


@pytest.mark.parametrize(
    ("file_version", "version"), [(0, 3_000_000), (1, 3_000_000), (2, 3_001_000), (4, 3_003_000), (9, 3_008_000)]
)
def test_file_versions(tmp_path: Path, file_version: int, version: int) -> None:
    program = load(tmp_path, [data(1, "x"), fetch(1)], file_version)
    assert (program.version, program.file_version) == (version, file_version)
    assert program.outputs == [("fetch_name_0", program.inputs[0][1])]


def test_indented_json(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    content = json.loads((FIXTURES / "shapes" / "model.json").read_text())
    file.write_text("\ufeff\n" + json.dumps(content, indent=4), encoding="utf-8")
    assert sniff(file) == "pir"
    assert len(read(file).block.ops) == len(read(FIXTURES / "shapes").block.ops)


def test_snapshots_before_the_release(tmp_path: Path) -> None:
    """Development snapshots use full names, and # instead of % for value ids."""
    text = (FIXTURES / "branches" / "model.json").read_text().replace('"%":', '"#":')
    for number, dialect in ("0", "builtin"), ("1", "pd_op"), ("2", "cf"):
        text = text.replace(f'"#":"{number}.', f'"#":"{dialect}.')
    (tmp_path / "model.json").write_text(text)
    (tmp_path / "model.pdiparams").write_bytes((FIXTURES / "branches" / "model.pdiparams").read_bytes())
    old, new = read(tmp_path), read(FIXTURES / "branches")
    assert [found.type for found in old.block.walk()] == [found.type for found in new.block.walk()]


@pytest.mark.parametrize(
    ("name", "operand", "attrs", "legacy", "expected"),
    [
        ("reshape", ints(2, [0, -1]), {}, "reshape2", {"shape": [0, -1]}),
        ("squeeze", ints(2, [1]), {}, "squeeze2", {"axes": [1]}),
        (
            "sum",
            ints(2, []),
            {"keepdim": False},
            "reduce_sum",
            {"dim": [], "reduce_all": True, "keep_dim": False},
        ),
        (
            "max",
            ints(2, [1]),
            {"keepdim": True},
            "reduce_max",
            {"dim": [1], "reduce_all": False, "keep_dim": True},
        ),
        ("argmax", full(2, 1.0, dtype="int64"), {"keepdims": True}, "arg_max", {"axis": 1, "keepdims": True}),
        ("topk", full(2, 5.0, [1], "int32"), {"axis": -1}, "top_k_v2", {"k": 5, "axis": -1, "largest": True}),
        (
            "scale",
            full(2, 2.5, [1]),
            {"bias": 1.0},
            "scale",
            {"scale": 2.5, "bias": 1.0, "bias_after_scale": True},
        ),
        ("one_hot", full(2, 7.0, [1], "int32"), {}, "one_hot_v2", {"depth": 7, "dtype": "float32"}),
        ("tile", ints(2, [2, 2]), {}, "tile", {"repeat_times": [2, 2]}),
        ("expand", full(2, 3.0, [2], "int64"), {}, "expand_v2", {"shape": [3, 3]}),
        ("pool2d", ints(2, [3, 3]), {"pooling_type": "avg"}, "pool2d", {"ksize": [3, 3], "exclusive": True}),
        ("cumsum", full(2, -1.0, [1], "int32"), {}, "cumsum", {"axis": -1, "flatten": False}),
        ("pad3d", ints(2, [1] * 6), {"pad_value": 1.0}, "pad3d", {"paddings": [1] * 6, "value": 1.0}),
    ],
)
def test_constant_operands_become_attributes(
    tmp_path: Path, name: str, operand: Json, attrs: Json, legacy: str, expected: Json
) -> None:
    program = load(tmp_path, [data(1, "x"), operand, op(f"1.{name}", [1, 2], [3], attrs), fetch(3)])
    (found,) = program.block.ops
    assert (found.type, found.original_type) == (legacy, f"pd_op.{name}")
    assert {key: found.attrs[key] for key in expected} == expected
    assert found.inputs == {"X": [program.inputs[0][1]]}


def test_computed_operands_keep_their_slots(tmp_path: Path) -> None:
    vector = {"#": "0.t_vec", "D": [tensor([1]), tensor([1])]}
    program = load(
        tmp_path,
        [
            data(1, "x"),
            data(2, "n"),
            full(3, 4.0, [1], "int64"),
            op("0.combine", [2, 3], [4], types=[vector]),
            op("1.reshape", [1, 4], [5]),
            op("1.tile", [5, 2], [6]),
            fetch(6),
        ],
    )
    reshape, tile = first(program, "reshape2"), first(program, "tile")
    assert reshape.inputs["ShapeTensor"] == [
        program.inputs[1][1],
        first(program, "fill_constant").outputs["Out"][0],
    ]
    assert tile.inputs["RepeatTimes"] == [program.inputs[1][1]]


@pytest.mark.parametrize(
    ("name", "attrs", "expected"),
    [
        ("transpose", {"perm": [1, 0]}, {"axis": [1, 0]}),
        ("leaky_relu", {"negative_slope": 0.1}, {"alpha": 0.1}),
        ("all", {"axis": [], "keepdim": False}, {"dim": [], "reduce_all": True}),
        ("logsumexp", {"axis": [1]}, {"axis": [1], "reduce_all": False}),
        ("tril", {"diagonal": 1}, {"lower": True, "diagonal": 1}),
        ("triu", {}, {"lower": False, "diagonal": 0}),
        ("cast", {"dtype": {"#": "1.a_dtype", "D": "float16"}}, {"out_dtype": "float16"}),
        ("argsort", {"dtype": {"#": "NULL"}}, {"axis": -1, "stable": False}),
        ("hardtanh", {"t_max": {"#": "0.a_f32", "VD": "INF"}}, {"t_max": float("inf"), "t_min": 0.0}),
        ("hardtanh", {"t_min": {"#": "0.a_f64", "VD": "-INF"}}, {"t_min": float("-inf")}),
        ("relu", {"struct_name": "/ReLU/", "op_role": -1}, {}),
    ],
)
def test_attributes(tmp_path: Path, name: str, attrs: Json, expected: Json) -> None:
    (found,) = load(tmp_path, [data(1, "x"), op(f"1.{name}", [1], [2], attrs), fetch(2)]).block.ops
    assert {key: found.attrs[key] for key in expected} == expected
    assert not {"struct_name", "op_role"} & found.attrs.keys()
    assert found.scope == attrs.get("struct_name", "")


def test_batch_norm_statistics(tmp_path: Path) -> None:
    inputs = [data(number, name) for number, name in enumerate("xmvsb", start=1)]
    norm = op("1.batch_norm_", [1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], {"data_format": "NHWC"})
    program = load(tmp_path, [*inputs, norm, op("1.add", [7, 8], [12]), fetch(6), fetch(12, 1)])
    found, total = program.block.ops
    values = dict(program.inputs)
    expected = {"X": "x", "Mean": "m", "Variance": "v", "Scale": "s", "Bias": "b"}
    assert {slot: [values[name]] for slot, name in expected.items()} == found.inputs
    assert found.attrs["data_layout"] == "NHWC"
    assert (total.inputs["X"], total.inputs["Y"]) == ([values["m"]], [values["v"]])


def test_absent_operands(tmp_path: Path) -> None:
    ops = [data(number, name) for number, name in enumerate("xow", start=1)]
    program = load(tmp_path, [*ops, op("1.deformable_conv", [1, 2, 3, 0], [4], {"groups": 1}), fetch(4)])
    (found,) = program.block.ops
    assert found.type == "deformable_conv_v1"
    assert found.inputs.keys() == {"Input", "Offset", "Filter"}


def test_in_place_operators_change_their_operand(tmp_path: Path) -> None:
    program = load(
        tmp_path,
        [
            data(1, "x"),
            op("1.increment_", [1], [2], {"value": 1.0}),
            op("1.relu", [1], [3]),
            op("1.increment_", [2], [4], {"value": 1.0}),
            fetch(3),
            fetch(1, 1),
        ],
    )
    one, relu, two = program.block.ops
    assert relu.inputs["X"] == two.inputs["X"] == one.outputs["Out"]
    assert program.outputs[1][1] is two.outputs["Out"][0]
    assert one.inputs["X"] == [program.inputs[0][1]]


def test_assign_value_in_place_of_a_constant(tmp_path: Path) -> None:
    values = op("1.assign_value_", [1], [2], {"shape": [2], "values": [1.0, 2.0]})
    program = load(tmp_path, [full(1, 0.0, [2]), values, fetch(1)])
    (found,) = program.block.ops
    assert (found.type, found.inputs, found.attrs["values"]) == ("assign_value", {}, [1.0, 2.0])
    assert program.outputs[0][1] is found.outputs["Out"][0]


def test_a_branch_that_changes_an_outer_value(tmp_path: Path) -> None:
    def region(*ops: Json) -> Json:
        return {"#": "region", "blocks": [{"#": "block", "args": [], "ops": list(ops)}]}

    change = region(op("1.increment_", [1], [3], {"value": 1.0}), op("2.yield", [], []))
    branch = op("1.if", [2], [], regions=[change, region(op("2.yield", [], []))])
    program = load(tmp_path, [data(1, "x"), data(2, "c"), branch, fetch(1)])
    (found,) = program.block.ops
    then, otherwise = found.blocks
    assert program.outputs[0][1] is found.outputs["Out"][0]
    assert then.results == then.ops[0].outputs["Out"]
    assert otherwise.results == [program.inputs[0][1]]


def test_split_and_slice_of_vectors(tmp_path: Path) -> None:
    vector = {"#": "0.t_vec", "D": [tensor([1]), tensor([1])]}
    program = load(
        tmp_path,
        [
            data(1, "x"),
            op("1.unbind", [1], [2], {"axis": 0}, types=[vector]),
            op("0.split", [2], [3, 4]),
            op("0.slice", [2], [5], {"index": 1}),
            op("1.add", [3, 5], [6]),
            fetch(6),
            fetch(4, 1),
        ],
    )
    unbind, total = program.block.ops
    left, right = unbind.outputs["Out"]
    assert (total.inputs["X"], total.inputs["Y"]) == ([left], [right])
    assert program.outputs[1][1] is right


def test_unknown_operators_keep_their_name(tmp_path: Path) -> None:
    ops = [data(1, "x"), op("3.my_op_", [1, 0, 1], [2, 3], {"answer": 42}), fetch(3)]
    (found,) = load(tmp_path, ops).block.ops
    assert (found.type, found.original_type) == ("my_op", "custom_op.my_op_")
    assert found.inputs.keys() == {"0", "2"}
    assert found.outputs.keys() == {"0", "1"}
    assert found.attrs == {"answer": 42}


@pytest.mark.parametrize("name", ["1.relu_grad", "1.adam_", "1.sgd_", "2.tuple_push"])
def test_training_programs_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFormatError, match=r"training program.*paddle\.jit\.save"):
        load(tmp_path, [data(1, "x"), op(name, [1], [2]), fetch(2)])


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ([data(1, "x"), op("1.relu", [9], [2]), fetch(2)], r"operator 1 \(pd_op.relu\): reads the value 9"),
        ([data(1, "x")], "no outputs"),
        ([data(1, "x"), op("1.relu", [1, 1], [2]), fetch(2)], "2 operands, expected at most 1"),
        ([data(1, "x"), op("1.while", [1], []), fetch(1)], "0 regions, expected 1"),
        ([data(1, "x"), {**data(2, "y"), "A": [{"N": "name"}]}, fetch(1)], "'AT' is missing"),
        ([{**data(1, "x"), "O": [{"%": "a"}]}, fetch(1)], "no reference to a value|is missing"),
    ],
)
def test_inconsistent_programs(tmp_path: Path, ops: list[Json], message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        load(tmp_path, ops)


def test_table_of_names() -> None:
    for pir, entry in PIR_NAMES.items():
        assert find_name(pir) is entry
        slots = [operand.slot for operand in entry.operands if operand.slot]
        assert len(slots) == len(set(slots)), pir
        assert all(operand.kind in ("", "int", "ints", "float") for operand in entry.operands), pir
        assert all((operand.attribute is None) == (operand.kind == "") for operand in entry.operands), pir
    assert find_name("relu_") is find_name("relu")
    assert find_name("no_such_operator") is None
