"""``lite cache``: the cache folder; removing its entries, and filling it for programs that only read it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from lite_core.errors import InputError
from lite_core.log import tracked
from lite_core.private_files import unsafe_reason
from lite_core.session import load
from lite_core.storage import cache_folder, cache_limit
from lite_tools.cli.session_inputs import session_inputs
from lite_tools.commands.conversions import size_text
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.inputs import ImageOptions
from lite_tools.commands.next_commands import with_correction
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
from lite_tools.commands.progress import set_progress
from lite_tools.commands.suggestions import similar_file
from lite_tools.commands.value_types import MODEL_FILE


class _Kind(NamedTuple):
    """A kind of entries, which is the folder of its name below the cache folder.

    Attributes:
        package: the package that makes them.
        contents: what they are.
        patterns: the names of their files, or of folders.
    """

    package: str
    contents: str
    patterns: tuple[str, ...]


_KINDS = {
    "kernels": _Kind("lite-cpu", "compiled kernels of x86 and arm, and the kernels chosen", ("*.kernel", "*.json")),
    "opencl": _Kind("lite-opencl", "built programs, and the kernels chosen", ("*.bin", "*.json")),
    "numba": _Kind("lite-numba", "compiled loops", ("*.numba",)),
    "tuning": _Kind("lite-x86", "what `lite tune` has measured", ("*.json",)),
    "probing": _Kind("lite-core", "marks of drivers that were being asked", ("*@*",)),
    "bisect": _Kind("lite-tools", "answers of interrupted bisections", ("*.json",)),
    "completion": _Kind("lite-tools", "commands and names, for shells", ("*.json",)),
    "conformance": _Kind("lite-conformance", "cases that failed last, and interrupted runs", ("*.json", "*.jsonl")),
    "onnx-node-data": _Kind("lite-conformance", "unpacked data of ONNX's tests", ("node-data-*",)),
}
#: The kinds whose entries a run of a model adds.
_FILLED = ("kernels", "opencl", "numba")
_LEFT_BY_DEAD_PROCESSES = ("*.lock", "*.tmp")


@click.group("cache", invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show where the cache is, what is in it, and how large it is.

    The cache is the folder LITE_CACHE_DIR, else the cache folder of the user. A folder that other users can change is
    not used. Everything in it is made again when it is needed.
    """
    if context.invoked_subcommand is not None:
        return
    root, rows, limit = _root(), [_row(kind) for kind in _KINDS], cache_limit()
    if as_json:
        print_json({"folder": root, "limit_bytes": limit, "kinds": rows})
        return
    most = "" if limit == float("inf") else f", at most {size_text(int(limit))} of each kind"
    console.print(f"{root}: {_size(rows)}{most}\n", markup=False)
    shown = [row for row in rows if row["entries"] or row["unsafe"]]
    if shown:
        table(
            ("kind", "package", "contents", "entries", "size"),
            [(r["kind"], r["package"], r["contents"], r["entries"], size_text(r["bytes"])) for r in shown],
        )
    for reason in dict.fromkeys(row["unsafe"] for row in rows if row["unsafe"]):
        console.print(f"not used: {reason}", markup=False)


@command.command("clear")
@click.argument("kinds", type=click.Choice([*_KINDS]), nargs=-1, metavar="[KIND]...")
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Remove them without a question.")
@json_option
def clear(kinds: tuple[str, ...], is_sure: bool, as_json: bool) -> int:
    """Remove the entries of each KIND, or all. Programs make what they need again.

    `lite cache` lists the kinds. Other files in these folders stay.
    """
    rows = [_row(name) for name in dict.fromkeys(kinds or _KINDS)]
    for row in rows:
        if row["unsafe"]:  # other users could replace it by a link while entries are removed
            raise click.ClickException(f"{row['folder']} is not cleared: {row['unsafe']}")
    if not is_sure and any(row["entries"] for row in rows) and not _is_confirmed(rows, as_json):
        console.print("nothing was removed")
        return EXIT_FAILURE
    try:
        for row in rows:
            for path in tracked(_entries(row["kind"], *_LEFT_BY_DEAD_PROCESSES), f"removing {row['kind']}"):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
    except OSError as error:
        raise click.ClickException(f"the cache is not cleared: {error}") from error
    if as_json:
        print_json({"removed": rows})
    else:
        console.print(f"removed {_size(rows)}")
    return EXIT_OK


def _is_confirmed(rows: list[dict[str, Any]], as_json: bool) -> bool:
    """Ask the user whether entries are removed.

    Raises:
        click.UsageError: there is nobody to ask.
    """
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("this removes entries without a question only with --yes: add it")
    listed = ", ".join(f"{row['kind']} ({row['entries']})" for row in rows if row["entries"])
    return click.confirm(f"{_root()}: remove {_size(rows)}: {listed}?")


@command.command("fill")
@click.argument("models", nargs=-1, required=True, type=MODEL_FILE, metavar="MODEL...")
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
    by_presence = sorted(models, key=os.path.exists)  # a model that is not there is an error before any other runs
    for model in tracked(by_presence, "filling the cache, models"):
        before = _number_of_entries()
        set_progress(f"running {Path(model).name}")
        try:
            session = load(model, backends_of(backend), threads, precision)
        except InputError as error:
            near = [] if os.path.exists(model) else [similar_file(model)]
            raise with_correction(error, model, [*filter(None, near)], "lite cache fill --help") from None
        arrays, _, notes = session_inputs(session, (), shapes, ImageOptions(), seed=0, takes_files=False)
        print_notes(notes)
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
        raise UnavailableError("the cache is off", "LITE_CACHE_DIR=lite-cache lite cache")
    return root


def _entries(kind: str, *more: str) -> list[Path]:
    return [path for pattern in (*_KINDS[kind].patterns, *more) for path in (_root() / kind).glob(pattern)]


def _row(kind: str) -> dict[str, Any]:
    sizes = [_bytes(path) for path in _entries(kind)]
    folder = _root() / kind
    return {
        "kind": kind,
        "package": _KINDS[kind].package,
        "contents": _KINDS[kind].contents,
        "folder": folder,
        "entries": len(sizes),
        "bytes": sum(sizes),
        "unsafe": unsafe_reason(folder),
    }


def _bytes(path: Path) -> int:
    """Return the size of an entry, a file or a folder; 0 if another process has just removed it."""
    try:
        is_folder = path.is_dir() and not path.is_symlink()
        return sum(map(_bytes, path.iterdir())) if is_folder else path.lstat().st_size
    except FileNotFoundError:
        return 0


def _size(rows: list[dict[str, Any]]) -> str:
    count = sum(row["entries"] for row in rows)
    return f"{count:,} {'entry' if count == 1 else 'entries'}, {size_text(sum(row['bytes'] for row in rows))}"


def _number_of_entries() -> int:
    return sum(len(_entries(kind)) for kind in _FILLED)
