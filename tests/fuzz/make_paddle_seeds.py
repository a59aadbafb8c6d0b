"""Choose small models that Paddle exported as seeds: few files with many kinds of operators.

    python -m fuzz.make_paddle_seeds EXPORTS

``EXPORTS`` is a folder that the tests of lite-paddle exported their cases to (``paddle_cases.py MODULE KIND FOLDER``).
The chosen models are written to the committed corpus.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fuzz.bundles import pack
from fuzz.targets import find_target
from fuzz.targets.paddle_models import LegacyModel, PirModel

_CORPUS = Path(__file__).parent / "corpus"
#: Limits of one model and of all that are chosen for a target, in bytes, and of their number.
_MOST_BYTES, _MOST_TOGETHER, _MOST_SEEDS = 4_000, 64_000, 40


def main(exports: Path) -> None:
    """Choose and write the models of both kinds."""
    for name in ("paddle_pir", "paddle_legacy"):
        target = find_target(name)
        assert isinstance(target, (LegacyModel, PirModel))
        found = {}
        for program in sorted(exports.rglob(f"*{Path(target.program).suffix}")):
            files = {target.program: target.without_call_stacks(program.read_bytes())}
            parameters = program.with_suffix(".pdiparams")
            if parameters.exists():
                files["model.pdiparams"] = parameters.read_bytes()
            found[program.parent.name if program.stem == "model" else program.stem] = pack(files)
        for seed, data in _chosen(found).items():
            (_CORPUS / name).mkdir(parents=True, exist_ok=True)
            (_CORPUS / name / f"seed-{seed}").write_bytes(data)


def _chosen(found: dict[str, bytes]) -> dict[str, bytes]:
    """Return the models that add most names of operators, attributes and slots for each byte."""
    names = {seed: set(re.findall(rb"[A-Za-z_]\w{3,40}", data)) for seed, data in found.items()}
    left = {seed: data for seed, data in found.items() if len(data) <= _MOST_BYTES}
    chosen: dict[str, bytes] = {}
    seen: set[bytes] = set()
    while left and len(chosen) < _MOST_SEEDS:
        best = max(left, key=lambda seed: len(names[seed] - seen) / (500 + len(left[seed])))
        if not names[best] - seen or sum(map(len, chosen.values())) + len(left[best]) > _MOST_TOGETHER:
            break
        chosen[best] = left.pop(best)
        seen |= names[best]
    return chosen


if __name__ == "__main__":
    main(Path(sys.argv[1]))
