"""Test what should work on every system: imports, ``host``, the readers and the command line, without a compiler.

``python -m pip install -r requirements-portable.txt`` installs what it needs. CI services run it on macOS and Windows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from workspace import ROOT

__all__ = ["DISTRIBUTIONS", "TESTS"]

#: The distributions of requirements-portable.txt.
DISTRIBUTIONS = ("lite-core", "lite-compiler", "lite-conformance", "lite-onnx", "lite-paddle", "lite-tools")
#: Files and folders of tests that need none of the others.
TESTS = (
    "core/tests",
    "plugins/lite_compiler/tests",
    "plugins/lite_onnx/tests/test_reader.py",
    "plugins/lite_onnx/tests/test_versions.py",
    "plugins/lite_onnx/tests/test_writer.py",
    "plugins/lite_paddle/tests/test_plugin.py",
    "plugins/lite_paddle/tests/test_reader_damage.py",
    "plugins/lite_paddle/tests/test_reader_detect.py",
    "plugins/lite_paddle/tests/test_reader_legacy.py",
    "plugins/lite_paddle/tests/test_reader_models.py",
    "plugins/lite_paddle/tests/test_reader_parameters.py",
    "plugins/lite_paddle/tests/test_reader_pir.py",
)


def main() -> int:
    """Run everything, also after a failure; return 0 if nothing failed."""
    suite = Path(sysconfig.get_path("scripts")) / ("lite-conformance.exe" if os.name == "nt" else "lite-conformance")
    commands = [
        *([sys.executable, "scripts/smoke.py", name] for name in DISTRIBUTIONS),
        [sys.executable, "-m", "lite_core", "doctor"],
        [str(suite), "--backend", "host", "--level", "L1"],
        [sys.executable, "-m", "pytest", "-n", "2", *TESTS],
    ]
    failed = []
    for command in commands:
        print(f"\n{' '.join(command[1:] if command[0] == sys.executable else command)}", flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(command)
    for command in failed:
        print(f"failed: {' '.join(command)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
