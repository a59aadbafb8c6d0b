"""Inputs of a session on the command line: files, and random numbers in the given, the prepared or a default shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from lite_core.container import ModelFile
from lite_core.session import Session
from lite_tools.cli.model_file import prepared_shapes
from lite_tools.commands.example_shapes import example_shapes, shape_words
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.next_commands import typed_command, with_next_command
from lite_tools.commands.open_batch import bound_shapes, notes_on_batches, open_batch_shapes

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
    *,
    takes_files: bool = True,
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
        takes_files: the command has the option ``--input``, for errors.
    """
    given, prepared = parse_shapes(session.inputs, shapes), prepared_shapes(file or session.file)
    arrays, sources = collect_inputs(
        session.inputs,
        files,
        given,
        image,
        seed,
        default_shapes=prepared,
        graph=session.graph,
        takes_files=takes_files,
    )
    known = {name: array.shape for name, array in arrays.items() if not sources[name].startswith("random")}
    return SessionInputs(arrays, sources, notes_on_batches(session.inputs, {**known, **given}, prepared))


def session_shapes(session: Session, shapes: Sequence[str]) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Return the shapes that a plan without arrays is made for, chosen as by :func:`session_inputs`, and the notes.

    Args:
        session: the session.
        shapes: the texts of ``--shape``.

    Raises:
        click.UsageError: the shape of an input is not known.
    """
    given, prepared = parse_shapes(session.inputs, shapes), prepared_shapes(session.file)
    batch, _ = open_batch_shapes(session.inputs)
    known = {**batch, **prepared, **bound_shapes(session.inputs, given), **given}
    unknown = {n: t for n, t in session.inputs.items() if n not in known and not t.is_static}
    if unknown:
        examples = example_shapes(session.inputs, given, session.graph)
        words = shape_words({name: examples[name] for name in unknown})
        listed = " and ".join(f"{name} is {type_}" for name, type_ in unknown.items())
        error = click.UsageError(f"input {listed}: give {'its shape' if len(unknown) == 1 else 'their shapes'}")
        raise with_next_command(error, typed_command(*words))
    return known, notes_on_batches(session.inputs, given, prepared)
