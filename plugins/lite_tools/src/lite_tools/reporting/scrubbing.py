"""Removal of private names from texts: the user, the host, the model's path, and all paths but those of the system."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["OWN_MODELS", "Scrubber", "shared_variables"]

#: The names of models in a report, which its commands contain.
OWN_MODELS = ("model.lite", "node.lite")
#: Environment variables that a report may contain, with their values; all others are left out.
_SHARED = re.compile(r"(LITE_|GLOG_).*|[A-Z]+_(NUM_THREADS|DYNAMIC)|KMP_[A-Z_]+|OMP_[A-Z_]+")
#: Folders of the system, which are alike on many machines and tell where libraries were found.
_OF_THE_SYSTEM = ("usr", "lib", "lib64", "bin", "sbin", "etc", "opt", "proc", "sys", "dev", "System", "Library")
#: Files whose names are kept: programs and libraries, which stack traces and searches name.
_KEPT_SUFFIXES = (".py", ".pyc", ".so", ".dll", ".dylib", ".pyd", ".icd")
#: Names of users and machines that tell nothing about them, and that are words of reports.
_COMMON = frozenset(
    (
        *("root", "localhost", "localhost.localdomain", "admin", "user", "test", "host", "lite", "model", "node"),
        *("linux", "ubuntu", "x86", "x86_64", "arm", "arm64", "aarch64", "opencl", "onnx", "onnxruntime", "paddle"),
        *("python", "numpy"),
    )
)
_SHORTEST_NAME = 3
#: A path as it occurs in messages, without spaces and quotation marks.
_PATH = re.compile(r"""(?<![\w.~/\\<>-])(?:/(?:[^\s"'`,;:()<>\[\]{}|]+)|[A-Za-z]:\\[^\s"'`,;()<>\[\]{}|]+)""")


def shared_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Lite, of logs and of numbers of threads among environment variables."""
    return {name: value for name, value in sorted(environment.items()) if _SHARED.fullmatch(name)}


@dataclass(frozen=True)
class Scrubber:
    """The private names to remove.

    Attributes:
        model: the path of the model as the user wrote it; it becomes ``<model>``.
        home: the user's folder; paths inside become ``<home>/...``.
        user: the user's name, which becomes ``<user>``.
        host: the machine's name, which becomes ``<host>``.
        folders: paths of folders with the words that replace them, such as the folder of Python's packages.
    """

    model: str = ""
    home: str = ""
    user: str = ""
    host: str = ""
    folders: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def for_this_machine(model: str) -> Scrubber:
        """Return a scrubber for this process's user, on this machine."""
        packages = [path for path in sys.path if os.path.isabs(path)]
        folders = [
            *((path, "<packages>") for path in packages),
            (sys.prefix, "<python>"),
            (sys.base_prefix, "<python>"),
        ]
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):  # a container without an entry for its user
            user = ""
        return Scrubber(model, os.path.expanduser("~"), user, socket.gethostname(), tuple(folders))

    def text(self, text: str) -> str:
        """Return a text without the private names."""
        for path in self._paths_of_model():
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", "<model>", text)
        if folder := Path(self.model).name:  # the files of a model that is a folder
            text = re.sub(rf"(?<![\w./\\-]){re.escape(folder)}(?=[/\\])", "<model>", text)
        for folder, word in sorted(self.folders, key=lambda pair: -len(pair[0])):
            if len(folder) > 1:
                text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?=[/\\]|\b)(?![\w.-])", word, text)
        if len(self.home) > 1:
            text = re.sub(
                rf"(?<![\w.-]){re.escape(self.home)}(?:[/\\]([^\s\"'`,;:()<>|]*)|(?![\w.-]))", self._in_home, text
            )
        text = _PATH.sub(self._path, text)
        for name, word in self._names():
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", word, text, flags=re.IGNORECASE)
        return text

    def data(self, data: Any) -> Any:
        """Return plain data, lists and dictionaries of texts and numbers, without the private names."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, Mapping):
            return {self.text(str(key)): self.data(value) for key, value in data.items()}
        return [self.data(item) for item in data] if isinstance(data, (list, tuple)) else data

    def found_in(self, content: bytes) -> list[str]:
        """Return which private names a file contains that cannot be scrubbed: ``<home>``, ``<user>``, ``<host>``."""
        home = [(self.home, "<home>")] if len(self.home) > 1 and self.home != "/root" else []
        return [word for name, word in (*home, *self._names()) if name.encode().lower() in content.lower()]

    def _paths_of_model(self) -> Sequence[str]:
        """Return the texts that are the model's path, the longest first; a name without a suffix may be any word."""
        if not self.model:
            return []
        path = Path(self.model)
        found = {os.path.abspath(self.model), os.path.realpath(self.model)}
        found |= {self.model} if len(path.parts) > 1 else set()
        found |= {path.name} if path.suffix and path.name not in OWN_MODELS else set()
        return sorted(found, key=len, reverse=True)

    def _names(self) -> list[tuple[str, str]]:
        short = self.host.partition(".")[0]
        names = [(self.host, "<host>"), (short, "<host>"), (self.user, "<user>")]
        return [(n, word) for n, word in names if len(n) >= _SHORTEST_NAME and n.lower() not in _COMMON]

    def _in_home(self, found: re.Match[str]) -> str:
        return f"<home>/{_kept(found.group(1))}" if found.group(1) else "<home>"

    def _path(self, found: re.Match[str]) -> str:
        """Return the replacement for what looks like a path; names of nodes look like paths, too."""
        path = found.group()
        parts = re.split(r"[/\\]", path)
        first = parts[1] if len(parts) > 1 else ""
        is_path = ":" in parts[0] or os.path.isdir(f"/{first}")
        return f"<path>/{_kept(path)}" if is_path and first and first not in _OF_THE_SYSTEM else path


def _kept(path: str) -> str:
    """Return what is kept of a private path: the folder and the name of a program or a library, else ``...``."""
    parts = [part for part in re.split(r"[/\\]", path) if part]
    return "/".join(parts[-2:]) if parts and parts[-1].endswith(_KEPT_SUFFIXES) else "..."
