"""Damaged files: the reader returns a program or raises ModelFormatError, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lite_core.errors import ModelFormatError
from lite_paddle.reader import read, sniff
from lite_paddle.source import SourceProgram

FIXTURES = Path(__file__).parent / "fixtures"
FILES = sorted(path for path in FIXTURES.glob("*/*/model*") if path.suffix != ".pyc")
IDS = ["-".join(path.parts[-3:]) for path in FILES]


@pytest.fixture
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bytes], SourceProgram | None]:
    """Return a function that replaces one file of a model and reads the model."""
    original: Path = request.param
    for file in original.parent.glob("model*"):
        shutil.copy(file, tmp_path)
    program = next(path for path in tmp_path.iterdir() if path.suffix in (".json", ".pdmodel"))

    def read_with(data: bytes) -> SourceProgram | None:
        # A new file each time: a mapping of the old one may still exist.
        (tmp_path / original.name).unlink()
        (tmp_path / original.name).write_bytes(data)
        sniff(program)
        try:
            return read(program)
        except ModelFormatError:
            return None

    return read_with


@pytest.mark.parametrize("damaged", FILES, ids=IDS, indirect=True)
def test_truncated(damaged: Callable[[bytes], SourceProgram | None], request: pytest.FixtureRequest) -> None:
    data = request.node.callspec.params["damaged"].read_bytes()
    lengths = sorted({*range(min(len(data), 64)), *range(0, len(data), 97), len(data) - 1})
    assert [length for length in lengths if damaged(data[:length]) is not None] == []
    assert damaged(data) is not None


@pytest.mark.parametrize("damaged", FILES, ids=IDS, indirect=True)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    position=st.floats(0, 1, exclude_max=True),
    replacement=st.binary(min_size=1, max_size=6),
    cut=st.integers(0, 4),
)
def test_bytes_changed(
    damaged: Callable[[bytes], SourceProgram | None],
    request: pytest.FixtureRequest,
    position: float,
    replacement: bytes,
    cut: int,
) -> None:
    data = request.node.callspec.params["damaged"].read_bytes()
    start = int(position * len(data))
    damaged(data[:start] + replacement + data[start + cut :])


@pytest.mark.parametrize("damaged", [f for f in FILES if f.suffix == ".json"], indirect=True)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    position=st.integers(0, 400),
    value=st.sampled_from(["0", "-1", "null", "[]", "{}", '"x"', "true", "1e999", "99999999999999999999", '{"%":0}']),
)
def test_json_values_replaced(
    damaged: Callable[[bytes], SourceProgram | None], request: pytest.FixtureRequest, position: int, value: str
) -> None:
    text = request.node.callspec.params["damaged"].read_text()
    starts = [index for index, character in enumerate(text) if character == ":"]
    start = starts[position % len(starts)] + 1
    # The value after the colon: up to its matching end.
    end, depth = start, 0
    while depth or text[end] not in ",}]":
        depth += (text[end] in "[{") - (text[end] in "]}")
        end += 1
    damaged((text[:start] + value + text[end:]).encode())


def test_deeply_nested_json(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"base_code":{"magic":"pir","version":1},"program":' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(ModelFormatError, match=r"nested too deeply|not valid JSON"):
        read(path)
