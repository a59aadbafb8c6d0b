"""The command `lite plugins validate`, on wheels written here: one that is as it must be, and one with every fault."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import installed_plugins
import pytest
from click.testing import CliRunner

from lite_core.errors import InputError
from lite_tools.cli.plugins import command
from lite_tools.examining.watching import Effect, watched
from lite_tools.validating import Finding, validate_package
from lite_tools.validating.content_checks import content_findings
from lite_tools.validating.metadata_checks import metadata_findings
from lite_tools.validating.name_checks import name_findings
from lite_tools.validating.package import opened_package

GOOD = installed_plugins.GOOD.replace("{name}", "acme")

FAULTY = """
import os, threading, time
import matplotlib_stand_in.a
from lite_core import KernelBackend, hookimpl, ops
from lite_core.ir import DType
from lite_core.ops.inference import same_as_first

LITE_API_VERSION = (1, 3)
print("hello from acme")
os.environ["ACME_WAS_HERE"] = "1"
threading.Thread(target=time.sleep, args=(60,), daemon=True, name="acme-worker").start()

class Executable:
    scratch_bytes = 0
    def run(self, inputs): ...

class Backend(KernelBackend):
    def supports(self, node): ...
    def restor(self): ...

class Compiling(KernelBackend):
    def compile(self, part, device, options):
        return Executable()

class Format:
    name, suffixes = "Acme Format", (".acme",)
    def sniff(self): ...
    def read(self, path, required): ...

class Pass:
    name = "acme-pass"
    def __call__(self): ...

compiling = Compiling("acme")
compiling.kernel("Relu")(lambda x, *, out: None)

@hookimpl
def lite_backends():
    return [Backend("x86"), compiling]

def lite_formats():
    return [Format()]

def lite_format():
    return []

@hookimpl
def lite_passes():
    return [Pass()]

@hookimpl
def lite_ops():
    return [ops.define(lambda x: x, "squish", "X: T -> Y: T", types={"T": [DType.FLOAT32]}, attributes={"slope": 1.0},
                       infer=lambda: [], domain="com.microsoft")]
"""

METADATA = """Metadata-Version: 2.4
Name: lite-acme
Version: 1.0
Summary: Acme
License-Expression: MIT
Requires-Python: >=3.10
Requires-Dist: lite-core>=0.1,<0.2
Classifier: Programming Language :: Python :: 3
Project-URL: Issues, https://example.com/issues

The README.
"""
ENTRY_POINTS = "[lite.plugins]\nacme = lite_acme.plugin\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
INFO = "lite_acme-1.0.dist-info"


def wheel(folder: Path, files: dict[str, str], *, unlisted: str = "", changed: str = "", link: str = "") -> Path:
    """Write a wheel with the files and a RECORD, which may leave out one file and have a wrong hash for another."""
    path = folder / "lite_acme-1.0-py3-none-any.whl"
    files = {
        "lite_acme/__init__.py": "",
        "lite_acme/py.typed": "",
        "lite_acme/plugin.py": GOOD,
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/WHEEL": WHEEL,
        f"{INFO}/entry_points.txt": ENTRY_POINTS,
        **files,
    }
    rows = [f"{name},{digest(text if name != changed else 'other')},{len(text)}" for name, text in files.items()]
    record = "\n".join([row for row in rows if not unlisted or not row.startswith(unlisted)] + [f"{INFO}/RECORD,,"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{INFO}/RECORD": record}.items():
            archive.writestr(name, text)
        if link:
            entry = zipfile.ZipInfo(link)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, "../../outside")
    return path


def digest(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def without(text: str, *beginnings: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith(beginnings))


def texts(findings: list[Finding]) -> str:
    return "\n".join(f"{f.level} {f.check} {f.where}: {f.text} -> {f.remedy}" for f in findings)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare names with no other installed packages, which need not be imported then."""
    monkeypatch.setattr("lite_tools.validating._others", lambda package: [])


def test_wheel_without_faults_has_no_findings(tmp_path: Path) -> None:
    report = validate_package(str(wheel(tmp_path, {})))
    assert report.findings == []
    assert (report.package, report.version, report.kind) == ("lite-acme", "1.0", "wheel")
    assert report.plugins[0]["provides"] == {"lite_backends": ["acme"]}


def test_faults_of_a_plugin_are_found_by_loading_it(tmp_path: Path) -> None:
    many = {f"matplotlib_stand_in/m{number}.py": "" for number in range(100)}
    imports = "".join(f"import matplotlib_stand_in.m{number}\n" for number in range(100))
    files = {"matplotlib_stand_in/__init__.py": "", "matplotlib_stand_in/a.py": imports, **many}
    report = validate_package(str(wheel(tmp_path, {"lite_acme/plugin.py": FAULTY, **files})))
    found = texts(report.findings)
    for line in (
        "error imports plugin 'acme': it prints 'hello from acme'",
        "warning imports plugin 'acme': it imports matplotlib_stand_in (102 modules)",
        "warning imports plugin 'acme': it starts the thread(s) acme-worker",
        "warning imports plugin 'acme': it changes the environment variable(s) ACME_WAS_HERE",
        "error hooks lite_formats: lacks the decorator @hookimpl",
        "warning hooks lite_format: looks like a misspelt lite_formats",
        "error objects backend 'x86': supports() is called with (node, device)",
        "error objects backend 'x86': restor is never used: it looks like a misspelt restore",
        "error objects backend 'acme': its Executable: run() is called with (inputs, outputs, scratch)",
        "error objects pass 'acme-pass': __call__() is called with (graph)",
        "error objects operator 'com.microsoft.squish': its reference is called with (X, slope=)",
        "error objects operator 'com.microsoft.squish': its infer is called with (inference)",
        "error names backend 'x86': the name is that of lite-x86",
        "error names operator 'com.microsoft.squish': the domain com.microsoft is not the package's own",
        "warning api plugin 'acme': LITE_API_VERSION says that it works with version 3",
        "warning contents matplotlib_stand_in: matplotlib_stand_in is a further top-level name",
    ):
        assert line in found, found
    assert all(finding.remedy for finding in report.findings)
    levels = [finding.level for finding in report.findings]
    assert levels == sorted(levels)


def in_full_tier(*values: str) -> object:
    return pytest.param(*values, marks=pytest.mark.full("packages"))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os\nos._exit(3)\n", "error load plugin 'acme', import: it ended its process with exit code 3"),
        in_full_tier("import llvmlyte\n", "add llvmlyte to dependencies"),
        (GOOD.replace("def lite_backends", "def lite_backend"), "did you mean lite_backends?"),
        in_full_tier(
            GOOD.replace("LITE_API_VERSION = 1", ""), "error api plugin 'acme', version: states no LITE_API_VERSION"
        ),
        in_full_tier(GOOD.replace("lite_backends()", "lite_backends(session)"), "error hooks plugin 'acme', register:"),
        in_full_tier(GOOD.replace("[backend]", "[7]"), "error objects plugin 'acme', lite_backends: 7 lacks"),
    ],
)
def test_plugin_that_cannot_be_loaded_does_not_end_the_command(tmp_path: Path, source: str, said: str) -> None:
    path = wheel(tmp_path, {"lite_acme/plugin.py": source})
    result = CliRunner().invoke(command, ["validate", str(path), "--json"], standalone_mode=False)
    data = json.loads(result.output)
    assert said in texts([Finding(**finding) for finding in data["findings"]])
    assert (result.return_value, data["errors"] > 0, data["package"]) == (1, True, "lite-acme")


def metadata_of(tmp_path: Path, text: str = METADATA, entry_points: str = ENTRY_POINTS) -> str:
    files = {f"{INFO}/METADATA": text, f"{INFO}/entry_points.txt": entry_points}
    with opened_package(str(wheel(tmp_path, files))) as package:
        return texts([*metadata_findings(package)])


def test_metadata_that_is_missing_is_found(tmp_path: Path) -> None:
    lines = ("Summary", "License", "Requires", "Classifier", "Project-URL", "The README")
    found = metadata_of(tmp_path, without(METADATA, *lines))
    for part in ("README", "description", "licence", "versions of Python", "classifiers", "report failures"):
        assert part in found
    assert "error metadata pyproject.toml: it does not require lite-core" in found


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("lite-core>=0.1", "no upper bound"),
        ("lite-core<0.2", "no lower bound"),
        ("lite-core>=9,<10", "it requires lite-core <10,>=9"),
        ("lite-core ~~ 3", "is not valid"),
        ('lite-core>=0.1,<0.2; extra == "test"', "does not require lite-core"),
    ],
)
def test_requirement_of_lite_core_is_checked(tmp_path: Path, requirement: str, said: str) -> None:
    assert said in metadata_of(tmp_path, METADATA.replace("lite-core>=0.1,<0.2", requirement))


@pytest.mark.parametrize(
    ("entry_points", "said"),
    [
        ("[console_scripts]\nx = lite_acme:main\n", "it has none in the group lite.plugins"),
        ("[lite.plugins]\nacme = lite_acme.plugni\n", "does not contain the module lite_acme.plugni"),
        (ENTRY_POINTS + "[lite.plugin]\nb = lite_acme\n", "there is no group 'lite.plugin'"),
    ],
)
def test_entry_points_are_checked(tmp_path: Path, entry_points: str, said: str) -> None:
    assert said in metadata_of(tmp_path, entry_points=entry_points)


def test_contents_of_a_wheel_are_checked(tmp_path: Path) -> None:
    files = {
        "tests/test_it.py": "",
        "README.md": "",
        "start.pth": "import lite_acme",
        "lite_acme/tests/test_more.py": "",
        "lite_acme/__pycache__/plugin.cpython-311.pyc": "",
        "lite_acme/fast.so": "code",
    }
    path = wheel(tmp_path, files, unlisted="README.md", changed="lite_acme/plugin.py", link="lite_acme/data")
    with opened_package(str(path)) as package:
        assert package.names is not None
        package.names.remove("lite_acme/py.typed")
        found = texts([*content_findings(package)])
    for line in (
        "error contents tests: the folder tests/ is installed beside all packages",
        "error contents README.md: README.md is installed beside all packages",
        "warning contents start.pth: start.pth is read whenever Python starts",
        "warning contents wheel: tests are part of the wheel: lite_acme/tests/test_more.py",
        "warning contents wheel: files of tools are part of the wheel: lite_acme/__pycache__/plugin.cpython-311.pyc",
        "error contents RECORD: it does not list README.md",
        "error contents RECORD: it has another hash for lite_acme/plugin.py",
        "error contents RECORD: it lists missing lite_acme/py.typed",
        "error contents WHEEL: it has native code (lite_acme/fast.so)",
        "warning contents lite_acme: type checkers ignore its annotations",
        "error contents lite_acme/data: it is a symbolic link",
    ):
        assert line in found, found


def test_names_that_others_have_are_found() -> None:
    def row(package: str, **provides: list[str]) -> dict[str, object]:
        return {"distribution": package, "version": "1.0", "provides": provides}

    ours = row("lite-acme", lite_backends=["chip", "host", "auto"], lite_ops=["acme.Squish", "Acme.squish"])
    other = row("lite-other", lite_backends=["chip"], lite_ops=["acme.Squish"], lite_passes=["fuse"])
    found = texts([*name_findings([ours], [other])])
    assert "error names backend 'chip': lite-other 1.0, which is installed here, has the name too" in found
    assert "error names backend 'host': the name is that of lite-core" in found
    assert "error names backend 'auto'" in found
    assert "error names operator 'acme.Squish': lite-other 1.0" in found
    assert "error names operator 'Acme.squish': the domain 'Acme' must be" in found
    (warning,) = name_findings([row("lite-acme", lite_passes=["fuse"])], [other])  # type: ignore[list-item]
    assert warning.level == "warning"


@pytest.mark.parametrize("named", ["no-such-package", "."])
def test_package_that_does_not_exist_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"installed package|pyproject\.toml"):
        validate_package(named)


def test_file_that_is_no_wheel_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lite_acme.whl"
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match="not a wheel"):
        validate_package(str(path))


@pytest.mark.full("packages")
def test_installed_package_in_editable_form_is_checked_but_for_its_files() -> None:
    if "editable" not in (metadata.distribution("lite-tools").read_text("direct_url.json") or ""):
        pytest.skip("lite-tools is not installed in editable form here")
    report = validate_package("lite-tools")
    assert report.count("error") == 0
    assert any("plugins/lite_tools" in finding.remedy for finding in report.findings)


def test_state_of_the_process_that_loading_changes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging
    import signal

    import numpy as np

    effects: list[Effect] = []
    monkeypatch.setattr(sys, "path", [*sys.path])
    handler, folder = signal.getsignal(signal.SIGTERM), Path.cwd()
    errors = np.geterr()
    added = logging.NullHandler()
    try:
        with watched("import", effects):
            os.chdir(tmp_path)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            np.seterr(over="ignore" if errors["over"] != "ignore" else "warn")
            sys.path.append("elsewhere")
            logging.getLogger().addHandler(added)
    finally:
        os.chdir(folder)
        signal.signal(signal.SIGTERM, handler)
        np.seterr(**errors)
        logging.getLogger().removeHandler(added)
    assert [effect.kind for effect in effects] == ["folder", "signals", "numpy", "path", "logging"]


@pytest.mark.full("packages")
def test_project_folder_is_built_and_compared_with_its_wheel(tmp_path: Path) -> None:
    source = tmp_path / "src/lite_acme"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "plugin.py").write_text(GOOD)
    (source / "conformance.toml").touch()
    outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
    outside.touch()
    (source / "linked.txt").symlink_to(outside)
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "lite-acme"\nversion = "1.0"\ndependencies = ["lite-core>=0.1,<0.2"]\n'
        '[project.entry-points."lite.plugins"]\nacme = "lite_acme.plugin"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/lite_acme"]\nexclude = ["conformance.toml"]\n'
    )
    report = validate_package(str(tmp_path))
    found = texts(report.findings)
    assert report.kind == "folder"
    assert "error contents lite_acme/conformance.toml: it is in the package's folder, but not in the wheel" in found
    assert "error contents src/lite_acme/linked.txt: it is a link that leads out of the project" in found
    assert "lacks py.typed" in found
