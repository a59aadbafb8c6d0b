"""``lite-conformance export``: cases as folders in the form of ONNX's test data."""

from __future__ import annotations

from pathlib import Path

import click

from lite_conformance.cases.case import Settings
from lite_conformance.cli.progress import shown_progress
from lite_conformance.data_folders.exporting import export
from lite_conformance.judge.precision import LEVELS
from lite_conformance.run.selection import Selection, parse_level, parse_shard
from lite_tools.commands import EXIT_NOTHING, EXIT_OK

__all__ = ["command"]

_SHOWN_REASONS = 8


@click.command("export")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--level", "-l", default="L5", show_default=True, help="L2: levels 0 to 2. L2-L3: these only.")
@click.option("--case", "cases", multiple=True, help="Only cases with this name; * and ? are wildcards. Repeatable.")
@click.option("--op", "ops", multiple=True, help="Only cases of this operator: Conv, 'lite.*'. Repeatable.")
@click.option("--dtype", "dtypes", multiple=True, help="Only cases in this element type: float16 or f16. Repeatable.")
@click.option("--exclude", multiple=True, help="Leave out the cases with this name, with wildcards. Repeatable.")
@click.option("--shard", default="1/1", help="i/n: the i-th of n parts of equal size, which together are the whole.")
@click.option(
    "--sample",
    default=0,
    metavar="COUNT",
    type=click.IntRange(0),
    help="Only COUNT cases, of every operator and element type alike; --seed decides which.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of all random numbers.")
@click.option(
    "--examples", default=20, show_default=True, type=click.IntRange(1), help="Random examples per operator and type."
)
@click.option(
    "--precision",
    type=click.Choice(list(LEVELS)),
    default="float32",
    show_default=True,
    help="Judge float32 results as computed in fewer bits.",
)
@click.option(
    "--model", "models", multiple=True, type=click.Path(exists=True), help="A model to export for L4. Repeatable."
)
@click.option(
    "--node-data",
    type=click.Path(exists=True),
    help="The ONNX project's node data: a folder, or the wheel of onnx 1.17.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the summary.")
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
    click.echo(f"{folder}: {len(index.cases):,} cases, {count:,} models")
    by_number = sorted(index.left_out.items(), key=lambda item: (-len(item[1]), item[0]))
    for reason, names in by_number[:_SHOWN_REASONS]:
        click.echo(f"left out {len(names):>6,}  {' '.join(reason.split())}")
    if len(by_number) > _SHOWN_REASONS:
        rest = by_number[_SHOWN_REASONS:]
        click.echo(f"left out {sum(len(names) for _, names in rest):>6,}  for {len(rest):,} other reasons")
    if not index.cases:
        return EXIT_NOTHING
    click.echo(f"next: run the models, then lite-conformance judge {folder} RESULTS --backend NAME")
    return EXIT_OK
