"""Each distribution is built from its folder alone, as from an unpacked source distribution, with all that it needs."""

from __future__ import annotations

import email
import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from workspace import ROOT, Distribution, distributions

each_distribution = pytest.mark.parametrize("distribution", distributions(), ids=lambda one: one.name)

#: Left behind by the interpreter and by tools.
_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "*.egg-info", ".hypothesis", ".*_cache", "dist", "out")


@each_distribution
def test_no_link_leads_out_of_a_distribution(distribution: Distribution) -> None:
    """Such a link is missing from the source distribution, and is a text file in a checkout on Windows."""
    folder = distribution.folder.resolve()
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    outside = [path for path in links if folder not in path.resolve().parents]
    assert not [str(path.relative_to(ROOT)) for path in outside]


@dataclass(frozen=True)
class Built:
    """The folder of a distribution, and what was built from it.

    Attributes:
        folder: the folder that it was built from: a copy without the rest of the workspace.
        source: its source distribution.
        wheel: the wheel that was built from the source distribution, as a release is.
        direct: the wheel that was built from the folder, as ``pip install FOLDER`` does.
    """

    folder: Path
    source: Path
    wheel: Path
    direct: Path


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    distribution: Distribution = request.param
    folder = tmp_path_factory.mktemp(distribution.package) / distribution.folder.name
    shutil.copytree(distribution.folder, folder, symlinks=True, ignore=_LEFT_BEHIND)
    release, direct = folder.parent / "release", folder.parent / "direct"
    for arguments in (("--outdir", release), ("--outdir", direct, "--wheel")):
        command = [sys.executable, "-m", "build", "--no-isolation", *arguments, folder]
        completed = subprocess.run(command, capture_output=True, text=True, cwd=folder.parent)
        assert completed.returncode == 0, completed.stdout + completed.stderr
    (source,), (wheel,), (alone,) = release.glob("*.tar.gz"), release.glob("*.whl"), direct.glob("*.whl")
    return Built(folder, source, wheel, alone)


each_built = pytest.mark.parametrize(
    ("distribution", "built"), [(one, one) for one in distributions()], ids=lambda one: one.name, indirect=["built"]
)
in_full_tier = pytest.mark.full("packages")


def digests(wheel: Path) -> dict[str, str]:
    """Return the hash of each file of a wheel by its name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


@in_full_tier
@each_built
def test_wheels_from_the_folder_and_from_the_source_distribution_are_equal(
    distribution: Distribution, built: Built
) -> None:
    assert digests(built.wheel) == digests(built.direct)


@in_full_tier
@each_built
def test_a_wheel_holds_the_package_and_nothing_else(distribution: Distribution, built: Built) -> None:
    package, information = distribution.package, built.wheel.name.rpartition("-py3-")[0] + ".dist-info"
    sources = built.folder / "src"
    expected = {path.relative_to(sources).as_posix() for path in sources.rglob("*") if path.is_file()}
    assert expected >= {f"{package}/__init__.py", f"{package}/py.typed"}
    assert all(name.startswith(f"{package}/") for name in expected)
    about = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"}
    project = distribution.pyproject["project"]
    about |= {"entry_points.txt"} if project.keys() & {"entry-points", "scripts"} else set()
    assert digests(built.wheel).keys() == expected | {f"{information}/{name}" for name in about}


@in_full_tier
@each_built
def test_a_source_distribution_holds_what_the_wheel_needs(distribution: Distribution, built: Built) -> None:
    with tarfile.open(built.source) as archive:
        members = archive.getmembers()
    assert all(member.isfile() for member in members), "links, folders or devices"
    names = {member.name.partition("/")[2] for member in members}
    assert {name for name in names if not name.startswith(f"src/{distribution.package}/")} == {
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    }


@in_full_tier
@each_built
def test_the_metadata_is_complete_and_an_index_accepts_it(distribution: Distribution, built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        content = archive.read(name)
    metadata = Metadata.from_email(content, validate=True)  # raises for each field that an index refuses
    assert metadata.name == distribution.name
    assert metadata.license_expression == "Apache-2.0"
    assert str(metadata.requires_python) == ">=3.10"
    assert metadata.description_content_type == "text/markdown"
    described = email.message_from_bytes(content).get_payload()
    assert described.strip() == (distribution.folder / "README.md").read_text(encoding="utf-8").strip()
    required = [requirement for requirement in metadata.requires_dist or () if requirement.name.startswith("lite-")]
    unbounded = [str(r) for r in required if r.name != distribution.name and not is_bounded(r)]
    assert not unbounded, "a minor version of another package may remove what this one uses"


def test_the_extras_of_the_core_name_distributions_and_extras_that_exist() -> None:
    by_name = {distribution.name: distribution for distribution in distributions()}
    extras = by_name["lite-core"].extras
    assert extras.keys() >= {"tools", "images", "all"}
    own = [Requirement(text) for listed in extras.values() for text in listed if text.startswith("lite-")]
    assert not [str(one) for one in own if one.name not in by_name or not one.extras <= by_name[one.name].extras.keys()]
    assert not [str(one) for one in own if one.name != "lite-core" and not is_bounded(one)]


def test_the_extra_all_brings_every_distribution_that_users_install() -> None:
    """Libraries come with the backends that need them; a distribution that nothing else brings must be listed."""
    every = {distribution.name: distribution for distribution in distributions()}
    pending, brought = [Requirement("lite-core[all]")], set()
    while pending:
        name = pending.pop()
        if name.name in every and str(name) not in brought:
            brought |= {str(name), name.name}
            own = every[name.name]
            listed = [
                *own.pyproject["project"].get("dependencies", ()),
                *(r for e in name.extras for r in own.extras[e]),
            ]
            pending += map(Requirement, listed)
    assert every.keys() <= brought


def is_bounded(requirement: Requirement) -> bool:
    """Return True if a requirement states the oldest version that is enough, and excludes later minor versions."""
    return {clause.operator for clause in requirement.specifier} >= {">=", "<"}


@in_full_tier
@each_built
def test_no_file_contains_a_path_of_this_machine(distribution: Distribution, built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    paths = [str(path).encode() for path in (ROOT, built.folder, Path.home(), Path(sys.prefix)) if len(path.parts) > 2]
    assert paths
    assert not {name for name, content in contents.items() if any(path in content for path in paths)}
