"""Public names: what the lists promise is there, and the comparison finds each kind of change that breaks somebody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lite_core.backend import API_VERSION
from public_changes import changes, merged, name_of
from public_modules import LISTS, present
from public_names import lines_of_modules
from workspace import ROOT

each_list = pytest.mark.parametrize("name", LISTS)


@each_list
def test_nothing_public_is_gone_or_changed(name: str) -> None:
    """Hold the promises of docs/api-stability.md."""
    one = LISTS[name]
    incompatible = changes(one.committed, present()[name]).incompatible
    remedy = f"Either restore them, or raise the version ({one.version}): docs/api-stability.md"
    assert not incompatible, "\n".join([f"{one.title}, {one.version}, broken:", *incompatible, remedy])


@each_list
def test_every_public_name_is_listed(name: str) -> None:
    added = changes(LISTS[name].committed, present()[name]).compatible
    assert not added, "\n".join(["new public names; run `make docs`, and look at what it adds to the lists:", *added])


def test_the_lists_are_those_of_the_present_versions() -> None:
    assert {one.file for one in LISTS.values()} == {*(ROOT / "tests/public_api").iterdir()}
    page = (ROOT / "docs/api-stability.md").read_text(encoding="utf-8")
    assert all(f"(../{one.file.relative_to(ROOT).as_posix()})" in page for one in LISTS.values())
    assert f"`API_VERSION`, now {API_VERSION}" in page


# **** the comparison ****

OLD = [
    "core.Part: Protocol",
    "core.Part.run(self, inputs: Sequence[Buffer]) -> None",
    "core.Device: dataclass(name, score=1.0)",
    "core.Device.name: str",
    "core.Device.score: float",
    "core.InputError: class() extends LiteError",
    "core.load(model, backend='auto', *, exact=False)",
    "core.read(path, /, **options)",
    "core.EXIT = 3",
]


def after(old: str, new: str) -> list[str]:
    """Return the list with one line replaced, removed (``new`` is empty) or added (``old`` is empty)."""
    lines = [new if line == old else line for line in OLD]
    return [line for line in [*lines, *([] if old else [new])] if line]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "core.Device.index: int"),
        ("", "core.save(model)"),
        ("", "core.OtherPart: Protocol"),
        (OLD[2], "core.Device: dataclass(name, score=1.0, index=0)"),
        (OLD[6], "core.load(model, backend='auto', threads=None, *, exact=False)"),
        (OLD[6], "core.load(model, backend='auto', *, tune=True, exact=False)"),
        (OLD[7], "core.read(path, /, *, strict=..., **options)"),
    ],
)
def test_additions(old: str, new: str) -> None:
    now = after(old, new)
    found = changes(OLD, now)
    assert not found.incompatible
    assert found.compatible == [new]
    assert sorted(merged(OLD, now)) == sorted(now)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD[3], ""),  # gone
        (OLD[0], "core.Part: class()"),
        (OLD[1], "core.Part.run(self, inputs: Sequence[Buffer], scratch: Buffer = None) -> None"),  # Lite calls it
        (OLD[1], "core.Part.run(self, inputs: Sequence[Array]) -> None"),
        ("", "core.Part.stop(self) -> None"),  # objects of plugins lack it
        (OLD[2], "core.Device: dataclass(index, name, score=1.0)"),
        (OLD[2], "core.Device: dataclass(name)"),
        (OLD[2], "core.Device: dataclass(name, score=2.0)"),
        (OLD[2], "core.Device: named tuple(name, score=1.0)"),
        (OLD[5], "core.InputError: class() extends Exception"),
        (OLD[5], "core.InputError: class(reason) extends LiteError"),
        (OLD[6], "core.load(model, *, backend='auto', exact=False)"),
        (OLD[6], "core.load(path, backend='auto', *, exact=False)"),
        (OLD[6], "core.load(model, backend='auto', *, exact=False, threads)"),
        (OLD[6], "core.load(model, backend='auto')"),
        (OLD[6], "core.load: value"),
        (OLD[7], "core.read(path, /)"),
        (OLD[8], "core.EXIT = 4"),
    ],
)
def test_breaking_changes(old: str, new: str) -> None:
    now = after(old, new)
    found = changes(OLD, now)
    assert len(found.incompatible) == 1
    assert found.incompatible[0].startswith(old or new)
    assert not found.compatible
    assert merged(OLD, now) == OLD, "the list must not hide the change"


def test_members_may_be_listed_under_another_name_of_their_class() -> None:
    moved = [line.replace("core.Device", "core.devices.Device") for line in OLD]
    now = [*moved, "core.Device = core.devices.Device"]
    found = changes(OLD, now)
    assert not found.incompatible
    assert sorted(merged(OLD, now)) == sorted(now)
    assert not changes(now, [*moved, *(line for line in OLD if line.startswith("core.Device"))]).incompatible
    less = [line for line in now if line != "core.devices.Device.score: float"]
    assert changes(OLD, less).incompatible == ["core.Device.score: float: is gone"]


def test_lines_of_a_module() -> None:
    lines = [
        *lines_of_modules({"lite_core.backend": ["Device", "Executable", "Partition"], "lite_core": ["Device"]}, {}, {})
    ]
    assert lines[0].startswith(
        "lite_core.backend.Device: dataclass(backend, index=0, name='', score=1.0, details=..., "
    )
    assert "lite_core.backend.Device.label: property" in lines
    assert "lite_core.backend.Executable: Protocol" in lines
    assert "lite_core.backend.Executable.scratch_bytes: int" in lines
    assert any(line.startswith("lite_core.backend.Executable.run(self, inputs: Sequence[Buffer], ") for line in lines)
    assert lines[-1] == "lite_core.Device = lite_core.backend.Device"


# **** what authors are taught ****

#: Pages and templates from which authors copy, and packages that they read as examples.
_PAGES = ("backend-tutorial", "writing-a-plugin", "foreign-runtime", "author-helpers")
TAUGHT = [
    *(ROOT / f"docs/{name}.md" for name in _PAGES),
    *ROOT.glob("docs/plugin-*.md"),
    *ROOT.glob("plugins/lite_tools/src/lite_tools/cli/templates/**/*.tmpl"),
    *ROOT.glob("tests/api_v1/**/*.py"),
    *ROOT.glob("examples/*_backend/**/*.py"),
]
_PACKAGES = "core|compiler|numba|tools|conformance"
_IMPORT = re.compile(rf"^ *from (lite_(?:{_PACKAGES})\b[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


@pytest.mark.parametrize("file", TAUGHT, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_authors_are_taught_public_names_only(file: Path) -> None:
    public = {name_of(line) for lines in present().values() for line in lines}
    used = set()
    for module, several, single in _IMPORT.findall(file.read_text(encoding="utf-8")):
        names = re.sub(r"#.*", "", several or single).replace("\n", " ").split(",")
        used |= {f"{module}.{name.split()[0]}" for name in names if name.strip()}
    unknown = sorted(used - public - {module for one in LISTS.values() for module in one.modules})
    assert not unknown, f"{unknown}: list them in scripts/public_modules.py, or teach others"
