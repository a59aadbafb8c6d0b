"""Build every distribution as it is published, and check what an index and its users will get.

``python scripts/release.py`` builds source distributions and wheels into ``dist/``, checks them with twine and
check-wheel-contents, checks the links of each README as an index page shows it, and installs each wheel alone, with
only what it requires, in an environment of its own, where ``scripts/smoke.py`` uses it. Then it lists what is missing
for a release. It publishes nothing.

``--publish`` does the same. If nothing is missing, it then uploads the files of ``dist/`` with twine, which takes
credentials from its own configuration or asks for them, and tags the commit. ``make release`` makes the environment.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

from index_readmes import dead_links, for_index
from shared_metadata import files, shared
from workspace import ROOT, Distribution, distributions

__all__ = ["main", "missing"]

DIST = ROOT / "dist"
CHANGES = ROOT / "CHANGELOG.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check and, if asked, publish; return 0 if everything that was asked for is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publish", action="store_true", help="upload, and tag the commit, if nothing is missing")
    parser.add_argument("--only", action="append", metavar="NAME", help="install only this distribution; repeatable")
    options = parser.parse_args(arguments)
    version = shared().version
    absent = missing(version)
    if options.publish and (absent or options.only):
        return _refuse(absent or ["--only leaves out checks"])

    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="lite-release-") as folder:
        for distribution in distributions():
            build(distribution, Path(folder))
    wheels, archives = (sorted(p.relative_to(ROOT) for p in DIST.glob(form)) for form in ("*.whl", "*.tar.gz"))
    _call("-m", "twine", "--no-color", "check", "--strict", *wheels, *archives, quiet=True)
    _call("-m", "check_wheel_contents", "--no-config", *wheels, quiet=True)
    print(f"twine check --strict and check-wheel-contents: {len(wheels)} wheels, {len(archives)} source distributions")
    for distribution in distributions():
        if options.only is None or distribution.name in options.only:
            install_alone(distribution)
    print(f"\n{len(wheels)} wheels and {len(archives)} source distributions of version {version} pass: dist/")
    if not options.publish:
        print("nothing was tagged or uploaded: this takes make release PUBLISH=1")
        for line in absent:
            print(f"- missing for a release: {line}")
        return 0
    print("uploading; after an interruption, python -m twine upload dist/* uploads the rest, with --skip-existing if")
    print(f"the index has it, and git tag -a v{version} -m 'Lite {version}' makes the tag", flush=True)
    _call("-m", "twine", "--no-color", "upload", *wheels, *archives)
    _git("tag", "--annotate", f"v{version}", "--message", f"Lite {version}")
    print(f"published. next: git push origin v{version}")
    return 0


def missing(version: str) -> list[str]:
    """Return what must be done before a version can be published, one line for each."""
    lines = []
    different = [path.relative_to(ROOT).as_posix() for path, text in files().items() if path.read_text("utf-8") != text]
    if different:
        lines.append(f"{', '.join(different)} differ from [tool.workspace] in pyproject.toml: make docs")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", CHANGES.read_text("utf-8"), re.MULTILINE):
        lines.append(f'CHANGELOG.md has no section "## [{version}] - DATE": rename "## [Unreleased]"')
    if not shared().urls or not shared().pages:
        lines.append("the addresses of the project, [tool.workspace.urls] and pages in pyproject.toml")
    if _git("status", "--porcelain"):
        lines.append("a commit: files differ from the last one")
    if _git("tag", "--list", f"v{version}"):
        lines.append(f"another version: the tag v{version} exists (python scripts/shared_metadata.py --version NEXT)")
    return lines


def build(distribution: Distribution, folder: Path) -> None:
    """Build a distribution from a copy of its folder with the README for an index; the wheel from the sources in it."""
    from readme_renderer import markdown  # only where releases are made

    copy = folder / distribution.folder.name
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", str(distribution.folder))
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            target = copy / source.relative_to(distribution.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    readme = copy / "README.md"
    where = distribution.folder.relative_to(ROOT).as_posix()
    readme.write_text(for_index(readme.read_text("utf-8"), where, shared().pages), encoding="utf-8")
    html = markdown.render(readme.read_text("utf-8"))
    if html is None or dead_links(html):
        raise SystemExit(f"{where}/README.md: an index page cannot follow {dead_links(html or '') or 'it at all'}")
    print(f"building {distribution.name}", flush=True)
    _call("-m", "build", "--no-isolation", "--outdir", DIST, copy, quiet=True)


def install_alone(distribution: Distribution) -> None:
    """Install the wheel of a distribution with only what it requires, and use it."""
    (wheel,) = DIST.glob(f"{distribution.package}-*.whl")
    with tempfile.TemporaryDirectory(prefix="lite-release-") as folder:
        venv.create(Path(folder) / "environment", with_pip=True)
        python = Path(folder) / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        print(f"\n{wheel.name} in an environment of its own", flush=True)
        pip = ("-m", "pip", "--disable-pip-version-check")
        _call(*pip, "install", "--quiet", "--find-links", DIST, wheel, python=python, folder=folder)
        _call(*pip, "check", python=python, folder=folder, quiet=True)
        _call("-I", ROOT / "scripts/smoke.py", distribution.name, python=python, folder=folder)


def _refuse(absent: Sequence[str]) -> int:
    print("nothing was built or published; missing for a release:", *absent, sep="\n- ", file=sys.stderr)
    return 1


def _call(*arguments: str | Path, python: Path | None = None, folder: str | Path = ROOT, quiet: bool = False) -> None:
    """Run Python with arguments, outside of the caller's environment variables that could change what it finds."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LITE_", "PYTHON"))}
    environment["LITE_CACHE_DIR"] = environment["LITE_CONFIG_DIR"] = str(Path(folder) / "of-lite")
    command = [str(python or sys.executable), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=quiet, text=True)
    if done.returncode:
        raise SystemExit(
            f"{done.stdout or ''}{done.stderr or ''}failed with code {done.returncode}: {' '.join(command)}"
        )


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
