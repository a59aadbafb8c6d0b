"""Benchmark of Lite beside ONNX Runtime, OpenVINO, Paddle Inference and Paddle-Lite, on the same models and inputs.

    python benchmarks/peers.py [--models NAME ...] [--peers NAME ...] [--threads N ...] [--seconds S] [--startup]

``--models`` takes names, ``paddle`` and ``onnx``. Each engine runs in a separate process; they compute in turns, in
short slices, so that drift of the machine affects all of them alike. Their outputs are compared before anything is
timed. ``--startup`` also measures the time from process start to the first result, and peak memory. The folder
``--out`` receives ``peers.json`` with every sample, ``peers.md`` and ``peers.png``. benchmarks/README.md describes how
to install the engines.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from side_by_side import chart, contenders, first_result, machine, models, report, timing
from side_by_side.engines import ENGINES, LITE, LITE_FILE
from side_by_side.results import LeftOut, Results

ROOT = Path(__file__).resolve().parents[1]
PADDLE_LITE_PYTHON = ROOT / ".venv-bench-paddle-lite" / "bin" / "python"
QUICK_SECONDS = 0.45


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    peers = [name for name in ENGINES if name not in (LITE, LITE_FILE)]
    add = parser.add_argument
    names = [*models.GROUPS, *models.MODELS]
    add("--models", nargs="+", choices=names, default=list(models.MODELS), metavar="NAME", help=", ".join(names))
    add("--peers", nargs="*", choices=peers, default=peers, metavar="NAME", help=f"default: {', '.join(peers)}")
    add("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="default: 1 and 2")
    add("--seconds", type=float, default=3.0, help="how long each engine runs in each cell; default: 3")
    add("--backend", default="auto", help="the backend that Lite uses; default: auto")
    add("--startup", action="store_true", help="also measure the first result and peak memory")
    add("--startup-only", action="store_true", help="measure nothing else")
    add("--repeats", type=int, default=5, help="processes for each figure of --startup; default: 5")
    add("--quick", action="store_true", help=f"{QUICK_SECONDS} s a cell and one repeat, to check that it works")
    add("--out", type=Path, default=ROOT / "out" / "peers", metavar="FOLDER", help="default: out/peers")
    add("--redraw", type=Path, metavar="JSON", help="measure nothing: report these results again")
    add("--paddle-lite-python", type=Path, default=PADDLE_LITE_PYTHON, metavar="PYTHON",
        help="interpreter of Paddle-Lite's environment; default: .venv-bench-paddle-lite/bin/python")  # fmt: skip
    options = parser.parse_args(arguments)
    if min(options.threads) < 1 or options.seconds <= 0 or options.repeats < 1:
        parser.error("--threads, --seconds and --repeats must be positive")
    options.models = list(dict.fromkeys(m for name in options.models for m in models.GROUPS.get(name, [name])))
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


def measure(options: argparse.Namespace, folder: Path) -> Results:
    """Measure with the given options; the models' inputs are written to ``folder``."""
    present, absent = find_contenders(options)
    results = Results(
        made_at=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        machine=machine.describe(),
        settings={"backend": options.backend, "seconds": options.seconds, "repeats": options.repeats},
        versions={contender.engine.name: contender.version for contender in present},
        models={name: models.MODELS[name].title for name in options.models},
        left_out=absent,
    )
    for entry in absent:
        print(f"{ENGINES[entry.engine].title} is left out: {entry.reason}", flush=True)
    for name in options.models:
        model = models.set_up(models.MODELS[name], folder)
        supporting = [contender for contender in present if contender.supports(model)]
        if not options.startup_only:
            for threads in options.threads:
                running = [contender for contender in supporting if not contender.engine.startup_only]
                timings, left_out = timing.measure(running, model, threads, options.seconds)
                results.timings += timings
                results.left_out += left_out
                line = ", ".join(f"{ENGINES[t.engine].title} {t.median:.2f} ms" for t in timings)
                print(f"{model.title}, threads: {threads}: {line}", flush=True)
        if options.startup or options.startup_only:
            firsts, left_out = first_result.measure(supporting, model, options.repeats)
            results.first_results += firsts
            results.left_out += left_out
            line = ", ".join(f"{ENGINES[f.engine].title} {min(f.warm_seconds) * 1e3:.0f} ms" for f in firsts)
            print(f"{model.title}, first result, warm: {line}", flush=True)
        write(results, options.out)
    return results


def write(results: Results, folder: Path) -> None:
    """Write the JSON and the Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.json").write_text(json.dumps(results.to_json(), indent=1) + "\n")
    (folder / "peers.md").write_text(report.markdown(results))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or read earlier results, and report."""
    options = parse(arguments)
    if options.redraw:
        results = Results.from_json(json.loads(options.redraw.read_text()))
        write(results, options.out)
    else:
        try:
            with tempfile.TemporaryDirectory() as folder:
                results = measure(options, Path(folder))
        except models.ModelUnavailableError as error:
            raise SystemExit(f"peers.py: {error}") from None
    print(f"\n{(options.out / 'peers.md').read_text()}")
    if results.timings:
        try:
            chart.draw(results, options.out / "peers.png")
        except ImportError:
            print("No chart: matplotlib is not installed. Run: pip install matplotlib")


if __name__ == "__main__":
    main()
