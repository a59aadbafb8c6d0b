"""`make release` on a copy of the repository: everything is built and checked; nothing leaves it unless it is asked to.

Uploads go to a server in this process, which takes what twine sends.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from test_wheels import clean_environment

from workspace import ROOT, distributions

pytestmark = pytest.mark.full("packages")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of `make release`."""
    python = clean_environment(tmp_path_factory.mktemp("release"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", ROOT / "requirements-release.txt"], check=True)
    return python


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of one commit with the present files, in which nothing is missing for a release."""
    copy = tmp_path / "repository"
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", ".", ":!docs/results")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    pyproject, changes = copy / "pyproject.toml", copy / "CHANGELOG.md"
    text = pyproject.read_text(encoding="utf-8").replace('pages = ""', 'pages = "https://example.org/lite/blob/main"')
    addresses = '[tool.workspace.urls]\nSource = "https://example.org/lite"\n'
    pyproject.write_text(re.sub(r"\[tool\.workspace\.urls\]\n([^\[\n].*\n)*", addresses, text), encoding="utf-8")
    dated = changes.read_text(encoding="utf-8").replace("## [Unreleased]", f"## [{version(copy)}] - 2026-01-31", 1)
    changes.write_text(dated, encoding="utf-8")
    subprocess.run([sys.executable, "scripts/shared_metadata.py"], cwd=copy, check=True, capture_output=True)
    git(copy, "init", "--quiet")
    git(copy, "config", "user.name", "A test")
    git(copy, "config", "user.email", "test@example.org")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--message", "All")
    return copy


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def version(repository: Path) -> str:
    return re.findall(r'^version = "(.*)"$', (repository / "pyproject.toml").read_text(encoding="utf-8"), re.M)[0]


class Index(HTTPServer):
    """A server that takes uploads, and keeps the names of the files."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Uploads)
        self.names: list[str] = []


class Uploads(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Index)
        self.server.names += [name.decode() for name in re.findall(rb'filename="([^"]+)"', content)]
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def index() -> Iterator[Index]:
    server = Index()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def release(python: Path, repository: Path, index: Index, *arguments: str) -> subprocess.CompletedProcess[str]:
    to_index = {
        "TWINE_REPOSITORY_URL": f"http://127.0.0.1:{index.server_port}/",
        "TWINE_USERNAME": "name",
        "TWINE_PASSWORD": "password",
        "TWINE_NON_INTERACTIVE": "1",
    }
    command = [python, "scripts/release.py", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, env={**os.environ, **to_index})


def test_a_release_is_built_checked_tagged_and_uploaded(python: Path, repository: Path, index: Index) -> None:
    done = release(python, repository, index, "--publish")
    assert done.returncode == 0, done.stdout + done.stderr
    number = version(repository)
    names = {one.package for one in distributions()}
    wheels = {f"{name}-{number}-py3-none-any.whl" for name in names}
    assert set(index.names) == wheels | {f"{name}-{number}.tar.gz" for name in names}
    for one in distributions():
        assert f"{one.name} {number} imported from {one.package}" in done.stdout
    assert git(repository, "tag", "--list").split() == [f"v{number}"]
    assert f"next: git push origin v{number}" in done.stdout

    again = release(python, repository, index, "--publish")
    assert again.returncode == 1
    assert f"the tag v{number} exists" in again.stderr


def test_a_dry_run_says_what_is_missing_and_changes_nothing(python: Path, repository: Path, index: Index) -> None:
    number = version(repository)
    changes = repository / "CHANGELOG.md"
    changes.write_text(changes.read_text(encoding="utf-8").replace(f"## [{number}] - ", "## "), encoding="utf-8")
    done = release(python, repository, index, "--only", "lite-core")
    assert done.returncode == 0, done.stdout + done.stderr
    missing = re.findall(r"^- missing for a release: (.*)$", done.stdout, re.MULTILINE)
    assert len(missing) == 2
    assert f'CHANGELOG.md has no section "## [{number}] - DATE"' in missing[0]
    assert "files differ from the last one" in missing[1]

    refused = release(python, repository, index, "--publish")
    assert refused.returncode == 1
    assert all(line in refused.stderr for line in missing)
    assert index.names == []
    assert git(repository, "tag", "--list") == ""


def test_a_link_that_an_index_cannot_follow_stops_the_release(python: Path, repository: Path, index: Index) -> None:
    readme = repository / "plugins/lite_arm/README.md"
    readme.write_text(readme.read_text(encoding="utf-8") + '\n<a href="docs/arm.md">more</a>\n', encoding="utf-8")
    done = release(python, repository, index)
    assert done.returncode == 1
    assert "plugins/lite_arm/README.md: an index page cannot follow ['docs/arm.md']" in done.stderr
