"""The demo and its example, with the arguments of a user."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from lite_paddle.demo import LINES

ROOT = Path(__file__).parents[1]
BEST = "x86" if platform.machine() in ("x86_64", "AMD64") else "host"


def lite(*arguments: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def expected_lines() -> list[str]:
    return LINES.read_text().splitlines()


def test_demo_reads_the_shipped_picture(tmp_path: Path) -> None:
    out = tmp_path / "annotated.png"
    completed = lite("demo", "--output", out, "--json")
    assert completed.returncode == 0, completed.stderr
    data = json.loads(completed.stdout)
    assert [line["text"] for line in data["lines"]] == expected_lines()
    assert min(line["score"] for line in data["lines"]) > 0.9
    assert [p["part"] for p in data["parts"]] == ["detection", "orientation", "recognition"]
    assert all(p["backend"] == BEST and p["seconds"] > 0 for p in data["parts"])
    import cv2

    sheet = cv2.imread(str(out))
    assert sheet is not None
    assert sheet.shape[1] > 640  # the picture and, beside it, the recognised text


def test_example_runs_by_itself(tmp_path: Path) -> None:
    out = tmp_path / "annotated.png"
    command = [sys.executable, ROOT / "examples/ocr/ocr.py", "--output", out]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    assert all(line in completed.stdout for line in expected_lines())
    assert out.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("text.png",), 2, "'text.png'"),
        (("nowhere.png",), 2, "'nowhere.png'"),
        (("--output", "nowhere/out.png"), 2, "'nowhere'"),
        (("--output", "out.xyz"), 2, "'out.xyz'"),
        (("--output", "."), 2, "'.'"),
        (("--models", "nowhere"), 2, "'nowhere'"),
        (("--models", "."), 3, "*det*/*.pdmodel"),
        (("--backend", "arm"), 3, "'arm'"),
    ],
)
def test_demo_errors_come_before_the_work(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    (tmp_path / "text.png").write_text("this is not a picture")
    completed = lite("demo", *arguments, folder=tmp_path)
    assert (completed.returncode, "Traceback" in completed.stderr) == (code, False), completed.stderr
    assert message in completed.stderr
    assert "next: lite" in completed.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["text.png"]
