"""Pictures as inputs: without Pillow, commands say so before they read the model."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from lite_tools.cli import main
from lite_tools.commands import picture_files
from lite_tools.commands.exit_codes import EXIT_UNAVAILABLE


@pytest.mark.parametrize("command", [["run"], ["bench"], ["convert", "-o", "out.lite"]])
@pytest.mark.parametrize("given", ["picture.png", "x=picture.JPG"])
def test_a_missing_pillow_is_named_before_the_model_is_read(
    command: list[str], given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    def without_pillow(name: str, *package: str) -> ModuleSpec | None:
        return None if name == "PIL" else importlib.util.find_spec(name, *package)

    monkeypatch.setattr(picture_files, "find_spec", without_pillow)
    monkeypatch.chdir(tmp_path)
    try:
        code = main([*command, "no_such_model.onnx", "-i", given])
    except SystemExit as ended:
        code = ended.code
    told = capsys.readouterr().err
    assert code == EXIT_UNAVAILABLE
    assert f"--input {given}: reading pictures needs Pillow, which is not installed" in told
    assert "next: pip install 'lite-core[images]'" in told
