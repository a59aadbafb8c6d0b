"""Makes the stored results of the scan, or scans another seed.

    python plugins/lite_paddle/tests/scan/make_goldens.py
        runs the cases with Paddle 2.6.2 and 3.3.1, and writes goldens.bin.xz
    python plugins/lite_paddle/tests/scan/make_goldens.py --seed 7 --count 20 [--op conv2d ...]
        runs other cases, compares Lite with both versions, and writes nothing

``make paddle26`` makes the environment with Paddle 2.6.2, which needs Python 3.8 to 3.12; Paddle 3.3.1 is that of the
Python which runs this file (``make test PADDLE=1``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from scan.comparing import disagreement  # noqa: E402
from scan.drawing import Case, draw_cases  # noqa: E402
from scan.goldens import COUNT, PATH, SEED, VERSIONS, Outputs, write  # noqa: E402
from scan.paddle_process import is_absent, run_cases  # noqa: E402

PADDLE_26 = TESTS.parents[2] / ".venv-paddle26/bin/python"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED, help="another seed only compares")
    parser.add_argument("--count", type=int, default=COUNT, help="cases of each operator; another number only compares")
    parser.add_argument("--op", action="append", help="this operator only; only compares")
    parser.add_argument("--paddle26", type=Path, default=PADDLE_26, metavar="PYTHON", help=f"default: {PADDLE_26}")
    options = parser.parse_args(arguments)
    if not options.paddle26.exists():
        parser.error(f"Paddle 2.6.2 is missing: {options.paddle26} does not exist; `make paddle26` makes it")
    cases = draw_cases(options.seed, options.count, options.op)
    found = [_outputs(cases, python) for python in (options.paddle26, Path(sys.executable))]
    results = list(zip(*found))
    if (options.seed, options.count, options.op) == (SEED, COUNT, None):
        write(cases, results)
        print(f"{PATH}: {PATH.stat().st_size // 1024} KiB, {len(cases)} cases")
    return _compare(cases, results)


def _outputs(cases: Sequence[Case], python: Path) -> list[Outputs | None]:
    """Return what one version makes of the cases; print why it makes nothing of some."""
    results = run_cases(cases, python)
    for case, result in zip(cases, results):
        if isinstance(result, str) and not is_absent(result):
            print(f"{case.name}: {python} gave no result: {result}")
    return [None if isinstance(result, str) else result for result in results]


def _compare(cases: Sequence[Case], results: Sequence[Sequence[Outputs | None]]) -> int:
    count = differing = 0
    for case, outputs in zip(cases, results):
        for version, expected in zip(VERSIONS, outputs):
            if expected is None:
                continue
            count += 1
            difference = disagreement(case, version, expected)
            if difference:
                differing += 1
                shapes = {slot: [f"{a.dtype}{list(a.shape)}" for a in arrays] for slot, arrays in case.inputs.items()}
                print(f"{case.name} of Paddle {version}: {shapes} {case.attrs}\n    {difference}")
    print(f"{count} results compared, {differing} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
