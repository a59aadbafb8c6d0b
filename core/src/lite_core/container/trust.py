"""Trust in the code of a model file: machine code, native programs with their tables, device binaries.

Code runs with all the rights of the process that loads it, so a file's code is used only if this user made it on this
machine, or trusts it explicitly. A file carries a seal: the HMAC-SHA256 of a digest of its code, with a key that only
this user can read. The digest also covers the graph, the targets and the constants that may be sizes or indices, so
that code is never run with another graph than its own. Weights are not covered: they cannot make code leave its memory,
and a start need not read all of them.

Digests that are trusted are listed in the file ``trusted`` in the configuration folder, which `lite trust` writes, and
under ``trusted`` in ``config.json``.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from lite_core.errors import InputError
from lite_core.private_files import read_private
from lite_core.storage import configuration, configuration_folder

__all__ = [
    "KEY_BYTES",
    "SAVED",
    "code_digest",
    "is_trusted",
    "key_path",
    "own_seal",
    "saved_setting",
    "trusted_digests",
    "trusted_path",
]

#: Values of ``saved=`` and LITE_SAVED: use the user's own and listed code, any code, or none.
SAVED = ("own", "trust", "ignore")
KEY_BYTES = 32


def saved_setting(saved: str | None) -> str:
    """Return ``saved``, or LITE_SAVED if it is None, or ``own``. Raises InputError for any other value."""
    name, value = ("saved", saved) if saved is not None else ("LITE_SAVED", os.environ.get("LITE_SAVED") or SAVED[0])
    if value not in SAVED:
        raise InputError(f"{name} must be one of {', '.join(SAVED)}, is {value!r}")
    return value


def code_digest(sealed: Mapping[str, bytes | memoryview]) -> str:
    """Return the SHA-256, as hexadecimal text, of the names, sizes and contents of the sealed sections of a file."""
    digest = hashlib.sha256(b"lite sealed sections\0")
    for name, content in sorted(sealed.items(), key=lambda item: item[0]):
        encoded = name.encode()
        digest.update(b"%d %d " % (len(encoded), memoryview(content).nbytes) + encoded)
        digest.update(content)
    return digest.hexdigest()


def is_trusted(digest: str, seal: str) -> bool:
    """Return True if this user made the code of this digest, or listed the digest as trusted."""
    try:
        own = bool(seal) and hmac.compare_digest(own_seal(digest).encode(), seal.encode(errors="replace"))
    except OSError:
        own = False
    return own or digest in trusted_digests()


def own_seal(digest: str) -> str:
    """Return the seal of code that this user made. Raises OSError if there is no key, or it cannot be read."""
    key = read_private(key_path())
    if hasattr(os, "geteuid") and key_path().stat().st_mode & 0o077:
        raise OSError("other users can read the key; delete it, and convert your models again")
    if len(key) != KEY_BYTES:
        raise OSError(f"the key has {len(key)} bytes, not {KEY_BYTES}; delete it, and convert your models again")
    return hmac.new(key, digest.encode(), hashlib.sha256).hexdigest()


def key_path() -> Path:
    """Return the path of the user's key, which the first conversion makes."""
    return configuration_folder() / "key"


def trusted_digests() -> frozenset[str]:
    """Return the digests that the user trusts, from both lists; a list that cannot be read counts as empty."""
    configured = configuration().get("trusted", ())
    listed = [text for text in configured if isinstance(text, str)] if isinstance(configured, (list, tuple)) else []
    try:
        lines = read_private(trusted_path()).decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return frozenset([*listed, *(line.split()[0] for line in lines if line.strip())])


def trusted_path() -> Path:
    """Return the path of the list that `lite trust` writes: a digest and a name in each line."""
    return configuration_folder() / "trusted"
