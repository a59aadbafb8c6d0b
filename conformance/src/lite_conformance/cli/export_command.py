"""``lite-conformance export``: cases as folders in the form of ONNX's test data."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from lite_conformance.cases.case import Settings
from lite_conformance.cli import shared_options as shared
from lite_conformance.cli.progress import shown_progress
from lite_conformance.data_folders.exporting import export
from lite_conformance.judge.precision import LEVELS
from lite_conformance.run.selection import Selection, parse_level, parse_shard
from lite_tools.commands import EXIT_NOTHING, EXIT_OK, print_text

__all__ = ["command"]

_SHOWN_REASONS = 8


@click.command("export")
@click.argument("folder", type=click.Path(file_okay=False))
@shared.level
@shared.case
@shared.op
@shared.dtype
@shared.exclude
@shared.shard
@shared.sample
@shared.seed
@shared.examples
@click.option(
    "--precision",
    type=click.Choice(list(LEVELS)),
    metavar="LEVEL",
    default="float32",
    show_default=True,
    help=f"Judge float32 results as computed in fewer bits: {', '.join(LEVELS)}.",
)
@click.option(
    "--model", "models", multiple=True, type=click.Path(exists=True), help="A model to export for L4. Repeatable."
)
@shared.node_data
@shared.quiet
def command(
    folder: str,
    level: str,
    cases: tuple[str, ...],
    ops: tuple[str, ...],
    dtypes: tuple[str, ...],
    exclude: tuple[str, ...],
    shard: str,
    sample: int,
    seed: int,
    examples: int,
    precision: str,
    models: tuple[str, ...],
    node_data: str | None,
    quiet: bool,
) -> int:
    """Write cases to FOLDER, in the form of ONNX's own test data, for runtimes that Python cannot drive.

    Each case is NAME/model.onnx with NAME/test_data_set_0/input_0.pb and output_0.pb. FOLDER/index.json has its
    tolerance, and the cases that are left out. `lite-conformance judge` judges what the runtime computes.
    """
    settings = Settings("", seed, examples, models, node_data, None, precision)
    selection = Selection(parse_level(level), cases, ops, dtypes, exclude, None, parse_shard(shard), sample)
    with shown_progress("export", quiet) as progress:
        index = export(Path(folder), settings, selection, progress=progress)
    count = sum(len(entry.models) for entry in index.cases)
    print_text(f"{folder}: {len(index.cases):,} cases, {count:,} models")
    by_number = sorted(index.left_out.items(), key=lambda item: (-len(item[1]), item[0]))
    for reason, names in by_number[:_SHOWN_REASONS]:
        print_text(f"left out {len(names):>6,}  {' '.join(reason.split())}")
    if len(by_number) > _SHOWN_REASONS:
        rest = by_number[_SHOWN_REASONS:]
        print_text(f"left out {sum(len(names) for _, names in rest):>6,}  for {len(rest):,} other reasons")
    if not index.cases:
        return EXIT_NOTHING
    results = f"{folder.rstrip('/')}-results"
    print_text(f"run the models on your runtime, and write what it computes to {results}; then judge it")
    click.echo(f"next: {shlex.join(['lite-conformance', 'judge', folder, results, '--backend', 'my_runtime'])}")
    return EXIT_OK
