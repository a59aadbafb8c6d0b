"""Shapes that stand for several sizes, and the sizes around a prepared one."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from test_convert import Toy, network

from lite_core import GraphBuilder, convert
from lite_core.errors import InputError
from lite_core.plugins import plugins_with
from lite_tools.cli.convert import parse_signatures
from lite_tools.commands.braces import BracesError, expand_braces
from lite_tools.conversion.other_sizes import nearby_shapes
from lite_tools.conversion.several_shapes import MOST_SHAPES, single_shapes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1x3", ["x=1x3"]),
        ("{1,2}x{32..96:32}", ["1x32", "1x64", "1x96", "2x32", "2x64", "2x96"]),
        ("x={1..3}", ["x=1", "x=2", "x=3"]),
        ("{1, 2,8..24:8,8}", ["1", "2", "8", "16", "24"]),
        ("{5..9:3}", ["5", "8"]),
    ],
)
def test_braces_stand_for_every_combination(text: str, expected: list[str]) -> None:
    assert expand_braces(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1x{2", "do not match"),
        ("1x2}", "do not match"),
        ("{}", "write sizes like"),
        ("{a}", "{a}"),
        ("{-1}", "{-1}"),
        ("{1..}", "{1..}"),
        ("{3..1}", "{3..1} lists no sizes"),
        ("{1..3:0}", "{1..3:0} lists no sizes"),
        ("{1..99999999999999999}", f"more than {MOST_SHAPES}"),
        ("{1..20}x{1..20}", f"more than {MOST_SHAPES}"),
        ("{" + "9" * 5000 + "}", "write sizes like"),
    ],
)
def test_nonsense_in_braces_is_refused(text: str, message: str) -> None:
    with pytest.raises(BracesError) as error:
        expand_braces(text)
    assert message in str(error.value)


def test_the_command_line_combines_the_shapes_of_inputs() -> None:
    types = {value.name: value.type for value in network("n", "k").inputs}
    assert parse_signatures(types, ["{1,2}x3", "5x{3..4}"]) == [{"x": s} for s in ((1, 3), (2, 3), (5, 3), (5, 4))]
    with pytest.raises(click.BadParameter, match="write sizes like"):
        parse_signatures(types, ["{x}x3"])


def test_dimensions_may_be_lists_and_ranges_in_python(tmp_path: Path) -> None:
    report = convert(
        network("n", 3), tmp_path / "m.lite", "toy", shapes={"x": (range(1, 4), 3)}, plugins=plugins_with(Toy())
    )
    assert [plan["x"] for plan in report.targets[0].plans] == [(1, 3), (2, 3), (3, 3)]
    assert [*single_shapes({"a": ([1, 2], 3), "b": (5,)})] == [{"a": (1, 3), "b": (5,)}, {"a": (2, 3), "b": (5,)}]
    for shapes, message in (
        ({"a": ([1, 2],), "b": ([1, 2, 3],)}, "a 2"),
        ({"a": ([],)}, "'a' has 0"),
        ({"a": (range(9999),)}, "9999"),
    ):
        with pytest.raises(InputError, match=message):
            [*single_shapes(shapes)]  # type: ignore[arg-type]


def test_nearby_shapes_change_every_open_dimension_and_no_other() -> None:
    b = GraphBuilder("net")
    x, y = b.input("x", "float32", ["n", 3, "w"]), b.input("y", "float32", ["n", "w"])
    b.output(b.add("Add", [b.add("ReduceSum", [x, b.ints(1)], {"keepdims": 0}), y]), "z")
    found = nearby_shapes(b.build(), {"x": (1, 3, 64), "y": (1, 64)})
    assert len(found) < 100
    assert {shapes["x"][1] for shapes in found} == {3}
    assert all(shapes["y"] == (shapes["x"][0], shapes["x"][2]) for shapes in found)
    assert {(2, 3, 64), (1, 3, 65), (1, 3, 128)} < {shapes["x"] for shapes in found}
    assert any(shapes["x"][0] > 1 and shapes["x"][2] != 64 for shapes in found)
    assert nearby_shapes(network(2, 3), {"x": (2, 3)}) == []
