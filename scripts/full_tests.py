"""Run parts of the full tier of tests, which take too long for `make test`.

    python scripts/full_tests.py PART ...      runs these parts
    python scripts/full_tests.py all           runs every part
    python scripts/full_tests.py of-commit     runs the part that the hash of the present commit chooses

A test belongs to a part by its mark: ``@pytest.mark.full("opencl")``. A part is run file by file. The result of each
file is kept in ``out/full``, in a folder for the state of the sources: an interrupted part continues where it stopped,
and files that passed are not run again until a source changes. ``--again`` deletes the results first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workspace import ROOT

__all__ = ["PARTS"]

#: Every part and what it tests; each but :data:`LONG` takes at most 25 minutes on two cores.
PARTS: dict[str, str] = {
    "arm": "every operator on an emulated ARM processor, and PoCL there; takes hours",
    "browser": "the conformance report, and the pages of lite-tools, in a browser",
    "commands": "every command on real models: its JSON against its schema, and its text in 80 columns and in a pipe",
    "conformance": "the whole conformance suite on host, x86, onnxruntime and numba",
    "cpu": "CPU kernels at every level of x86 that runs here, against the references",
    "examples": "the notebooks; examples/jax_backend: its tests, real models, and the conformance suite on it",
    "faults": "planted faults, each of which the listed test must find",
    "models": "whole networks, exported by Paddle, on x86 and OpenCL, in all precisions",
    "mutation": "a sample of the faults planted into the references, which the conformance suite must find",
    "onnx": "ONNX's own test data, old operator versions and written models",
    "opencl": "the OpenCL backend: every kernel and fusion",
    "opencl-suite": "the conformance suite on OpenCL, in the most common element types",
    "opencl-types-1": "the conformance suite on OpenCL in other element types: operators A to L, ONNX's node data",
    "opencl-types-2": "the conformance suite on OpenCL in other element types: operators M to Z, graphs",
    "packages": "wheels in clean environments, the tutorial, and benchmarks",
    "paddle-lite": "Paddle-Lite's own files and scripts, beside its wheel for Python 3.10; operators of Paddle",
    "reliability": "kills, full disks, limits of the system, failing calls, damaged inputs, and endurance",
    "serving": "lite serve with clients that others wrote, in an environment of their own, and a little load",
    "site": "the site, built strictly; the examples of its pages; error classes and their messages",
    "versions": "the lowest and newest versions of other packages on Python 3.10 and 3.13, and each supported llvmlite",
}

#: The parts that are run only if they are named, or with all others.
LONG = frozenset({"arm"})
#: What make makes for a part.
_MADE = {"paddle-lite": "paddle-lite", "serving": ".venv-clients/.ready", "site": ".venv-docs/.ready"}
#: The environment of the part ``arm``, and the variable with the seed of its samples.
_ARM_ENVIRONMENT, _SEED = ".venv-arm", "LITE_TEST_SEED"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run parts; return 0 if every test passed or was skipped with its reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "all", "of-commit"], metavar="PART", help=_describe())
    parser.add_argument("--again", action="store_true", help="run everything, also what passed before")
    options = parser.parse_args(arguments)
    state = state_of_sources()
    parts = [part for named in options.parts for part in _parts_of(named, state)]
    return max([_run_part(part, ROOT / "out/full" / state / part, again=options.again) for part in parts])


def state_of_sources() -> str:
    """Return the current commit, with a hash of the uncommitted changes if there are any."""
    commit = _git("rev-parse", "HEAD").strip()
    changes = _git("diff", "HEAD", "--binary") + "".join(
        name + (ROOT / name).read_text(errors="replace")
        for name in _git("ls-files", "--others", "--exclude-standard").splitlines()
        if (ROOT / name).is_file()
    )
    return commit if not changes else f"{commit}-{hashlib.sha256(changes.encode(errors='replace')).hexdigest()[:12]}"


def files_of(part: str) -> list[str]:
    """Return the test files with tests of a part, as pytest collects them."""
    command = [sys.executable, "-m", "pytest", *_options_of(part), "--collect-only", "-q"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"the tests of {part} cannot be collected:\n{listed.stdout}{listed.stderr}")
    return sorted(re.findall(r"^(\S+\.py): \d+$", listed.stdout, re.MULTILINE))


def _parts_of(named: str, state: str) -> list[str]:
    if named == "all":
        return list(PARTS)
    if named == "of-commit":
        usual = [part for part in PARTS if part not in LONG]
        return [usual[int(state[:8], 16) % len(usual)]]
    return [named]


def _run_part(part: str, folder: Path, *, again: bool) -> int:
    if again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if part == "arm":
        _prepare_emulation()
    elif part in _MADE:
        subprocess.run(["make", _MADE[part]], cwd=ROOT, check=True)
    files = files_of(part)
    print(f"{part}: {PARTS[part]}; {len(files)} file(s)", flush=True)
    results = [_run_file(part, file, folder) for file in files]
    totals = {key: sum(result[key] for result in results) for key in ("passed", "failed", "skipped", "seconds")}
    verdict = "passed" if all(result["exit_code"] == 0 for result in results) else "FAILED"
    counts = ", ".join(f"{totals[key]} {key}" for key in ("passed", "failed", "skipped"))
    print(f"{part} {verdict}: {counts} in {totals['seconds'] / 60:.1f} min; results in {folder.relative_to(ROOT)}")
    return 0 if verdict == "passed" else 1


def _prepare_emulation() -> None:
    """Make the environment of emulated processors, and let the date be the seed of samples unless one is given."""
    seed = os.environ.setdefault(_SEED, time.strftime("%Y%m%d"))
    print(f"samples are drawn with {_SEED}={seed}", flush=True)
    command = [sys.executable, "scripts/arm_environment.py", _ARM_ENVIRONMENT, "--with", "llvm", "opencl"]
    subprocess.run(command, cwd=ROOT, check=True)


def _options_of(part: str) -> list[str]:
    return ["--part", part, *(["--arm", _ARM_ENVIRONMENT] if part == "arm" else [])]


def _run_file(part: str, file: str, folder: Path) -> dict[str, Any]:
    """Run the tests of one file, unless it passed before."""
    kept = folder / f"{file.replace('/', '.')}.json"
    if kept.exists():
        result: dict[str, Any] = json.loads(kept.read_text())
        print(f"  {file}: passed before, in {result['seconds']:.0f} s", flush=True)
        return result
    report = folder / "junit.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", file, *_options_of(part), "-n", "2", "--dist", "worksteal", "-rfEs"]
    start = time.monotonic()
    exit_code = subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT).returncode
    result = {"exit_code": exit_code, "seconds": round(time.monotonic() - start, 1), **_counts(report)}
    if exit_code == 0:
        kept.write_text(json.dumps(result))
    return result


def _counts(report: Path) -> dict[str, int]:
    """Return the numbers of passed, failed and skipped tests in a JUnit report."""
    if not report.exists():
        return {"passed": 0, "failed": 1, "skipped": 0}
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return {"passed": tests - failed - skipped, "failed": failed, "skipped": skipped}


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape")


def _describe() -> str:
    return "; ".join(f"{name}: {text}" for name, text in PARTS.items())


if __name__ == "__main__":
    sys.exit(main())
