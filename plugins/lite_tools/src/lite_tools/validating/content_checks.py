"""Checks of a wheel's contents: what would be installed, and where."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from lite_tools.validating.findings import Finding
from lite_tools.validating.package import Package

__all__ = ["content_findings"]

#: Folders that belong to a project, but not into the folder of all installed packages.
_OF_PROJECTS = ("benchmark", "benchmarks", "build", "dist", "doc", "docs", "example", "examples", "script", "scripts")
_TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|conftest\.py$)")
_LEFT_BEHIND = re.compile(r"(^|/)(__pycache__/|\.DS_Store$|\.git/|\.pytest_cache/|\.hypothesis/|\.env$)|\.py[co]$|~$")
_NATIVE = re.compile(r"\.(so|pyd|dll|dylib)(\.\d+)*$")
_NO_DATA = re.compile(r"\.(c|cc|cpp|cu|h|hpp|pyx|pxd|rs|in|orig|rej)$|(^|/)\.|~$")
_MOST_BYTES = 100 * 2**20  # the limit for a file on PyPI
_MOST_NAMES = 5


def content_findings(package: Package) -> Iterator[Finding]:
    """Check what a package contains."""
    if package.names is None:
        text = "it is installed in editable form, so its files were not checked"
        remedy = f"lite plugins validate {package.folder or 'WHEEL'}"
        yield Finding("warning", "contents", package.name, text, remedy)
        return
    names = [name for name in package.names if not name.startswith("..")]  # scripts, in the environment's bin
    own = [name for name in names if not name.split("/")[0].endswith((".dist-info", ".data"))]
    yield from _top_level(package, own)
    if package.kind != "installed":  # pip compiles modules when it installs them, and adds files to RECORD
        yield from _unwanted(own)
        yield from _record(package)
        yield from _native(package, own)
    packages = sorted({name.split("/")[0] for name in own if name.count("/") == 1 and name.endswith("/__init__.py")})
    for name in packages:
        if f"{name}/py.typed" not in own:
            text = "type checkers ignore its annotations, because it lacks py.typed"
            yield Finding("warning", "contents", name, text, f"add the empty file {name}/py.typed")
    for link in package.links:
        yield Finding(
            "error", "contents", link, "it is a symbolic link, which pip does not install", "put the file there"
        )
    if package.kind == "folder" and package.folder:
        yield from _of_folder(package.folder, own)


def _top_level(package: Package, names: list[str]) -> Iterator[Finding]:
    """Check that nothing is installed beside the package, where it would meet that of other packages."""
    points = [point for point in package.distribution.entry_points if point.group.startswith("lite.")]
    modules = {point.module.split(".")[0] for point in points}
    top: dict[str, str] = {}
    for name in names:
        top.setdefault(name.split("/")[0], name)
    for first, name in sorted(top.items()):
        is_folder, module = "/" in name, first.removesuffix(".py").split(".")[0]
        if first in ("test", "tests") or first in _OF_PROJECTS:
            text = f"the folder {first}/ is installed beside all packages, where it meets that of others"
            yield Finding("error", "contents", first, text, "leave it out of the wheel")
        elif not is_folder and not first.endswith((".py", ".pth")) and not _NATIVE.search(first):
            text = f"{first} is installed beside all packages"
            yield Finding("error", "contents", first, text, "move it into the package, or leave it out of the wheel")
        elif first.endswith(".pth"):
            text = f"{first} is read whenever Python starts"
            yield Finding("warning", "contents", first, text, "leave it out, unless it is needed")
        elif modules and module not in modules:
            text = f"{module} is a further top-level name, beside {', '.join(sorted(modules))}"
            yield Finding("warning", "contents", first, text, "move it into the package")


def _unwanted(names: list[str]) -> Iterator[Finding]:
    for what, pattern in (("tests", _TESTS), ("files of tools", _LEFT_BEHIND)):
        found = [name for name in names if pattern.search(name) and name.split("/")[0] not in ("test", "tests")]
        if found:
            text = f"{what} are part of the wheel: {_listed(found)}"
            yield Finding("warning", "contents", "wheel", text, "leave them out of the wheel")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _record(package: Package) -> Iterator[Finding]:
    """Check that RECORD lists every file with its hash; pip refuses or leaves behind what it does not list."""
    again = "build the wheel again, and do not edit it"
    (record,) = [n for n in package.names or () if n.endswith(".dist-info/RECORD")][:1] or [""]
    if not record:
        yield Finding("error", "contents", "RECORD", "the wheel has no list of its files", again)
        return
    rows = csv.reader((package.read(record) or b"").decode("utf-8", "replace").splitlines())
    listed = {row[0]: row[1] for row in rows if len(row) >= 2}
    signatures = (record, f"{record}.jws", f"{record}.p7s")
    unlisted = [name for name in package.names or () if name not in listed and name not in signatures]
    lost = [name for name in listed if name not in (package.names or ())]
    present = {name: digest for name, digest in listed.items() if digest and name not in lost}
    changed = [name for name, digest in present.items() if _digest(package, name) != digest]
    for text, found in (("does not list", unlisted), ("lists missing", lost), ("has another hash for", changed)):
        if found:
            yield Finding("error", "contents", "RECORD", f"it {text} {_listed(found)}", again)


def _digest(package: Package, name: str) -> str:
    digest = hashlib.sha256(package.read(name) or b"").digest()
    return f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _native(package: Package, names: list[str]) -> Iterator[Finding]:
    tags = re.findall(r"^Tag: *(\S+)", package.distribution.read_text("WHEEL") or "", re.MULTILINE)
    native = [name for name in names if _NATIVE.search(name)]
    if native and any(tag.endswith("-any") for tag in tags):
        text = f"it has native code ({native[0]}), but its tag {tags[0]} is for every platform"
        yield Finding("error", "contents", "WHEEL", text, "build a wheel for each platform")
    if not native and tags and not any(tag.endswith("-any") for tag in tags):
        text = f"its tag {tags[0]} is for one platform, but it has no native code"
        yield Finding("warning", "contents", "WHEEL", text, "build it as py3-none-any")
    for name in names:
        size = len(package.read(name) or b"")
        if size > _MOST_BYTES:
            text = f"it has {size >> 20} MB; PyPI accepts {_MOST_BYTES >> 20} MB for a wheel"
            yield Finding("warning", "contents", name, text, "download it when it is needed")


def _of_folder(folder: Path, names: list[str]) -> Iterator[Finding]:
    """Check links of the project's folder, and that the wheel has the data files of its packages."""
    root = folder.resolve()
    tops = {name.split("/")[0] for name in names if "/" in name}
    sources = [path for top in tops for path in (root / "src" / top, root / top) if path.is_dir()]
    for source in sources:
        base = source.parent
        for current, folders, files in os.walk(source):
            folders[:] = [name for name in folders if name not in ("__pycache__", "tests", "test")]
            for name in (*files, *folders):
                path = Path(current, name)
                if path.is_symlink() and not path.resolve().is_relative_to(root):
                    text = "it is a link that leads out of the project: the source distribution lacks it"
                    shown = path.relative_to(root).as_posix()
                    yield Finding("error", "contents", shown, text, "put the file there")
            for name in files:
                relative = Path(current, name).relative_to(base).as_posix()
                unwanted = _NO_DATA.search(name) or _LEFT_BEHIND.search(relative) or _TESTS.search(relative)
                if relative not in names and not unwanted:
                    text = "it is in the package's folder, but not in the wheel"
                    yield Finding("error", "contents", relative, text, "include it as package data, or delete it")
