"""Options that several commands have, with the same meaning in each."""

from __future__ import annotations

import click

__all__ = [
    "case",
    "dtype",
    "examples",
    "exclude",
    "html_report",
    "jobs",
    "json_report",
    "junit_report",
    "level",
    "node_data",
    "op",
    "quiet",
    "sample",
    "seed",
    "shard",
    "timeout",
]

# **** which cases ****

level = click.option("--level", "-l", default="L5", show_default=True, help="L2: levels 0 to 2. L2-L3: these only.")
case = click.option(
    "--case", "cases", multiple=True, help="Only cases with this name; * and ? are wildcards. Repeatable."
)
op = click.option("--op", "ops", multiple=True, help="Only cases of this operator: Conv, 'lite.*'. Repeatable.")
dtype = click.option(
    "--dtype", "dtypes", multiple=True, help="Only cases in this element type: float16 or f16. Repeatable."
)
exclude = click.option(
    "--exclude", multiple=True, help="Leave out the cases with this name, with wildcards. Repeatable."
)
shard = click.option(
    "--shard", default="1/1", help="i/n: the i-th of n parts of equal size, which together are the whole."
)
sample = click.option(
    "--sample",
    default=0,
    metavar="COUNT",
    type=click.IntRange(0),
    help="Only COUNT cases, of every operator and element type alike; --seed decides which.",
)

# **** how they are made and judged ****

seed = click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of all random numbers.")
examples = click.option(
    "--examples", default=20, show_default=True, type=click.IntRange(1), help="Random examples per operator and type."
)
node_data = click.option(
    "--node-data",
    type=click.Path(exists=True),
    help="The ONNX project's node data: a folder, or the wheel of onnx 1.17.",
)
timeout = click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time limit of a case, or of each drawn example, in seconds.",
)

# **** how they are run and reported ****

jobs = click.option("--jobs", "-j", type=click.IntRange(1), default=1, show_default=True, help="Worker processes.")
json_report = click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the report as JSON.")
junit_report = click.option("--junit", type=click.Path(dir_okay=False), help="Write the report as JUnit XML.")
html_report = click.option("--html", type=click.Path(dir_okay=False), help="Write the report as one web page.")
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress, only the summary.")
