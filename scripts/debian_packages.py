"""Packages of Debian or Ubuntu, downloaded and unpacked into a folder without installing them.

apt runs with its state in a folder of its own: no root is needed, and nothing of the system changes. It uses the
system's package sources and keys, or other sources that are named.
"""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from collections.abc import Sequence
from pathlib import Path

__all__ = ["DebianPackages", "PackageError"]

#: Parts of packages that no program needs.
_LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/lintian")


class PackageError(Exception):
    """A package cannot be downloaded or unpacked; the message says what is missing."""


class DebianPackages:
    """The packages of one architecture.

    Args:
        folder: a folder for apt's lists and downloads.
        architecture: Debian's name of the architecture, such as ``arm64``.
        sources: a file in the format of ``sources.list`` or, with the suffix ``.sources``, of deb822; by default the
            system's own sources.
    """

    def __init__(self, folder: Path, architecture: str, sources: Path | None = None) -> None:
        self._folder = folder
        self._architecture = architecture
        self._sources = sources
        self._listed = False
        self._warnings = ""

    def unpack(self, names: Sequence[str], target: Path, without: Sequence[str] = ()) -> None:
        """Download packages with all that they depend on, and unpack them into a new folder.

        Args:
            names: the packages.
            target: the folder; it receives its name when it is complete.
            without: patterns of files to leave out, as tar's ``--exclude`` takes them.

        Raises:
            PackageError: a program is missing, the sources do not have a package, or a download failed.
        """
        self._update()
        archives = self._folder / "cache/archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        self._apt("--yes", "--download-only", "--no-install-recommends", "install", *names)
        unfinished = target.with_name(f"{target.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for archive in sorted(archives.glob("*.deb")):
            _unpack(archive, unfinished, (*_LEFT_OUT, *without))
            archive.unlink()
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)

    def _update(self) -> None:
        """Get the lists of packages, once for each object."""
        if self._listed:
            return
        for needed in ("apt-get", "dpkg-deb", "tar"):
            if shutil.which(needed) is None:
                raise PackageError(f"{needed} is missing: packages are unpacked with the tools of Debian or Ubuntu")
        for name in ("lists/partial", "cache/archives/partial", "etc", "log"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        # An empty list of installed packages, so that everything a package depends on is downloaded.
        (self._folder / "status").write_text("")
        (self._folder / "apt.conf").write_text(self._configuration())
        self._apt("update")
        self._listed = True

    def _configuration(self) -> str:
        settings = f"""\
            Dir::State "{self._folder}";
            Dir::State::status "{self._folder}/status";
            Dir::State::lists "{self._folder}/lists";
            Dir::Cache "{self._folder}/cache";
            Dir::Log "{self._folder}/log";
            # With --download-only nothing is installed; without dpkg nothing can be.
            Dir::Bin::dpkg "/bin/false";
            APT::Architecture "{self._architecture}";
            #clear APT::Architectures;
            APT::Architectures:: "{self._architecture}";
            APT::Sandbox::User "";
            Acquire::Languages "none";
            # The system's own actions after an update delete files of the system.
            #clear APT::Update::Pre-Invoke;
            #clear APT::Update::Post-Invoke;
            #clear APT::Update::Post-Invoke-Success;
            """
        if self._sources is not None:
            chosen = self._folder / "etc" / f"chosen{self._sources.suffix}"
            for old in chosen.parent.iterdir():
                old.unlink()
            shutil.copyfile(self._sources, chosen)
            settings += f"""\
            Dir::Etc::sourcelist "/dev/null";
            Dir::Etc::sourceparts "{chosen.parent}";
            """
        return textwrap.dedent(settings)

    def _apt(self, *arguments: str) -> None:
        command = ["apt-get", "--quiet=2", "-c", str(self._folder / "apt.conf"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        # `apt-get update` ends with 0 and warnings if a list cannot be had; then the next command finds no package.
        self._warnings += done.stderr[-1500:]
        if done.returncode:
            raise PackageError(
                f"`apt-get {' '.join(arguments)}` for {self._architecture} failed:\n{self._warnings.strip()}\n"
                "The package sources of this machine must be reachable and have packages for amd64 and arm64. Debian's "
                "do; Ubuntu has those for arm64 on a mirror of its own: name a file with such sources by --sources"
            )


def _unpack(archive: Path, folder: Path, without: Sequence[str]) -> None:
    content = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE)
    excluded = [f"--exclude={pattern}" for pattern in without]
    command = ["tar", "--extract", "--no-same-owner", "--directory", str(folder), *excluded]
    extracted = subprocess.run(command, stdin=content.stdout, stderr=subprocess.PIPE, text=True)
    assert content.stdout is not None
    content.stdout.close()
    if content.wait() or extracted.returncode:
        raise PackageError(f"{archive.name} cannot be unpacked into {folder}: {extracted.stderr.strip()[-500:]}")
