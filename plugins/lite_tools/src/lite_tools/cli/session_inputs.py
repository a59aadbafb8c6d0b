"""Inputs of a session on the command line: files, and random numbers in the given, the prepared or a default shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from lite_core.container import ModelFile
from lite_core.session import Session
from lite_tools.cli.model_file import prepared_shapes
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.open_batch import open_batch_shapes

__all__ = ["SessionInputs", "session_inputs", "session_shapes"]


class SessionInputs(NamedTuple):
    """The inputs of a session.

    Attributes:
        arrays: an array for each input, by name.
        sources: the source of each array in words.
        notes: a sentence for each input whose batch was left open, so that one item was taken.
    """

    arrays: dict[str, np.ndarray[Any, Any]]
    sources: dict[str, str]
    notes: list[str]


def session_inputs(
    session: Session,
    files: Sequence[str],
    shapes: Sequence[str],
    image: ImageOptions,
    seed: int,
    file: ModelFile | None = None,
) -> SessionInputs:
    """Return an array for each input of a session.

    The shape of random numbers is the given one, else the first that a .lite file is prepared for, else one item if the
    model leaves only the batch open.

    Args:
        session: the session.
        files: the texts of ``--input``.
        shapes: the texts of ``--shape``.
        image: the preprocessing of images.
        seed: the seed of random numbers.
        file: the .lite file whose prepared shapes are taken; by default that of the session.
    """
    given, (batch, notes) = parse_shapes(session.inputs, shapes), open_batch_shapes(session.inputs)
    prepared = prepared_shapes(file or session.file)
    arrays, sources = collect_inputs(session.inputs, files, given, image, seed, default_shapes={**batch, **prepared})
    taken = {name for name in batch if sources[name].startswith("random")} - {*given, *prepared}
    return SessionInputs(arrays, sources, [note for name, note in zip(batch, notes) if name in taken])


def session_shapes(session: Session, shapes: Sequence[str]) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Return the shapes that a plan without arrays is made for, chosen as by :func:`session_inputs`, and the notes.

    Args:
        session: the session.
        shapes: the texts of ``--shape``.

    Raises:
        click.UsageError: the shape of an input is not known.
    """
    known = {**prepared_shapes(session.file), **parse_shapes(session.inputs, shapes)}
    batch, notes = open_batch_shapes(session.inputs)
    for name, type_ in session.inputs.items():
        if name not in known and name not in batch and not type_.is_static:
            raise click.UsageError(f"input {name} is {type_}: give its shape, as in --shape {name}=1x3x224x224")
    return {**batch, **known}, [note for name, note in zip(batch, notes) if name not in known]
