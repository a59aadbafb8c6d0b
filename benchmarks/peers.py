"""Benchmark of Lite beside ONNX Runtime, OpenVINO, Paddle Inference, Paddle-Lite and IREE on the same models.

    python benchmarks/peers.py [--models NAME ...] [--peers NAME ...] [--threads N ...] [--seconds S] [--record]

``--models`` takes names, ``paddle`` and ``onnx``. Each engine runs in a separate process; they compute in turns, in
short slices, so that drift of the machine affects all of them alike. With several threads this is done twice: once
with threads that do not spin after a run, and once with each engine alone at its own defaults, while the processes of
the others are stopped. The outputs are compared before anything is timed. ``--startup`` also measures the time from
process start to the first result, and peak memory. ``--precision`` measures bfloat16, float16 or int8 instead, each
engine with its float32 beside it, with the accuracy and the memory. The folder ``--out`` receives ``peers.json`` with
every sample, ``peers.md`` and ``peers.svg``; ``--record`` also writes the results of this processor into
``docs/results``, from which `make docs` makes the pages. benchmarks/README.md describes how to install the engines.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from side_by_side import (
    by_precision,
    chart,
    contenders,
    first_result,
    machine,
    models,
    precision_models,
    precision_results,
    recorded,
    report,
    timing,
)
from side_by_side.conditions import LEVELS, Condition
from side_by_side.engines import ENGINES, LITE, LITE_FILE
from side_by_side.results import LeftOut, Results
from side_by_side.variants import variants

ROOT = Path(__file__).resolve().parents[1]
PADDLE_LITE_PYTHON = ROOT / ".venv-bench-paddle-lite" / "bin" / "python"
RESULTS = ROOT / "docs" / "results"
QUICK_SECONDS = 0.45
WAYS = {"interleaved": False, "alone": True}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    peers = [name for name in ENGINES if name not in (LITE, LITE_FILE)]
    add = parser.add_argument
    names = [*models.GROUPS, *models.MODELS]
    narrow = precision_models.PRECISIONS
    add("--models", nargs="+", metavar="NAME", help=f"{', '.join(names)}; default: all")
    add("--precision", choices=narrow, metavar="NAME",
        help=f"{', '.join(narrow)}: measure this beside float32, on the models that have it")  # fmt: skip
    add("--peers", nargs="*", choices=peers, default=peers, metavar="NAME", help=f"default: {', '.join(peers)}")
    add("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="default: 1 and 2")
    add("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="with several threads; default: interleaved alone")
    add("--levels", nargs="+", choices=["own", *LEVELS], default=["own"], metavar="LEVEL",
        help="own, or avx2 for engines that can be held to it; default: own")  # fmt: skip
    add(
        "--batch", nargs="+", type=int, default=[1], metavar="N", help="numbers of pictures, such as 1 4 16; default: 1"
    )
    add("--large", action="store_true", help="also measure large images and long lines")
    add("--seconds", type=float, default=3.0, help="how long each engine runs in each cell; default: 3")
    add("--backend", default="x86", help="the backend that Lite uses; default: x86")
    add("--startup", action="store_true", help="also measure the first result and peak memory")
    add("--startup-only", action="store_true", help="measure nothing else")
    add("--repeats", type=int, default=5, help="processes for each figure of --startup; default: 5")
    add("--quick", action="store_true", help=f"{QUICK_SECONDS} s a cell and one repeat, to check that it works")
    add("--out", type=Path, default=ROOT / "out" / "peers", metavar="FOLDER", help="default: out/peers")
    add("--resume", action="store_true", help="skip the cells that the folder --out has already, and add the others")
    add("--record", nargs="?", type=Path, const=RESULTS, metavar="FOLDER",
        help="write the results into this processor's file in the folder; default: docs/results")  # fmt: skip
    add("--redraw", type=Path, metavar="JSON", help="measure nothing: report these results again")
    add("--paddle-lite-python", type=Path, default=PADDLE_LITE_PYTHON, metavar="PYTHON",
        help="interpreter of Paddle-Lite's environment; default: .venv-bench-paddle-lite/bin/python")  # fmt: skip
    options = parser.parse_args(arguments)
    if min(*options.threads, *options.batch, options.repeats) < 1 or options.seconds <= 0:
        parser.error("--threads, --batch, --seconds and --repeats must be positive")
    known: Collection[str] = narrow[options.precision].models if options.precision else models.MODELS
    groups = {} if options.precision else models.GROUPS
    chosen = list(dict.fromkeys(m for name in options.models or known for m in groups.get(name, [name])))
    if unknown := [name for name in options.models or () if name not in (*known, *groups)]:
        parser.error(f"--models: {unknown[0]!r} is none of {', '.join((*groups, *known))}")
    options.models = chosen
    if options.quick:
        options.seconds, options.repeats = QUICK_SECONDS, 1
    return options


def find_contenders(options: argparse.Namespace) -> tuple[list[contenders.Contender], list[LeftOut]]:
    """Return the installed engines, Lite first, and the reasons why the others are left out."""
    present: list[contenders.Contender] = []
    absent: list[LeftOut] = []
    own = (LITE, LITE_FILE) if options.startup or options.startup_only else (LITE,)
    for name in (*own, *options.peers):
        python = options.paddle_lite_python if name == "paddle_lite" else Path(sys.executable)
        found = contenders.find(ENGINES[name], python, options.backend)
        if isinstance(found, str):
            absent.append(LeftOut(name, found))
        else:
            present.append(found)
    return present, absent


def conditions(options: argparse.Namespace) -> list[Condition]:
    """Return the conditions to measure under, in order: with one thread, interleaved and alone make no difference."""
    found = []
    for level in options.levels:
        for threads in options.threads:
            ways = options.ways if threads > 1 else ["interleaved"]
            found += [Condition("" if level == "own" else level, threads, WAYS[way]) for way in ways]
    return found


def start(options: argparse.Namespace, present: list[contenders.Contender], absent: list[LeftOut]) -> Results:
    """Return the results to add to: none, or with ``--resume`` those of the folder ``--out``."""
    versions = {contender.engine.name: contender.version for contender in present}
    results = Results(
        made_at=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        machine=machine.describe(options.backend, ["" if level == "own" else level for level in options.levels]),
        settings={"backend": options.backend, "seconds": options.seconds, "repeats": options.repeats},
        versions=versions,
        models={},
        left_out=absent,
    )
    file = options.out / "peers.json"
    if not options.resume or not file.exists():
        return results
    earlier = Results.from_json(json.loads(file.read_text()))
    same = [entry.machine["microarchitecture"] for entry in (results, earlier)]
    if same[0] != same[1] or earlier.versions != versions:
        raise SystemExit(
            f"peers.py: {file} was measured on {same[1]} with {earlier.versions}, this is {same[0]} with {versions}: "
            "its results cannot be continued; choose another folder with --out, or measure without --resume"
        )
    about_lite = earlier.machine["lite"] | results.machine["lite"]
    earlier.made_at, earlier.machine, earlier.settings = results.made_at, results.machine, results.settings
    earlier.machine["lite"] = about_lite
    return earlier


def measure(options: argparse.Namespace, folder: Path) -> Results:
    """Measure with the given options; the models' inputs are written to ``folder``."""
    present, absent = find_contenders(options)
    results = start(options, present, absent)
    show_machine(results)
    for entry in absent:
        print(f"{ENGINES[entry.engine].title} is left out: {entry.reason}", flush=True)
    fresh: set[tuple[str, Condition]] = set()
    chosen = [own for name in options.models for own in variants(models.MODELS[name], options.batch, options.large)]
    for number, model in enumerate(chosen, 1):
        results.models.setdefault(model.name, model.title)
        stored = models.set_up(model, folder)
        supporting = [contender for contender in present if contender.supports(stored)]
        running = [contender for contender in supporting if not contender.engine.startup_only]
        before = f"{number}/{len(chosen)} {model.title}"
        for condition in [] if options.startup_only else conditions(options):
            if options.resume and results.has(model.name, condition):
                show(f"{before}, {condition.title}: measured before")
                continue
            timings, left_out = timing.measure(running, stored, condition, options.seconds)
            results.timings += timings
            results.left_out += left_out
            line = ", ".join(f"{ENGINES[t.engine].title} {t.median:.2f} ms" for t in timings)
            ratio = results.ratio(model.name, condition)
            shown = f"; best peer / Lite {ratio.of_medians:.2f}" if ratio else ""
            show(f"{before}, {condition.title}: {line}{shown}")
            fresh.add((model.name, condition))
            write(results, options, fresh)
        if options.startup or options.startup_only:
            firsts, left_out = first_result.measure(supporting, stored, options.repeats)
            results.first_results += firsts
            results.left_out += left_out
            line = ", ".join(f"{ENGINES[f.engine].title} {min(f.warm_seconds) * 1e3:.0f} ms" for f in firsts)
            show(f"{before}, first result, warm: {line}")
            write(results, options, fresh)
    return results


def measure_precision(options: argparse.Namespace) -> None:
    """Measure in fewer bits, and write each cell as soon as it is measured."""
    precision = precision_models.PRECISIONS[options.precision]
    present, absent = find_contenders(options)
    about = machine.describe(options.backend, [""])
    name = machine.file_stem(str(about["microarchitecture"]), str(about["processor"]))
    file = (options.record / "precision" if options.record else options.out / "precision") / f"{name}.json"
    for entry in absent:
        print(f"{ENGINES[entry.engine].title} is left out: {entry.reason}", flush=True)
    order = {own.name: list(own.models) for own in precision_models.PRECISIONS.values()}
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(options.models, 1):
            pair = precision.models[model](Path(folder))
            for threads in options.threads:
                known = {
                    "measured": datetime.date.today().isoformat(),
                    "revision": machine.revision(),
                    "load": round(os.getloadavg()[0], 2),
                }
                cell = by_precision.measure(present, precision, pair, threads, options.seconds, known)
                precision_results.update(file, about, [cell], order)
                show(f"{number}/{len(options.models)} {pair.title}, {threads} thread(s): {by_precision.summary(cell)}")
    print(f"recorded: {file}; `make docs` makes the page from docs/results")


def show(line: str) -> None:
    """Print a line of progress, with the time of day."""
    print(f"{datetime.datetime.now():%H:%M:%S} {line}", flush=True)


def show_machine(results: Results) -> None:
    """Print the processor, its features, and Lite's view of it with its tuning."""
    about = results.machine
    print(
        f"{about['processor']} ({about['microarchitecture']}: family {about['family']}, model {about['model']}, ",
        end="",
    )
    print(f"stepping {about['stepping']}), {about['cores']} cores, load {about['load_average']:.2f}")
    for level, lines in about["lite"].items():
        held = f", {LEVELS[level][0]}" if level else ""
        print("\n".join(f"  Lite{held}, {line}" for line in lines), flush=True)


def write(
    results: Results, options: argparse.Namespace, fresh: Collection[tuple[str, Condition]] | None = None
) -> None:
    """Write the JSON and the Markdown, and with ``--record`` the ``fresh`` cells, or all, to the processor's file."""
    options.out.mkdir(parents=True, exist_ok=True)
    # An interruption leaves the whole old file or the whole new one, for --resume.
    unfinished = options.out / "peers.json.unfinished"
    unfinished.write_text(json.dumps(results.to_json(), indent=1) + "\n")
    os.replace(unfinished, options.out / "peers.json")
    (options.out / "peers.md").write_text(report.markdown(results))
    if options.record and results.timings:
        recorded.update(record_file(results, options), results, models.GROUPS, machine.revision(), fresh)


def record_file(results: Results, options: argparse.Namespace) -> Path:
    """Return the file for the results of their processor in the folder ``--record``."""
    folder: Path = options.record
    return folder / f"{machine.file_stem(results.machine['microarchitecture'], results.machine['processor'])}.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or read earlier results, and report."""
    options = parse(arguments)
    if options.precision:
        try:
            measure_precision(options)
        except (models.ModelUnavailableError, models.ConversionError) as error:
            raise SystemExit(f"peers.py: {error}") from None
        return
    if options.redraw:
        results = Results.from_json(json.loads(options.redraw.read_text()))
        write(results, options)
    else:
        try:
            with tempfile.TemporaryDirectory() as folder:
                results = measure(options, Path(folder))
        except models.ModelUnavailableError as error:
            raise SystemExit(f"peers.py: {error}") from None
    print(f"\n{(options.out / 'peers.md').read_text()}")
    if results.timings:
        cells = recorded.cells_of(results, models.GROUPS)
        (options.out / "peers.svg").write_text(chart.drawing(cells, results.machine["processor"]), encoding="utf-8")
    if options.record:
        print(f"recorded: {record_file(results, options)}; `make docs` makes the pages from it")


if __name__ == "__main__":
    main()
