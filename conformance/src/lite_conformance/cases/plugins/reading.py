"""Reading a model file with a format of a plugin, with checks of what every reader must keep to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lite_conformance.cases.plugins.files import FileCase
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.outcome import Failure
from lite_core import ops
from lite_core.errors import LiteError
from lite_core.formats import Format
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph

__all__ = ["Reader", "as_arrays", "claims", "computed", "opened"]

_OPEN_FILES = Path("/proc/self/fd")


class Reader:
    """A format with a model file in a folder of its own.

    Args:
        format: the format.
        case: the file.
        folder: an empty folder, which the file is put in.
    """

    def __init__(self, format: Format, case: FileCase, folder: Path) -> None:
        self.format = format
        self.case = case
        self.folder = folder
        self.path = case.put_in(folder, format.suffixes)

    def files(self) -> list[Path]:
        """Return every file of the model."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def read(self) -> Graph:
        """Read the undamaged file, which the format must recognise, and return a valid graph with inferred types.

        Raises:
            Failure: reading raised, kept a file open or changed a file, or the graph is not valid.
        """
        before = {path: path.read_bytes() for path in self.files()}
        if not claims(self.format, self.path):
            raise Failure(f"sniff() does not recognise the file {self.path.name!r}")
        try:
            graph = self.format.read(self.path, **self.case.options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise Failure(f"read() raised {type(error).__name__}: {error}") from error
        if not isinstance(graph, Graph):
            raise Failure(f"read() returned {type(graph).__name__}, not a Graph")
        self._require_closed("the model was read")
        if {path: path.read_bytes() for path in self.files()} != before:
            raise Failure("read() changed, added or removed files of the model")
        try:
            ops.verify(graph)
            infer_graph(graph)
        except LiteError as error:
            raise Failure(f"read() returned a graph that is not valid: {error}") from error
        return graph

    def read_damaged(self, what: str) -> None:
        """Read the file, which is damaged: a LiteError and a graph are both right, everything else is a Failure.

        Args:
            what: describes the damage, for the message.
        """
        try:
            claims(self.format, self.path)
            graph = self.format.read(self.path, **self.case.options)
            if isinstance(graph, Graph):
                ops.verify(graph)
                infer_graph(graph)
        except LiteError:
            pass
        except Failure as failure:
            raise Failure(f"{what}: {failure.reason}") from failure.__cause__
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            advice = "a reader raises ModelFormatError for a damaged file"
            raise Failure(f"{what}: read() raised {type(error).__name__}: {error}; {advice}") from error
        self._require_closed(f"{what} was read")

    def _require_closed(self, when: str) -> None:
        kept = [name for name in _open_files() if name.startswith(f"{self.folder.resolve()}{os.sep}")]
        if kept:
            raise Failure(f"the file {Path(kept[0]).name!r} is still open after {when}")


@contextmanager
def opened(format: Format, case: FileCase) -> Iterator[Reader]:
    """Provide a reader whose folder is removed at the end."""
    with TemporaryDirectory(prefix="lite-conformance-") as folder:
        yield Reader(format, case, Path(folder))


def claims(format: Format, path: Path) -> bool:
    """Return the answer of ``sniff``. Raises a Failure if it raises, or answers neither True nor False."""
    try:
        answer = format.sniff(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Failure(f"sniff() raised {type(error).__name__}: {error}; it must never raise") from error
    if not isinstance(answer, (bool, np.bool_)):
        raise Failure(f"sniff() answered {answer!r}; it must answer True or False")
    return bool(answer)


def computed(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Run a graph that was read with the references. Raises a Failure if that is not possible."""
    wanted = ", ".join(f"{v.name}: {v.type}" for v in graph.inputs) or "none"
    if len(arrays) != len(graph.inputs):
        raise Failure(f"the model has the inputs ({wanted}), the case gives {len(arrays)} array(s)")
    for value, array in zip(graph.inputs, arrays):
        if value.dtype.numpy != array.dtype or not value.type.accepts(array.shape):
            raise Failure(f"the model has the inputs ({wanted}), the case gives {array.dtype}{list(array.shape)}")
    try:
        return evaluate_graph(graph, arrays)
    except LiteError as error:
        raise Failure(f"the model cannot be computed: {error}") from error


def as_arrays(outputs: Any) -> list[Array]:
    """Return the outputs of a reference function, an array or several, as a list."""
    return [np.asarray(a) for a in (outputs if isinstance(outputs, (tuple, list)) else (outputs,))]


def _open_files() -> list[str]:
    """Return the paths of the files that this process has open; none where the system does not tell."""
    names = []
    for entry in os.listdir(_OPEN_FILES) if _OPEN_FILES.is_dir() else []:
        try:
            names.append(os.readlink(_OPEN_FILES / entry))
        except OSError:  # closed since, such as the listing itself
            continue
    return names
