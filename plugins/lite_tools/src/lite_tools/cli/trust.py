"""``lite trust``: the code of which .lite files may be used on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lite_core.container import ModelFile
from lite_core.container.format import LITE_FORMAT
from lite_core.container.trust import trusted_digests, trusted_path
from lite_core.errors import ModelFormatError
from lite_core.private_files import read_private, write_private
from lite_tools.commands.conversions import size_text
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table

__all__ = ["command"]


@click.command("trust")
@click.argument("files", nargs=-1, type=click.Path())
@click.option("--show", is_flag=True, help="Show what the files contain, and trust nothing.")
@click.option("--remove", is_flag=True, help="Trust the files no longer.")
@click.option("--list", "listed", is_flag=True, help="List what is trusted.")
@json_option
def command(files: tuple[str, ...], show: bool, remove: bool, listed: bool, as_json: bool) -> None:
    """Trust the compiled code in FILES, .lite files that another user or another machine made.

    A file's code runs with all your rights. Without trust, a model is compiled again from its graph when it is loaded.
    Code that you convert on this machine is trusted already. The digest that is shown also serves in config.json, as
    {"trusted": ["DIGEST", ...]}, for machines whose configuration is read-only.
    """
    if listed == bool(files) or show + remove + listed > 1:
        raise click.UsageError("name one or more files, or --list; --show and --remove exclude each other")
    if listed:
        _print_list(as_json)
        return
    foreign = [file for file in files if Path(file).is_file() and not LITE_FORMAT.sniff(Path(file))]
    if foreign:
        raise ModelFormatError(
            f"not a .lite file: {', '.join(foreign)}. `lite trust` is for the compiled code in .lite files; other "
            "models contain none"
        )
    opened = [ModelFile.open(file) for file in files]
    if not show:
        without = [str(file.path) for file in opened if not file.has_code]
        if without:
            raise click.UsageError(f"no code in {', '.join(without)}: there is nothing to trust")
        uncovered = [str(file.path) for file in opened if not file.digest_covers_code]
        if uncovered and not remove:
            raise click.UsageError(
                f"the digest of {', '.join(uncovered)} leaves out code, so it cannot be trusted: it was not written by "
                "Lite; convert the model again"
            )
        _change_list(opened, remove)
    rows = [_description(file) for file in opened]
    if as_json:
        print_json({"files": rows})
        return
    for row in rows:
        state = "trusted" if row["trusted"] else "not trusted"
        console.print(f"{row['file']}: {state}; by {row['written_by']}, for {row['targets']}", markup=False)
        console.print(f"  code {size_text(row['code_bytes'])}, digest {row['digest']}", markup=False)


def _description(file: ModelFile) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "written_by": file.producer,
        "targets": ", ".join(" ".join(filter(None, (t.backend, t.level))) for t in file.targets if t.plans) or "none",
        "code_bytes": sum(section.size for section in file.sections if section.name.startswith("code/")),
        "digest": file.code_digest,
        "trusted": file.code_is_trusted("own"),
    }


def _change_list(files: Sequence[ModelFile], remove: bool) -> None:
    """Add the digests of files to the user's list, or remove them."""
    digests = {file.code_digest: file.path for file in files}
    lines = _lines()
    kept = [line for line in lines if not (remove and line.split()[0] in digests)]
    known = {line.split()[0] for line in kept}
    added = [] if remove else [f"{d} {Path(path).name!r}" for d, path in digests.items() if d not in known]
    if kept + added != lines:
        _write(kept + added)


def _lines() -> list[str]:
    try:
        return [line for line in read_private(trusted_path()).decode().splitlines() if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise click.ClickException(f"the list {trusted_path()} cannot be read: {error}") from error


def _write(lines: Sequence[str]) -> None:
    try:
        write_private(trusted_path(), "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise click.ClickException(f"the list {trusted_path()} cannot be written: {error}") from error


def _print_list(as_json: bool) -> None:
    names = {line.split()[0]: line.partition(" ")[2] for line in _lines()}
    rows = [(digest, names.get(digest, "config.json")) for digest in sorted(trusted_digests())]
    if as_json:
        print_json({"trusted": [{"digest": digest, "name": name} for digest, name in rows]})
    elif rows:
        table(("digest", "name"), rows)
    else:
        console.print("nothing is trusted besides what you convert on this machine", markup=False)
