"""Values of a run in a file, to compare two machines: the file is written on one and read on the other."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import DType
from lite_core.observing import Observed
from lite_core.version import __version__
from lite_tools.comparing.regions import Network
from lite_tools.comparing.sides import COARSENESS, Side
from lite_tools.comparing.spool import Spool
from lite_tools.comparing.values import Key, Seen, ValueObserver

__all__ = ["StoredTruth", "save_values"]

Array = np.ndarray[Any, Any]

_KIND = "lite compare values 1"


def save_values(path: Path, side: Side, inputs: Mapping[str, Array], model: str) -> int:
    """Run a side, and write its inputs, results and outputs to an .npz file; return the number of results.

    Results are written as they are computed, so that memory does not grow with them.

    Raises:
        OSError: the file cannot be written.
        LiteError: the run failed.
    """
    listed: list[list[Any]] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:

        def write(name: str, array: Array) -> list[Any]:
            plain = array.astype(str) if array.dtype.kind == "O" else array
            if plain.dtype.kind == "V":  # bfloat16 and others that NumPy's files do not know
                plain = plain.view(np.dtype(f"u{plain.dtype.itemsize}"))
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(plain, order="C"), allow_pickle=False)
            return [DType.of(array.dtype).value]

        def receive(key: Key, results: Observed) -> None:
            kind = write(f"value_{len(listed)}", results.read(key.value))
            listed.append([*key, results.kernel, results.device, list(results.nodes), *kind])

        given = [[name, *write(f"input_{number}", array)] for number, (name, array) in enumerate(inputs.items())]
        outputs = side.plan.run(side.run_inputs(inputs), observer=ValueObserver(receive))
        names = [value.name for value in side.plan.graph.outputs]
        made = [[name, *write(f"output_{number}", array)] for number, (name, array) in enumerate(zip(names, outputs))]
        about: dict[str, Any] = {"kind": _KIND, "lite": __version__, "model": model, "side": side.as_dict()}
        about |= {"inputs": given, "outputs": made, "values": listed}
        archive.writestr("about.json", json.dumps(about))
    return len(listed)


class StoredTruth:
    """A trusted side that was saved by :func:`save_values`.

    Attributes:
        label: its name, with the machine's file.
        precision: the coarsest type that it was computed in.
        inputs: the inputs of the run, by name.
        seen: its results.
        outputs: the outputs of the model, by name.
        network: None: the graph is not in the file.
        about: what the file says about the side.

    Raises:
        InputError: the file is damaged, or not one of values.
    """

    network: Network | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._archive = zipfile.ZipFile(path)
            if "about.json" not in self._archive.namelist():
                raise ValueError("it does not say what it contains")
            about = json.loads(self._archive.read("about.json"))
            if about["kind"] != _KIND:
                raise ValueError(f"it is {about['kind']!r}")
            self.about: dict[str, Any] = dict(about["side"])
            self.label = str(self.about["label"])
            self.precision = str(self.about["computed_in"])
            if self.precision not in COARSENESS:
                raise ValueError(f"its precision is {self.precision!r}")
            self.model = str(about["model"])
            self.inputs = {str(n): self._read(f"input_{i}", t) for i, (n, t) in enumerate(about["inputs"])}
            self.outputs: Mapping[str, Array] = {
                str(n): self._read(f"output_{i}", t) for i, (n, t) in enumerate(about["outputs"])
            }
            self._places: dict[Key, tuple[int, str]] = {}
            found: dict[Key, Seen] = {}
            for number, (name, occurrence, kernel, device, nodes, dtype) in enumerate(about["values"]):
                key = Key(str(name), int(occurrence))
                self._places[key] = number, str(dtype)
                found[key] = Seen(str(kernel), str(device), tuple(map(str, nodes)))
            self.seen: Mapping[Key, Seen] = found
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error}") from None
        # zipfile, json and NumPy raise many kinds for damaged files.
        except Exception as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        reason = str(error) or type(error).__name__
        return InputError(
            f"{self._path} is no file of values ({reason}); write one with `lite compare MODEL --a BACKEND --save FILE`"
        )

    def _read(self, name: str, dtype: str) -> Array:
        with self._archive.open(f"{name}.npy") as member:
            array: Array = np.lib.format.read_array(member, allow_pickle=False)
        wanted = DType(dtype).numpy
        if array.dtype == wanted:
            return array
        return array.astype(object) if wanted.kind == "O" else array.view(wanted)

    def get(self, key: Key) -> Array | None:
        """Return a result, or None if the run did not compute it."""
        if key not in self._places:
            return None
        number, dtype = self._places[key]
        try:
            return self._read(f"value_{number}", dtype)
        except Exception as error:  # as above
            raise self._damaged(error) from None

    def open(self, keys: Sequence[Key]) -> StoredTruth:
        """Return itself: results can be read in any order, any number of times."""
        return self

    def collect(self, keys: Sequence[Key], spool: Spool) -> None:
        """Copy some results into a spool."""
        for key in keys:
            array = self.get(key)
            if array is not None:
                spool.put(key, array)

    def __enter__(self) -> StoredTruth:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the file open: it is read again."""
