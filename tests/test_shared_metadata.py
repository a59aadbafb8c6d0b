"""Each distribution says what an index page needs, and what all say alike is stated once, in the workspace."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

import pytest
from packaging.requirements import Requirement
from trove_classifiers import classifiers as known_classifiers

import pythons
from shared_metadata import Shared, files, shared
from workspace import Distribution, distributions, parse_toml

each_distribution = pytest.mark.parametrize("distribution", distributions(), ids=lambda one: one.name)


@each_distribution
def test_metadata(distribution: Distribution) -> None:
    project = distribution.pyproject["project"]
    assert 40 <= len(project["description"]) <= 160
    assert not project["description"].endswith(".")
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert len(project["keywords"]) >= 4
    assert not re.search(r"[^a-z0-9-]", "".join(project["keywords"]))
    listed = project["classifiers"]
    assert len(set(listed)) == len(listed)
    assert not set(listed) - known_classifiers, "an index refuses these"
    assert any(one.startswith("Operating System :: ") for one in listed)
    assert set(shared().classifiers) < set(listed)


def test_the_classifiers_name_the_versions_of_python_that_are_supported() -> None:
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(shared().classifiers))
    assert tuple(found) == pythons.VERSIONS
    assert {one.pyproject["project"]["requires-python"] for one in distributions()} == {f">={pythons.VERSIONS[0]}"}


def test_a_new_version_reaches_every_file() -> None:
    now = files()
    changed = files(replace(shared(), version="7.8.9"))
    assert changed.keys() == now.keys()
    own = {distribution.name for distribution in distributions()}
    for distribution in distributions():
        project = parse_toml(changed[distribution.folder / "pyproject.toml"])["project"]
        assert project["version"] == "7.8.9"
        for text in (*project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())):
            requirement = Requirement(text)
            if requirement.name in own and requirement.specifier:
                assert str(requirement.specifier) == "<7.9,>=7.8"
    sources = "".join(text for path, text in changed.items() if path.suffix == ".py")
    assert '__version__ = "7.8.9"' in sources
    assert f'__version__ = "{shared().version}"' not in sources
    assert any(
        'dependencies = ["lite-core>=7.8,<7.9"]' in text for path, text in changed.items() if path.suffix == ".md"
    )


def test_every_version_in_the_sources_is_written() -> None:
    written = {path for path in files() if path.suffix == ".py"}
    found = {
        path
        for one in distributions()
        for path in one.folder.glob("src/**/*.py")
        if re.search(r"^__version__ = ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found == written
    assert found


EXAMPLE = """[project]
name = "lite-a"
version = "0.1.0"
classifiers = [
    "Topic :: Utilities",
    # Alike in every distribution: written by make docs
    "Old",
]
dependencies = ["lite-core[narrow]>=0.1,<0.2", "lite-unknown>=0.1,<0.2", "numpy>=1.24"]

[project.optional-dependencies]
b = ["lite-x86>=0.1,<0.2; sys_platform == 'linux'"]
"""


def test_a_pyproject() -> None:
    stated = Shared("0.2.0rc1", ["New"], {"Source": "https://example.org/lite", "Issue tracker": "https://example.org"})
    written = stated.in_pyproject(EXAMPLE)
    project = parse_toml(written)["project"]
    assert project["version"] == "0.2.0rc1"
    assert project["classifiers"] == ["Topic :: Utilities", "New"]
    assert project["dependencies"] == ["lite-core[narrow]>=0.2,<0.3", "lite-unknown>=0.1,<0.2", "numpy>=1.24"]
    assert project["optional-dependencies"]["b"] == ["lite-x86>=0.2,<0.3; sys_platform == 'linux'"]
    assert project["urls"] == stated.urls
    assert stated.in_pyproject(written) == written
    assert Shared("0.1.0", ["Old"]).in_pyproject(written) == EXAMPLE


def test_a_page() -> None:
    page = 'A range such as `lite-core>=0.1.3,<0.2` stays.\n\ndependencies = ["lite-core>=0.1,<0.2"]\n'
    assert Shared("3.4.5").in_page(page) == page.replace('["lite-core>=0.1,<0.2"]', '["lite-core>=3.4,<3.5"]')
