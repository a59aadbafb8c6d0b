"""A process that tries the mutants of some operators: a mutant may crash it or exhaust its memory.

It reads one line of JSON from standard input, and writes a line for each mutant before it is tried, and its result.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lite_conformance.mutate.bench import Bench
from lite_conformance.mutate.plan import Plan
from lite_conformance.mutate.result import Result, fingerprint

__all__ = ["main"]

#: Address space that mutants may take beyond what the process has at its beginning.
_MEMORY_BYTES = 6 << 30


def main() -> None:
    """Try the mutants of the request, and end."""
    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what mutants print must not mix with the answers
    plan, known = Plan.from_dict(request["plan"]), set(request["known"])
    wanted = set(request["ops"])
    for table in plan.tables():
        op = table.definition.qualified_name
        if op not in wanted:
            continue
        bench = Bench(table, plan.seed, plan.examples)
        _limit_memory()
        for mutant in plan.mutants(table):
            if mutant.id in known:
                continue
            _write(answers, {"trying": [mutant.id, op, mutant.family, mutant.kind, mutant.level]})
            verdict = bench.try_out(mutant)
            result = Result(mutant.id, op, mutant.family, mutant.kind, *_fields(verdict), fingerprint())
            _write(answers, {"result": asdict(result)})
        _write(answers, {"done": op})


def _fields(verdict: Any) -> tuple[bool, int, str, str]:
    return verdict.killed, verdict.level, verdict.case, verdict.reason


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_BYTES, hard))


def _write(stream: Any, message: dict[str, Any]) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
