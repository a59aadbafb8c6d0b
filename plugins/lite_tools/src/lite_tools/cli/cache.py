"""``lite cache``: the cache folder; removing its entries, and filling it for programs that only read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lite_core.private_files import unsafe_reason
from lite_core.session import load
from lite_core.storage import cache_folder, cache_limit
from lite_tools.cli.model_file import prepared_shapes
from lite_tools.commands.conversions import size_text
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.notes import print_notes
from lite_tools.commands.options import (
    backend_option,
    backends_of,
    json_option,
    precision_option,
    shape_option,
    threads_option,
)
from lite_tools.commands.printing import console, print_json, table

#: The kinds of entries, which are the folders below the cache folder, and the names of their files.
_KINDS = {
    "kernels": ("*.kernel", "*.json"),
    "numba": ("*.numba",),
    "opencl": ("*.bin", "*.json"),
    "probing": ("*@*",),
    "tuning": ("*.json",),
}
_LEFT_BY_DEAD_PROCESSES = ("*.lock", "*.tmp")


@click.group("cache", invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show the folders of the cache, and whether they are used.

    The cache is the folder LITE_CACHE_DIR, else the cache folder of the user. A folder that other users can change is
    not used.
    """
    if context.invoked_subcommand is not None:
        return
    root, rows = _root(), [_row(kind) for kind in _KINDS]
    if as_json:
        print_json({"folder": root, "limit_bytes": cache_limit(), "kinds": rows})
        return
    table(
        ("kind", "entries", "size", "folder", "is used"),
        [(r["kind"], r["entries"], size_text(r["bytes"]), r["folder"], r["unsafe"] or "yes") for r in rows],
    )


@command.command("clear")
@click.argument("kind", type=click.Choice([*_KINDS]), required=False)
@json_option
def clear(kind: str | None, as_json: bool) -> None:
    """Remove all entries of the cache, or those of one KIND. Programs make what they need again."""
    rows = [_row(name) for name in ([kind] if kind else _KINDS)]
    for row in rows:
        if row["unsafe"]:  # other users could replace it by a link while entries are removed
            raise click.ClickException(f"{row['folder']} is not cleared: {row['unsafe']}")
    try:
        for path in [path for row in rows for path in _entries(row["kind"], *_LEFT_BY_DEAD_PROCESSES)]:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise click.ClickException(f"the cache is not cleared: {error}") from error
    if as_json:
        print_json({"removed": rows})
        return
    console.print(f"removed {sum(r['entries'] for r in rows)} entries, {size_text(sum(r['bytes'] for r in rows))}")


@command.command("fill")
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL...")
@shape_option("Shape of the input NAME, as in `lite run`. Repeatable.")
@precision_option
@backend_option
@threads_option
@json_option
def fill(
    models: tuple[str, ...],
    shapes: tuple[str, ...],
    precision: str | dict[str, str] | None,
    backend: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Run each MODEL once on random inputs, so that what it needs is compiled and stored in the cache.

    Only this user can read new entries. Root can fill a folder for all users, and then permit them to read it.
    """
    if reason := unsafe_reason(_root()):
        raise UnavailableError(f"the cache {_root()} is not used: {reason}", "lite cache")
    rows = []
    for model in models:
        before = _number_of_entries()
        session = load(model, backends_of(backend), threads, precision)
        given, defaults = parse_shapes(session.inputs, shapes), prepared_shapes(session.file)
        arrays, _ = collect_inputs(session.inputs, (), given, ImageOptions(), seed=0, default_shapes=defaults)
        session.run(arrays)
        print_notes(session.notes)
        rows.append({"model": model, "new_entries": _number_of_entries() - before})
    if as_json:
        print_json({"folder": _root(), "models": rows})
        return
    for row in rows:
        console.print(f"{row['model']}: {row['new_entries']} new entries in {_root()}", markup=False)


def _root() -> Path:
    root = cache_folder("")
    if root is None:
        raise UnavailableError("the cache is off", "LITE_CACHE_DIR=FOLDER lite cache")
    return root


def _entries(kind: str, *more: str) -> list[Path]:
    return [path for pattern in (*_KINDS[kind], *more) for path in (_root() / kind).glob(pattern)]


def _row(kind: str) -> dict[str, Any]:
    sizes = [path.lstat().st_size for path in _entries(kind)]
    folder = _root() / kind
    return {
        "kind": kind,
        "folder": folder,
        "entries": len(sizes),
        "bytes": sum(sizes),
        "unsafe": unsafe_reason(folder),
    }


def _number_of_entries() -> int:
    return sum(len(_entries(kind)) for kind in _KINDS if kind not in ("probing", "tuning"))
