"""The manifest of a submission: who submits what, made where, and a digest of every other file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lite_conformance.submission.strict_json import parse_object

__all__ = ["ENVIRONMENT_KEYS", "SCHEMA_VERSION", "FileEntry", "Manifest", "ProfileEntry", "environment_of"]

#: The version of the bundle's format, incremented when a file or field changes its meaning.
SCHEMA_VERSION = 1
_BACKEND = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
#: Keys of a report's header that all reports of a bundle share.
ENVIRONMENT_KEYS = (
    *("device", "device_name", "memory", "plugin", "api_version", "versions", "suite", "stack", "platform", "code"),
    "expectations_digest",
)


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """A profile that the backend conforms to: its name, and the version, size and digest of its must-pass list."""

    name: str
    version: int
    cases: int
    digest: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The size of a file in bytes, and its SHA-256 in hexadecimal digits."""

    size: int
    sha256: str

    @staticmethod
    def of(content: bytes) -> FileEntry:
        """Return the entry of a file with this content."""
        return FileEntry(len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest.

    Attributes:
        backend: the backend's name.
        command: the command that made the bundle.
        created: when, in ISO 8601.
        seed: the seed of all random numbers.
        profiles: the profiles.
        environment: the values of :data:`ENVIRONMENT_KEYS` in the headers of the reports.
        files: every other file of the bundle.
    """

    backend: str
    command: str
    created: str
    seed: int
    profiles: tuple[ProfileEntry, ...]
    environment: Mapping[str, Any]
    files: Mapping[str, FileEntry] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the contents of ``manifest.json``."""
        plain = {
            "schema_version": SCHEMA_VERSION,
            "backend": self.backend,
            "command": self.command,
            "created": self.created,
            "seed": self.seed,
            "profiles": [{name: getattr(p, name) for name in ProfileEntry.__slots__} for p in self.profiles],
            "environment": dict(self.environment),
            "files": {name: {"size": f.size, "sha256": f.sha256} for name, f in sorted(self.files.items())},
        }
        return (json.dumps(plain, indent=1) + "\n").encode()

    @staticmethod
    def from_bytes(content: bytes) -> Manifest:
        """Parse ``manifest.json``.

        Raises:
            ValueError: it is not JSON, has another schema version, or a field has another type.
        """
        given = parse_object(content)
        if given.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(
                f"its schema version is {given.get('schema_version')!r}, this suite knows {SCHEMA_VERSION}; "
                "verify it with the version of lite-conformance that made it"
            )
        profiles = _typed(given, "profiles", list)
        environment = _typed(given, "environment", dict)
        seed, backend = _typed(given, "seed", int), _typed(given, "backend", str)
        if seed < 0:
            raise ValueError(f"seed must be at least 0, is {seed}")
        # NOTE: only the name of an installed backend: `file.py:attribute` would run a file when cases are repeated.
        if not _BACKEND.fullmatch(backend):
            raise ValueError(f"{backend!r} is not the name of a backend")
        if missing := sorted({*ENVIRONMENT_KEYS} - environment.keys()):
            raise ValueError(f"environment has no {missing[0]!r}")
        return Manifest(
            backend,
            _typed(given, "command", str),
            _typed(given, "created", str),
            seed,
            tuple(_entry(ProfileEntry, profile) for profile in profiles),
            environment,
            {name: _entry(FileEntry, file) for name, file in _typed(given, "files", dict).items()},
        )


def environment_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment that the header of a report names."""
    return {key: header.get(key, "") for key in ENVIRONMENT_KEYS}


def _typed(given: Mapping[str, Any], key: str, kind: type) -> Any:
    value = given.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key} must be of type {kind.__name__}, is {value!r}")
    return value


def _entry(kind: type[Any], given: Any) -> Any:
    if not isinstance(given, dict) or given.keys() != {*kind.__slots__}:
        raise ValueError(f"expected {', '.join(kind.__slots__)}, found {given!r}")
    types = {"int": int, "str": str}
    return kind(**{name: _typed(given, name, types[kind.__annotations__[name]]) for name in kind.__slots__})
