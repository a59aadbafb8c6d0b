"""Lets the tests of every distribution import the helpers that lie beside them, and what the workspace is made with."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent
OWN = (ROOT / "tests", ROOT / "tests/models", ROOT / "scripts")
for folder in (*ROOT.glob("*/tests"), *ROOT.glob("plugins/*/tests"), *OWN):
    sys.path.insert(0, str(folder))
