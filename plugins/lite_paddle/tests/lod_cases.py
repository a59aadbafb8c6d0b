"""Programs of Paddle 1.x on sequences (LoD), and their comparison with Paddle.

Paddle builds each program from the descriptions of its operators, in a process of its own (``lod_paddle.py``).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paddle_cases import paddle_is_installed

from lite_core import load

Array = np.ndarray[Any, Any]
#: An operator: its type, input slots, output slots and attributes; ``while`` has its body as an attribute.
Operator = tuple[str, dict[str, list[str]], dict[str, list[str]], dict[str, Any]]


@dataclass(frozen=True)
class Program:
    """A program, its inputs, each with the offsets of its levels of sequences, and its parameters.

    Attributes:
        types: element types of variables that are not float32.
        open: the first size of inputs without sequences is open, too.
        arrays: variables that are tensor arrays.
    """

    name: str
    feeds: Mapping[str, tuple[Array, Sequence[Sequence[int]]]]
    parameters: Mapping[str, Array]
    ops: Sequence[Operator]
    fetches: Sequence[str]
    types: Mapping[str, str] = field(default_factory=dict)
    open: bool = False
    arrays: Sequence[str] = ()


def export(programs: Sequence[Program], folder: Path) -> Path:
    """Store every program in a folder, with what Paddle makes of its inputs; return the folder."""
    if not paddle_is_installed():
        pytest.skip("PaddlePaddle is not installed; it exports the models and computes what is expected")
    cases = folder / "cases.pkl"
    cases.write_bytes(pickle.dumps([asdict(program) for program in programs]))
    command = [sys.executable, str(Path(__file__).with_name("lod_paddle.py")), str(cases), str(folder)]
    environment = {**os.environ, "FLAGS_enable_pir_api": "0", "GLOG_minloglevel": "2"}
    subprocess.run(command, env=environment, capture_output=True, timeout=600, check=True)
    return folder


def results(program: Program, folder: Path) -> list[tuple[Array, list[list[int]]]]:
    """Return Paddle's outputs, each with the offsets of its levels of sequences."""
    error = folder / f"{program.name}.error"
    assert not error.exists(), error.read_text()
    found: list[tuple[Array, list[list[int]]]] = pickle.loads((folder / f"{program.name}.results").read_bytes())
    return found


def check(program: Program, folder: Path, backend: str, *, lod: bool = True) -> None:
    """Compare a program's outputs and their offsets with Paddle's; without ``lod``, inputs are one sequence."""
    expected = results(program, folder)
    lod = lod and any(levels for _, levels in program.feeds.values())
    session = load(folder / f"{program.name}.pdmodel", backend, reader_options={"lod": True} if lod else None)
    feeds = {}
    for name, (array, levels) in program.feeds.items():
        feeds[name] = array
        for number, offsets in enumerate(levels if lod else ()):
            feeds[f"{name}.lod" if len(levels) == 1 else f"{name}.lod{number}"] = np.array(offsets)
    found = list(session.run(feeds).items())
    for (name, array), (wanted, _) in zip(found, expected):
        assert array.dtype == wanted.dtype, name
        assert array.shape == wanted.shape, name
        np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    offsets_found = {name: array.tolist() for name, array in found[len(expected) :]}
    for (name, _), (_, levels) in zip(found, expected):
        # Sequences of equal length, such as the columns of images, have no offsets.
        if len(levels) > 1 or (levels and len(set(np.diff(levels[0]).tolist())) > 1):
            labels = [f"{name}.lod"] if len(levels) == 1 else [f"{name}.lod{n}" for n in range(len(levels))]
            assert [offsets_found[label] for label in labels] == levels, name
