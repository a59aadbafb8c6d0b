"""Following a worked page: its files are written and its commands typed, block by block, in the page's order.

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

__all__ = [
    "FILES",
    "Block",
    "PageRunner",
    "blocks",
    "commands",
    "is_progress",
    "matches",
    "replaced",
    "target_of",
    "without_numbers",
]

#: Languages of blocks that are files; a block of commands is ``console``.
FILES = ("python", "toml", "sh")
#: First line of a block: the path of its file, and optionally the function, class or TOML key that it replaces.
_TARGET = re.compile(r"# (?P<path>\S+?)(?:, replaces `(?P<name>[\w-]+)`)?")
_PROGRAMS = {"lite": "lite_core", "lite-conformance": "lite_conformance", "pytest": "pytest", "mypy": "mypy"}
_INSTALL = "pip install --quiet -e "
_UNINSTALL = "pip uninstall --quiet --yes "
#: Variables of the caller that change what commands print.
_UNSET = ("COLUMNS", "FORCE_COLOR", "LITE_LOG", "LITE_BACKEND", "LITE_BACKENDS", "LITE_PLUGINS", "PYTEST_ADDOPTS")


@dataclass(frozen=True)
class Block:
    """A code block of the page: its language, its text and the line where it begins."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [Block(m[1], m[2], page.count("\n", 0, m.start()) + 1) for m in found]


def target_of(block: Block) -> tuple[str, str | None]:
    """Return the path that the first line of a file's block names, and the part of that file that it replaces."""
    first = block.text.partition("\n")[0]
    target = _TARGET.fullmatch(first)
    assert target is not None, f"line {block.line}: a block of a file begins with its name, not with {first!r}"
    return target["path"], target["name"]


class PageRunner:
    """Follows a page in a separate environment, which also sees the packages of this one."""

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
        self._environment = dict(
            os.environ,
            PATH=f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            PYTHONDONTWRITEBYTECODE="1",
            LITE_CONFIG_DIR=str(folder / "configuration"),
        )
        for variable in _UNSET:
            self._environment.pop(variable, None)

    def write(self, block: Block) -> None:
        path, name = target_of(block)
        file = self.folder / path
        if name is None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        else:
            file.write_text(replaced(file.read_text(), name, block.text.partition("\n")[2]))

    def run_command(self, command: str) -> str:
        """Run a command and return its output, whether it fails or not."""
        if command.startswith(_INSTALL):
            self._install(self.folder / shlex.split(command)[-1].partition("[")[0])
            return ""
        if command.startswith(_UNINSTALL):
            self._uninstall(command.removeprefix(_UNINSTALL))
            return ""
        shown = subprocess.run(
            ["sh", "-c", f"{command}\npwd > {shlex.quote(str(self._folder_now))}"],
            cwd=self.folder,
            env=self._environment,
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
        project = project.resolve()
        out = self._packages.parent / "wheels"
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(project)]
        subprocess.run(build, check=True, capture_output=True)
        with zipfile.ZipFile(next(out.glob(f"{project.name.replace('-', '_')}-*.whl"))) as wheel:
            wheel.extractall(self._packages, [n for n in wheel.namelist() if ".dist-info/" in n])
        (self._packages / f"editable_{project.name}.pth").write_text(str(project / "src"))

    def _uninstall(self, distribution: str) -> None:
        """Emulate ``pip uninstall`` of a package that this runner installed."""
        (information,) = self._packages.glob(f"{distribution.replace('-', '_')}-*.dist-info")
        information.rename(self._packages.parent / information.name)
        (self._packages / f"editable_{distribution}.pth").unlink()


def replaced(source: str, name: str, new: str) -> str:
    """Replace one function, class or assignment in Python source, or the value of a key in TOML."""
    key = re.search(rf"^{re.escape(name)}(: .+)? = ", source, re.MULTILINE)
    if key is not None:
        end = key.end()
        while source[key.start() : end].count("[") != source[key.start() : end].count("]") or source[end - 1] != "\n":
            end = source.index("\n", end) + 1
        return source[: key.start()] + new + source[end:]
    (old,) = (n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    lines = source.splitlines(keepends=True)
    first = min([old.lineno, *(d.lineno for d in getattr(old, "decorator_list", ()))])
    return "".join([*lines[: first - 1], new, *lines[old.end_lineno :]])


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Iterate over the commands of a console block, each with the output shown below it."""
    assert block.text.startswith("$ "), f"line {block.line}: a console block begins with a command"
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def matches(shown: str, printed: str) -> bool:
    """Return True if the page shows what was printed."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in _normalized(shown)
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in _normalized(printed))) is not None


def _normalized(text: str) -> list[str]:
    """Return the lines with single spaces, without those that tell the progress on a slow machine."""
    return [" ".join(line.split()) for line in text.rstrip().splitlines() if not is_progress(line)]


def is_progress(line: str) -> bool:
    """Return True for a line that the conformance suite prints from time to time while it runs."""
    return re.match(r"\d+ of \d+ cases \(", line) is not None


def without_numbers(text: str) -> str:
    """Return an output with 0 for each number, to compare outputs of different machines."""
    return re.sub(r"(?<![.\w])-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "0", text)
