"""Lets the tests of every distribution import the helpers that lie beside them."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent
for folder in (*ROOT.glob("*/tests"), *ROOT.glob("plugins/*/tests"), ROOT / "tests", ROOT / "tests/models"):
    sys.path.insert(0, str(folder))
