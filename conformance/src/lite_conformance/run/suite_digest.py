"""Digests of what a report depends on besides versions: the references, the tolerances and the cases.

An update of ``lite-core`` changes the truth although the suite keeps its version, and a checkout changes both without
any version: reports with equal digests were judged in the same way.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import lite_core

__all__ = ["PARTS", "suite_digests"]

_CORE, _SUITE = Path(lite_core.__file__).parent, Path(__file__).parents[1]
#: What has a digest: its name, and the folders with its code and data.
PARTS = {
    "references": (_CORE / "ops", _CORE / "ir"),
    "tolerances": (_SUITE / "judge",),
    "cases": (_SUITE / "cases", _SUITE / "drive"),
}
_DIGITS = 16
_LEFT_OUT = ("__pycache__",)


@cache
def suite_digests() -> dict[str, str]:
    """Return a digest of each part, 16 hexadecimal digits; line ends do not count, so that platforms agree."""
    return {name: _digest(folders) for name, folders in PARTS.items()}


def _digest(folders: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for folder in folders:
        files = (file for file in folder.rglob("*") if file.is_file() and not {*file.parts} & {*_LEFT_OUT})
        for name, file in sorted((file.relative_to(folder).as_posix(), file) for file in files):
            content = file.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{folder.name}/{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:_DIGITS]
