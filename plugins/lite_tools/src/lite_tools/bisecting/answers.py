"""The answers of a bisection in a file, from which an interrupted one goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.private_files import make_private_folder, read_private, write_private
from lite_core.storage import cache_folder
from lite_tools.bisecting.criteria import Judgement

__all__ = ["Answers", "arrays_hash", "graph_hash", "text_hash"]

Array = np.ndarray[Any, Any]

_SCHEMA_VERSION = 1


class Answers:
    """Judgements by configuration, stored in a file after each one.

    Without a file of the user, they are in Lite's cache folder, and :meth:`finish` removes them.

    Args:
        about: what is bisected and how, as JSON; answers are used again only for an equal one.
        file: the user's file; None for one in the cache folder, or for none if the cache is disabled.

    Raises:
        InputError: the user's file cannot be read, or is of another bisection.
    """

    def __init__(self, about: Mapping[str, Any], file: Path | None) -> None:
        self._about = json.loads(json.dumps(about))
        self._is_own = file is None
        folder = cache_folder("bisect")
        if file is None and folder is not None:
            file = folder / f"{text_hash(json.dumps(about, sort_keys=True))[:32]}.json"
        #: The file; None if nothing is stored.
        self.file = file
        self._found: dict[str, Judgement] = {}
        #: The configurations that were judged before this start.
        self.earlier: frozenset[str] = frozenset()
        if file is not None:
            self._read(file)

    @property
    def count(self) -> int:
        """The number of known judgements."""
        return len(self._found)

    def get(self, configuration: str) -> Judgement | None:
        """Return the judgement on a configuration, if it is known."""
        return self._found.get(configuration)

    def put(self, configuration: str, judgement: Judgement) -> None:
        """Store a judgement.

        Raises:
            InputError: the user's file cannot be written.
        """
        self._found[configuration] = judgement
        if self.file is None:
            return
        content = {"schema_version": _SCHEMA_VERSION, "about": self._about, "answers": self._found}
        data = json.dumps(content, indent=1).encode()
        try:
            if self._is_own:
                make_private_folder(self.file.parent)
                write_private(self.file, data)
            else:
                temporary = self.file.with_name(f"{self.file.name}.{os.getpid()}.tmp")
                temporary.write_bytes(data)
                os.replace(temporary, self.file)
        except OSError as error:
            if not self._is_own:
                raise InputError(f"the answers cannot be written to {str(self.file)!r}: {error}") from None
            self.file = None  # a bisection that cannot be resumed is better than none

    def forget(self) -> None:
        """Remove all answers, because they are of other kernels."""
        self._found.clear()
        self.earlier = frozenset()

    def finish(self) -> None:
        """Remove the file, unless it is the user's."""
        if self._is_own and self.file is not None:
            self.file.unlink(missing_ok=True)

    def _read(self, file: Path) -> None:
        if not os.path.lexists(file):
            return
        try:
            content = json.loads(read_private(file) if self._is_own else file.read_bytes())
            is_same = content["schema_version"] == _SCHEMA_VERSION and content["about"] == self._about
            found = {str(key): Judgement(str(v), str(reason)) for key, (v, reason) in content["answers"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            if self._is_own:
                return
            raise InputError(f"{str(file)!r} cannot be read as the answers of a bisection: {error}") from None
        if is_same:
            self._found, self.earlier = found, frozenset(found)
        elif not self._is_own:
            raise InputError(
                f"{str(file)!r} has the answers of another bisection (another model, input or option): name another "
                "file, or delete this one"
            )


def graph_hash(graph: Graph) -> str:
    """Return the SHA-256 of a graph with its constants, in hexadecimal."""
    digest = hashlib.sha256(str(graph).encode())
    for scope in graph.walk():
        digest.update("\n".join(node.name for node in scope.nodes).encode())
    for array in graph.every_constant():
        _add(digest, array)
    return digest.hexdigest()


def arrays_hash(arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of arrays with their names, in hexadecimal."""
    digest = hashlib.sha256("\n".join(arrays).encode())
    for array in arrays.values():
        _add(digest, array)
    return digest.hexdigest()


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _add(digest: Any, array: Array) -> None:
    digest.update(f"{array.dtype}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
