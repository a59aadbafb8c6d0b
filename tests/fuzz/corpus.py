"""The inputs of a target on disk: committed cases, the growing corpus of this machine, findings."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from fuzz.execution import Finding

__all__ = ["ROOT", "Corpus", "committed_cases"]

ROOT = Path(__file__).resolve().parents[2]
_COMMITTED = Path(__file__).parent / "corpus"


def committed_cases(target: str) -> list[Path]:
    """Return the committed inputs of a target."""
    return sorted(file for file in (_COMMITTED / target).glob("*") if file.is_file())


class Corpus:
    """The folder of a target in ``out/fuzz``.

    Attributes:
        folder: the folder.
        seeds: the folder of valid inputs, written anew by every worker.
        inputs: the folder of inputs that reached something new.
        findings: the folder of inputs that broke a rule, each with a text file of the same name.
    """

    def __init__(self, target: str, folder: Path = ROOT / "out/fuzz") -> None:
        self.target = target
        self.folder = folder / target
        self.seeds, self.inputs, self.findings = (self.folder / name for name in ("seeds", "corpus", "findings"))
        for made in (self.seeds, self.inputs, self.findings):
            made.mkdir(parents=True, exist_ok=True)

    def write_seeds(self, seeds: Iterable[bytes]) -> None:
        """Write the seeds and the committed cases."""
        for data in (*seeds, *(file.read_bytes() for file in committed_cases(self.target))):
            (self.seeds / _name(data)).write_bytes(data)

    def every_input(self) -> Iterator[bytes]:
        """Yield the seeds and the inputs."""
        for folder in (self.seeds, self.inputs):
            for file in sorted(folder.iterdir()):
                yield file.read_bytes()

    def add(self, data: bytes) -> None:
        """Keep an input that reached something new."""
        (self.inputs / _name(data)).write_bytes(data)

    def file_of(self, finding: Finding) -> Path:
        """Return the path of a finding's input; findings with the same key share it."""
        return self.findings / f"{finding.kind}-{hashlib.sha256(finding.key.encode()).hexdigest()[:12]}"

    def store(self, finding: Finding, data: bytes) -> None:
        """Store a finding; the shortest input of its key is kept."""
        file = self.file_of(finding)
        if not file.exists() or file.stat().st_size > len(data):
            file.write_bytes(data)
            file.with_suffix(".txt").write_text(f"{finding.key}\n\n{finding.detail}", errors="backslashreplace")
        os.utime(file)

    def findings_since(self, start: float) -> list[Path]:
        """Return the inputs of findings that were made or made again since a time."""
        files = (file for file in self.findings.iterdir() if file.suffix != ".txt")
        return sorted(file for file in files if file.stat().st_mtime >= start)


def _name(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
