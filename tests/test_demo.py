"""The demo and the example it shows, as a user types them."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples/ocr"
BEST = "x86" if platform.machine() in ("x86_64", "AMD64") else "host"


def lite(*arguments: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def expected_lines() -> list[str]:
    return (EXAMPLE / "picture.txt").read_text().splitlines()


def test_demo_reads_the_shipped_picture(tmp_path: Path) -> None:
    out = tmp_path / "annotated.png"
    shown = lite("demo", "--output", out, "--json")
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert [line["text"] for line in data["lines"]] == expected_lines()
    assert min(line["score"] for line in data["lines"]) > 0.9
    assert [p["part"] for p in data["parts"]] == ["detection", "orientation", "recognition"]
    assert all(p["backend"] == BEST and p["seconds"] > 0 for p in data["parts"])
    import cv2

    sheet = cv2.imread(str(out))
    assert sheet is not None
    assert sheet.shape[1] > 640  # the picture and, beside it, what was read


def test_example_runs_by_itself(tmp_path: Path) -> None:
    out = tmp_path / "annotated.png"
    command = [sys.executable, EXAMPLE / "ocr.py", EXAMPLE / "picture.png", "--output", out]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert all(line in shown.stdout for line in expected_lines())
    assert out.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("text.png",), 2, "'text.png' is not a picture that can be read"),
        (("nowhere.png",), 2, "there is no file 'nowhere.png'"),
        (("--output", "nowhere/out.png"), 2, "there is no folder 'nowhere'"),
        (("--output", "out.xyz"), 2, "'out.xyz' must end in .png or .jpg"),
        (("--output", "."), 2, "'.' is a folder"),
        (("--models", "nowhere"), 2, "Directory 'nowhere' does not exist"),
        (("--models", "."), 3, "expected exactly one file *det*/*.pdmodel, found none"),
        (("--backend", "arm"), 3, "backend 'arm' is not installed"),
    ],
)
def test_demo_errors_come_before_the_work(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    (tmp_path / "text.png").write_text("this is not a picture")
    shown = lite("demo", *arguments, folder=tmp_path)
    assert (shown.returncode, "Traceback" in shown.stderr) == (code, False), shown.stderr
    assert message in shown.stderr
    assert "next: lite" in shown.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["text.png"]
