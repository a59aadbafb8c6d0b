"""The tutorial "Write a backend" works: its files are written and its commands run, block by block, in its order.

The output of each command is compared with the output on the page. There, ``...`` stands for any text within a line,
and on a separate line for any number of lines; runs of spaces count as one.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import site
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.full("packages")

PAGE = Path(__file__).parents[1] / "docs/backend-tutorial.md"
#: First line of a block: the path of its file, and optionally the function or class that it replaces.
_TARGET = re.compile(r"# (?P<path>\S+?)(?:, replaces `(?P<name>\w+)`)?")
_FILES = ("python", "toml", "sh")
_PROGRAMS = {"lite": "lite_core", "lite-conformance": "lite_conformance", "pytest": "pytest"}


@dataclass(frozen=True)
class Block:
    """A code block of the page: its language, its text and the line where it begins."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [Block(m[1], m[2], page.count("\n", 0, m.start()) + 1) for m in found]


class TutorialRunner:
    """Follows the page in a separate environment, which also sees the packages of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self.folder.mkdir()
        environment = folder / "environment"
        venv.create(environment, with_pip=False)
        self._bin = environment / "bin"
        self._packages = next((environment / "lib").glob("python*/site-packages"))
        added = [f"import site; site.addsitedir({path!r})" for path in site.getsitepackages()]
        (self._packages / "packages_of_the_tests.pth").write_text("\n".join(added))
        for program, module in _PROGRAMS.items():
            script = self._bin / program
            script.write_text(f'#!/bin/sh\nexec "{self._bin}/python" -m {module} "$@"\n')
            script.chmod(0o755)
        self._folder_now = folder / "folder_now"

    def write(self, block: Block) -> None:
        first, _, rest = block.text.partition("\n")
        target = _TARGET.fullmatch(first)
        assert target is not None, f"line {block.line}: a block of a file begins with its name, not with {first!r}"
        file = self.folder / target["path"]
        if target["name"] is None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        else:
            file.write_text(replaced(file.read_text(), target["name"], rest))

    def run_command(self, command: str) -> str:
        """Run a command and return its output, whether it fails or not."""
        if command.startswith("pip install --quiet -e "):
            self._install(self.folder / shlex.split(command)[-1].partition("[")[0])
            return ""
        environment = dict(os.environ, PATH=f"{self._bin}{os.pathsep}{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1")
        for variable in ("COLUMNS", "FORCE_COLOR", "LITE_LOG", "LITE_BACKEND", "LITE_BACKENDS", "PYTEST_ADDOPTS"):
            environment.pop(variable, None)
        shown = subprocess.run(
            ["sh", "-c", f"{command}\npwd > {shlex.quote(str(self._folder_now))}"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        self.folder = Path(self._folder_now.read_text().strip())
        return shown.stdout

    def _install(self, project: Path) -> None:
        """Emulate ``pip install -e`` without an index: the package's metadata, and a pointer to its sources."""
        out = self._packages.parent / "wheels"
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(project)]
        subprocess.run(build, check=True, capture_output=True)
        with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
            wheel.extractall(self._packages, [n for n in wheel.namelist() if ".dist-info/" in n])
        (self._packages / f"editable_{project.name}.pth").write_text(str((project / "src").resolve()))


def replaced(source: str, name: str, new: str) -> str:
    """Replace one function or class in Python source."""
    (old,) = (n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: old.lineno - 1], new, *lines[old.end_lineno :]])


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Iterate over the commands of a console block, each with the output shown below it."""
    assert block.text.startswith("$ "), f"line {block.line}: a console block begins with a command"
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def matches(shown: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in normalized(shown)
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in normalized(printed))) is not None


def normalized(text: str) -> list[str]:
    """Return the lines with single spaces, without those that tell the progress on a slow machine."""
    lines = [" ".join(line.split()) for line in text.rstrip().splitlines()]
    return [line for line in lines if not re.match(r"\d+ of \d+ cases \(", line)]


def test_every_block_of_the_tutorial_does_what_the_page_says(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    runner = TutorialRunner(tmp_path)
    done = 0
    for block in blocks(page):
        if block.language in _FILES:
            runner.write(block)
        elif block.language == "console":
            for command, shown in commands(block):
                printed = runner.run_command(command)
                assert matches(shown, printed), (
                    f"{PAGE.name}, line {block.line}: `{command}` printed\n{printed}\nwhere the page shows\n{shown}"
                )
        else:
            pytest.fail(f"line {block.line}: unknown kind of block: {block.language!r}")
        done += 1
    assert done == page.count("\n```") / 2
    assert done


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a  b\n", "a b\n", True),
        ("a ... c\n", "a b c\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("took ... s\n", "took 1 m\n", False),
        ("a.b\n", "aXb\n", False),
    ],
)
def test_output_is_compared(shown: str, printed: str, expected: bool) -> None:
    assert matches(shown, printed) is expected


def test_one_function_is_replaced() -> None:
    source = "import os\n\n\ndef a():\n    return 1\n\n\nclass B:\n    x = 2\n"
    assert replaced(source, "a", "def a():\n    return 3\n") == source.replace("return 1", "return 3")
    assert replaced(source, "B", "B = 5\n") == source.replace("class B:\n    x = 2\n", "B = 5\n")
