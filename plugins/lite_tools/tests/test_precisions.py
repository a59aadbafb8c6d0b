"""The option ``--precision``: for all nodes, and for some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.schedule.precision import Precision
from lite_tools.cli.convert import command as convert_command
from lite_tools.precisions import parse_precisions, precision_words, precisions_in
from lite_tools.writing import write_model


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], None),
        (["float16"], "float16"),
        (["softmax_*=float32"], {"softmax_*": "float32"}),
        (["float16", "a=b=float32", "c=bfloat16"], {"*": "float16", "a=b": "float32", "c": "bfloat16"}),
    ],
)
def test_texts_and_words(texts: list[str], found: Any) -> None:
    assert parse_precisions(texts) == found
    words = precision_words(Precision.of(found or "float32"))
    assert words == [word for text in texts for word in ("--precision", text)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["half"], "float32, float16, bfloat16.*'half'"),
        (["softmax="], "NAME=PRECISION.*'softmax='"),
        (["float16", "float32"], "two precisions: float16 and float32"),
        (["a=float16", "a=float32"], "'a' has two precisions"),
    ],
)
def test_wrong_texts(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_precisions(texts)


def test_precisions_that_occur() -> None:
    assert precisions_in(Precision.of({"a": "float16"})) == {"float16", "float32"}


def test_converted_file_keeps_the_precision_of_the_command_line(tmp_path: Path) -> None:
    b = GraphBuilder("network")
    b.output(b.add("Exp", [b.add("Relu", [b.input("x", "float32", [2])], name="first")], name="second"), "y")
    model, output = tmp_path / "model.lite", tmp_path / "output.lite"
    write_model(model, b.build())
    words = ["--targets", "host", "--precision", "float16", "--precision", "first=float32"]
    result = CliRunner().invoke(convert_command, [str(model), "-o", str(output), *words], catch_exceptions=False)
    assert result.exit_code == 0
    assert load(output).planner.precision == Precision("float16", (("first", "float32"),))
    result = CliRunner().invoke(convert_command, [str(model), "-o", str(output), "--precision", "first=half"])
    assert result.exit_code == 2
    assert "'first=half'" in result.output
