"""Who may import whom, how large files may grow, and what counts as public."""

from __future__ import annotations

import ast
import importlib
import io
import pkgutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import lite_core

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core/src/lite_core"
PADDLE = ROOT / "plugins/lite_paddle/src/lite_paddle"
CPU = ROOT / "plugins/lite_cpu/src/lite_cpu"
X86 = ROOT / "plugins/lite_x86/src/lite_x86"
OPENCL = ROOT / "plugins/lite_opencl/src/lite_opencl"
ONNX = ROOT / "plugins/lite_onnx/src/lite_onnx"
ONNXRUNTIME = ROOT / "plugins/lite_onnxruntime/src/lite_onnxruntime"
CONFORMANCE = ROOT / "conformance/src/lite_conformance"

# From the ground up: a room imports only rooms above it in this list. `errors` and `log` belong to all.
ROOMS = [
    "errors",
    "log",
    "disk_cache",
    "collector",
    "ir",
    "ops",
    "builder",
    "random_inputs",
    "passes",
    "quantization",
    "arena",
    "host_memory",
    "backend",
    "kernel_backend",
    "builtin",
    "plugins",
    "schedule",
    "fusion",
    "staging",
    "container",
    "formats",
    "arguments",
    "prepared",
    "session",
    "conversion",
    "diagnostics",
    "cli",
]
PLUGINS = {
    "lite_paddle",
    "lite_onnx",
    "lite_onnxruntime",
    "lite_cpu",
    "lite_x86",
    "lite_arm",
    "lite_opencl",
    "lite_conformance",
}
THIRD_PARTY_OF_CONFORMANCE = {"numpy", "google", "click", "rich", "hypothesis", "pytest", "onnx", "tomli"}
THIRD_PARTY_OF_CPU = {"numpy", "llvmlite", "ml_dtypes"}
THIRD_PARTY_OF_X86 = {"numpy", "llvmlite"}
THIRD_PARTY_OF_OPENCL = {"numpy", "pyopencl"}
THIRD_PARTY_OF_ONNXRUNTIME = {"numpy", "onnxruntime"}
THIRD_PARTY_OF_ONNX = {"numpy", "onnx", "google", "ml_dtypes"}
THIRD_PARTY_OF_CORE = {"numpy", "packaging", "ml_dtypes", "pluggy", "click", "rich", "platformdirs", "PIL"}


def imports_of(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def room_of(file: Path) -> str:
    return file.relative_to(CORE).parts[0].removesuffix(".py")


CORE_FILES = sorted(CORE.rglob("*.py"))
CONFORMANCE_FILES = sorted(CONFORMANCE.rglob("*.py"))
CPU_FILES = sorted(CPU.rglob("*.py"))
X86_FILES = sorted(X86.rglob("*.py"))
OPENCL_FILES = sorted(OPENCL.rglob("*.py"))
ONNX_FILES = sorted(ONNX.rglob("*.py"))
ONNXRUNTIME_FILES = sorted(ONNXRUNTIME.rglob("*.py"))
PADDLE_FILES = sorted(f for f in PADDLE.rglob("*.py") if "examples" not in f.relative_to(PADDLE).parts)


@pytest.mark.parametrize("file", CORE_FILES, ids=lambda f: str(f.relative_to(CORE)))
def test_core_imports_no_plugin_and_nothing_heavy(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    assert not roots & PLUGINS
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core"}
    assert foreign <= THIRD_PARTY_OF_CORE


@pytest.mark.parametrize("file", CORE_FILES, ids=lambda f: str(f.relative_to(CORE)))
def test_a_room_imports_only_rooms_above_it(file: Path) -> None:
    room = room_of(file)
    if room in ("__init__", "__main__"):
        return
    assert room in ROOMS, f"{room} is a new room: give it a place in ROOMS and in docs/architecture.md"
    used = {name.split(".")[1] for name in imports_of(file) if name.startswith("lite_core.")}
    below = {r for r in used if r in ROOMS and ROOMS.index(r) > ROOMS.index(room)}
    assert not below, f"{file.name} of room {room} imports {below}"


@pytest.mark.parametrize("file", PADDLE_FILES, ids=lambda f: str(f.relative_to(PADDLE)))
def test_lite_paddle_imports_the_core_and_never_paddle(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    assert "paddle" not in roots
    assert not roots & (PLUGINS - {"lite_paddle"})


@pytest.mark.parametrize("file", CPU_FILES, ids=lambda f: str(f.relative_to(CPU)))
def test_lite_cpu_imports_the_core_only(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core", "lite_cpu"}
    assert foreign <= THIRD_PARTY_OF_CPU


@pytest.mark.parametrize("file", X86_FILES, ids=lambda f: str(f.relative_to(X86)))
def test_lite_x86_imports_the_core_and_lite_cpu(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core", "lite_cpu", "lite_x86"}
    assert foreign <= THIRD_PARTY_OF_X86


@pytest.mark.parametrize("file", OPENCL_FILES, ids=lambda f: str(f.relative_to(OPENCL)))
def test_lite_opencl_imports_the_core_only(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core", "lite_opencl"}
    assert foreign <= THIRD_PARTY_OF_OPENCL


@pytest.mark.parametrize("file", ONNX_FILES, ids=lambda f: str(f.relative_to(ONNX)))
def test_lite_onnx_imports_the_core_only(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core", "lite_onnx"}
    assert foreign <= THIRD_PARTY_OF_ONNX


@pytest.mark.parametrize("file", ONNXRUNTIME_FILES, ids=lambda f: str(f.relative_to(ONNXRUNTIME)))
def test_lite_onnxruntime_imports_the_core_and_lite_onnx(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core", "lite_onnx", "lite_onnxruntime"}
    assert foreign <= THIRD_PARTY_OF_ONNXRUNTIME


@pytest.mark.parametrize("file", CONFORMANCE_FILES, ids=lambda f: str(f.relative_to(CONFORMANCE)))
def test_conformance_imports_the_core_only(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imports_of(file)}
    assert not roots & (PLUGINS - {"lite_conformance"})
    foreign = roots - set(sys.stdlib_module_names) - {"lite_core", "lite_conformance", "tomllib"}
    assert foreign <= THIRD_PARTY_OF_CONFORMANCE


def test_no_file_is_over_800_lines() -> None:
    sources = [*CORE_FILES, *PADDLE_FILES, *CPU_FILES, *X86_FILES, *OPENCL_FILES, *ONNX_FILES, *ONNXRUNTIME_FILES]
    sources += CONFORMANCE_FILES
    files = [*sources, *(f for tests in ("", "*/", "plugins/*/") for f in ROOT.glob(f"{tests}tests/**/*.py"))]
    assert not {f.name: n for f in files if (n := len(f.read_text().splitlines())) > 800}


def code_lines(file: Path) -> int:
    """Lines that hold code: no docstrings, comments or blanks."""
    source = file.read_text()
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documentation.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in ignored:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


#: Rooms that grow by one file for each operator, pass or command, and tools that no run of a model needs.
NOT_OF_A_RUN = {"ops", "passes", "builder", "random_inputs", "quantization", "conversion", "diagnostics", "cli"}
#: What backends are made of; the core itself does not use it.
FOR_BACKENDS = {"kernel_backend", "fusion", "staging", "disk_cache"}


def test_the_core_stays_small() -> None:
    """What loads, schedules and runs a model stays under 5,000 lines of code."""
    assert sum(code_lines(f) for f in CORE_FILES if room_of(f) not in NOT_OF_A_RUN | FOR_BACKENDS) < 5000


def test_the_core_does_not_use_what_it_has_for_backends() -> None:
    used = {name.split(".")[1] for f in CORE_FILES for name in imports_of(f) if name.startswith("lite_core.")}
    assert used & (FOR_BACKENDS - {"kernel_backend"}) == set()


def modules(package: str) -> list[str]:
    root = importlib.import_module(package)
    found = [m.name for m in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return [package, *(m for m in found if not m.endswith("__main__") and ".examples" not in m)]


PACKAGES = (
    "lite_core",
    "lite_conformance",
    "lite_paddle",
    "lite_cpu",
    "lite_x86",
    "lite_opencl",
    "lite_onnx",
    "lite_onnxruntime",
)


@pytest.mark.parametrize("name", [module for package in PACKAGES for module in modules(package)])
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        home = getattr(thing, "__module__", name)
        if callable(thing) and home.startswith(PACKAGES):
            assert thing.__doc__, f"{name}.{public} has no docstring"


def test_lazy_names_are_the_public_names() -> None:
    assert {*lite_core._HOMES, "__version__"} == set(lite_core.__all__)
    for name, home in lite_core._HOMES.items():
        assert getattr(lite_core, name) is getattr(importlib.import_module(f"lite_core.{home}"), name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = lite_core.nonsense


def test_importing_the_core_imports_no_plugin_and_not_even_numpy() -> None:
    code = (
        "import sys, lite_core; print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'lite_paddle', 'click')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_importing_a_cpu_package_imports_neither_numpy_nor_a_compiler() -> None:
    code = "import sys, lite_cpu, lite_x86; print([m for m in ('numpy', 'llvmlite') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
