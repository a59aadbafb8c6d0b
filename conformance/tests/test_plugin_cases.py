"""Cases of plugins: a right package is green, and each mistake of an operator, a pass or a reader is found by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from lite_conformance import Record, read_report
from lite_conformance.cases.case import Settings
from lite_conformance.cases.plugins.brought import ENTRY_POINT_GROUP, BrokenCases, import_cases
from lite_conformance.run.declared import unmatched_entries
from lite_conformance.run.expectations import read_expectations
from lite_core.plugins import PluginManager

PAGE = Path(__file__).parents[2] / "docs/plugin-cases.md"
ENTRY_POINTS = "[lite.plugins]\nacme = lite_acme.plugin\n\n[lite.conformance]\nacme = lite_acme.cases\n"

#: A backend for the operator of the page's package, with a kernel that is wrong by a factor.
WRONG_KERNEL = """
from lite_core import KernelBackend, ops

ops.add(SQUISH)
backend = KernelBackend("acme")

@backend.kernel("Squish", domain="acme")
def kernel(x, *, slope, out):
    out[...] = FACTOR * squish(x.astype(np.float64), slope=slope)

@hookimpl
def lite_backends():
    return [backend]
"""


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """The package of the page docs/plugin-cases.md, as pip installs it, in a folder of its own."""
    found = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert {name for name, _ in found} == {"lite_acme/plugin.py", "lite_acme/cases.py"}
    (tmp_path / "lite_acme").mkdir()
    (tmp_path / "lite_acme/__init__.py").touch()
    for name, code in found:
        (tmp_path / name).write_text(code, encoding="utf-8")
    info = tmp_path / "lite_acme-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lite-acme\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def change(site: Path, module: str, old: str, new: str) -> None:
    """Replace a text in a module of the package; an empty old text appends."""
    path = site / f"lite_acme/{module}.py"
    code = path.read_text(encoding="utf-8")
    assert old in code
    path.write_text(code.replace(old, new) if old else code + new, encoding="utf-8")


def run(site: Path, *arguments: str, code: int = 0) -> dict[str, Record]:
    """Run the command with the package installed, and return its records by their names."""
    paths = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "lite_conformance", *arguments, "--json", str(site / "r.json"), "--examples", "3"]
    environment = {**os.environ, "PYTHONPATH": paths, "LITE_CACHE_DIR": str(site / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return {record.case: record for record in read_report(site / "r.json").records}


def bad(records: dict[str, Record]) -> dict[str, str]:
    return {name: record.reason for name, record in records.items() if record.status.is_bad}


def selected(*patterns: str) -> tuple[str, ...]:
    return tuple(word for pattern in patterns for word in ("--case", pattern))


# **** the package of the page ****


@pytest.mark.full("conformance")
def test_the_package_of_the_page_is_green(acme: Path) -> None:
    most = ("plugin[*", "format[*", "acme.*[*", "reference[*")
    few = selected(*most, "pass[acme-fuse,f32,squish]", "pass[*,changes-something]")
    records = run(acme, "plugin", "lite_acme", *few, "--isolate", "never")
    assert {record.status for record in records.values()} == {"passed"}
    assert {record.level for record in records.values()} == {0, 1, 2, 3}
    assert records["format[acme,two-layers,truncated]"].examples == 16
    assert records["plugin[loads]"].reason.startswith("plugin 'acme' provides ")
    assert json.loads((acme / "r.json").read_text())["header"]["package"] == "lite-acme on host"


@pytest.mark.full("conformance")
def test_all_cases_of_the_package_of_the_page_are_green(acme: Path) -> None:
    records = run(acme, "plugin", "acme", "--jobs", "2")
    assert {record.status for record in records.values()} == {"passed"}
    assert len([name for name in records if name.startswith("pass[acme-fuse,")]) > 300
    every = run(acme, "--backend", "host", "--op", "acme.*", "--jobs", "1")
    assert {"acme.Squish[f32,drawn]", "stress[threads,acme.Squish]"} <= every.keys()
    assert not bad(every)


@pytest.mark.full("conformance")
def test_the_format_of_lite_onnx_is_green(acme: Path) -> None:
    pytest.importorskip("lite_onnx")
    records = run(acme, "plugin", "lite-onnx", "--jobs", "2")
    assert {record.status for record in records.values()} <= {"passed", "unsupported"}
    assert records["format[onnx,round-trip,f32,graph-conv-bn]"].status == "passed"


@pytest.mark.full("conformance")
def test_a_hook_that_raises_is_found_and_the_other_cases_run(acme: Path) -> None:
    change(acme, "plugin", "    return [Fuse()]", "    return [Fuse(1)]")
    patterns = selected("plugin[*", "cases[*", "acme.Squish[f32,*]")
    records = run(acme, "plugin", "lite-acme", *patterns, "--isolate", "never", code=1)
    assert re.search(r"'acme' \(lite-acme 0\.1\.0\) failed at lite_passes", bad(records)["plugin[loads]"])
    assert "'acme-fuse', which no plugin provides" in bad(records)["cases[lite-acme]"]
    assert records["acme.Squish[f32,drawn]"].status == "passed"


def test_a_kernel_wrong_by_half_is_found_by_name(acme: Path) -> None:
    change(acme, "plugin", "", WRONG_KERNEL.replace("FACTOR", "1.5"))
    right = ("plugin[*", "format[*", "reference[*,f32]", "pass[acme-fuse,f32,squish]")
    patterns = selected(*right, "acme.Squish[f32,*", "graph[f32,acme-fuse,squish,optimized]")
    records = run(acme, "plugin", "acme", "--backend", "acme", *patterns, "--isolate", "never", code=1)
    found = bad(records)
    assert {"acme.Squish[f32,2x3]", "acme.Squish[f32,drawn]", "graph[f32,acme-fuse,squish,optimized]"} <= found.keys()
    assert all(name.startswith(("acme.Squish[", "graph[")) and "wrong" in reason for name, reason in found.items())
    assert len([record for record in records.values() if record.status == "passed"]) >= 7


@pytest.mark.full("conformance")
def test_an_operator_without_cases_gets_generated_ones(acme: Path) -> None:
    change(acme, "plugin", "", WRONG_KERNEL.replace("FACTOR", "1.5"))
    (acme / "lite_acme/cases.py").unlink()
    patterns = selected("acme.Squish[f32,*", "cases[*")
    records = run(acme, "--backend", "acme", *patterns, "--isolate", "never", code=1)
    reasons = bad(records)
    assert {"acme.Squish[f32,generated-2x3]", "acme.Squish[f32,drawn]"} <= reasons.keys()
    broken = reasons["cases[lite-acme]"]
    assert re.search(r"package lite-acme 0\.1\.0: .* lite_acme\.cases.*ModuleNotFoundError", broken)


@pytest.mark.full("conformance")
def test_a_pass_and_a_reader_that_never_return_or_kill_the_process(acme: Path) -> None:
    change(
        acme, "plugin", "    def rewrite(self, scope):\n", "    def rewrite(self, scope):\n        while True: pass\n"
    )
    change(acme, "plugin", "len(content) % 4:", "len(content) % 4 and __import__('os').abort():")
    patterns = selected("pass[acme-fuse,f32,squish]", "format[acme,two-layers,*")
    records = run(acme, "plugin", "lite-acme", *patterns, "--timeout", "5", "--jobs", "1", code=5)
    assert records["pass[acme-fuse,f32,squish]"].status == "hung"
    assert records["format[acme,two-layers,truncated]"].status == "crashed"


@pytest.mark.full("conformance")
@pytest.mark.parametrize("package", [("plugin", "lite-acme"), ("--backend", "acme"), ("--backend", "host")])
def test_a_plugin_whose_import_kills_the_process_is_reported(acme: Path, package: tuple[str, str]) -> None:
    change(acme, "plugin", "LITE_API_VERSION = 1", "LITE_API_VERSION = 1\nimport os; os.abort()")
    records = run(acme, *package, "--jobs", "1", code=5)
    assert re.search("SIGABRT", records["probe[open]"].reason)
    assert "lite_acme/plugin.py" in records["probe[open]"].details


@pytest.mark.full("conformance")
def test_unknown_package_is_named_with_those_that_are_installed(acme: Path) -> None:
    command = [sys.executable, "-m", "lite_conformance", "plugin", "lite-acne"]
    environment = {**os.environ, "PYTHONPATH": str(acme)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 2
    assert re.search(r"no package 'lite-acne' .*lite-acme", done.stderr)


# **** modules that cannot be used ****


def imported(site: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> list[BrokenCases]:
    """Import cases with this code, of a package that has only this module."""
    module = f"cases_of_{site.name.replace('-', '_')}"
    (site / f"{module}.py").write_text(code, encoding="utf-8")
    info = site / "lite_broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lite-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nbroken = {module}\n")
    monkeypatch.syspath_prepend(str(site))
    found = [e for d in metadata.distributions(path=[str(site)]) for e in d.entry_points]
    return import_cases(PluginManager(list), found)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1 / 0\n", "ZeroDivisionError: .*line 1"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("table('Squash', domain='acme')\n", "no operator 'acme.Squash'.*line 2"),
        ("table('Relu')\n", "ai.onnx.Relu already has a table"),
        ("graph_table('fuse')\ngraph_table('fuse')\n", "pass 'fuse' already has a table of graphs .*line 3"),
        ("graph_table('fuse')\n", "the pass 'fuse', which no plugin provides"),
        ("file_table('acme')\n", "the format 'acme', which no plugin provides"),
        ("files = file_table('acme')\nfiles('a', b'')\nfiles('a', b'')\n", "already has a file 'a'"),
    ],
)
def test_a_module_that_cannot_be_used_is_recorded_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    from lite_conformance.cases.plugins import brought

    start = "from lite_conformance.plugin_cases import file_table, graph_table, table\n"
    (broken,) = imported(tmp_path, monkeypatch, code if code.startswith(("1", "raise")) else start + code)
    assert broken.distribution == "lite-broken"
    assert re.search(f"package lite-broken 1.0: .*{reason}", broken.reason)
    assert not brought.graph_tables
    assert not brought.file_tables


@pytest.mark.full("conformance")
def test_a_case_that_does_not_fit_its_operator_is_recorded_with_its_package(acme: Path) -> None:
    change(acme, "cases", "slope=40.0", "slip=40.0")
    records = run(acme, "--backend", "host", *selected("cases[*", "acme.*[f32,*2x3]"), "--isolate", "never", code=1)
    assert re.search(r"lite-acme 0\.1\.0: .*acme\.Squish\[f16,2x3,steep\].*'slip'", bad(records)["cases[lite-acme]"])
    assert records["acme.Squish[f32,generated-2x3]"].status == "passed"


# **** expectations ****


def test_expectations_for_operators_of_a_plugin_that_is_not_installed_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "conformance.toml"
    entries = [f'[[xfail]]\ncase = "{case}"\nreason = "none"\n' for case in ("absent.Op[f32,*]", "lite.Absent[*")]
    file.write_text("\n".join(entries))
    records = unmatched_entries(read_expectations(file), Settings("host"))
    assert [record.case for record in records] == ["expectations[xfail:lite.Absent[*]"]
